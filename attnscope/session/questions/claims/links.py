"""What is linked in a text: all links of all heads, held against the text with its words in other orders."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attnscope.analysis.claims.finding.links import Read, in_order, telling_links
from attnscope.analysis.claims.finding.rows import Layer, check_numbers, rows_of, verdicts_of
from attnscope.analysis.claims.finding.shared import InPrompt as InPrompt
from attnscope.capture.following.describe import names_in
from attnscope.errors import DoesNotFitError, InputError
from attnscope.results.base.evidence import Weights
from attnscope.results.claims.links import Links
from attnscope.session.choosing import Chosen
from attnscope.session.question import Answer
from attnscope.session.questions.claims.exchanging import (
    Controls,
    exchange_of,
    layers_of,
    rounding,
    runs,
)
from attnscope.session.questions.claims.finding import notes_of
from attnscope.session.reading import Reading
from attnscope.session.verbs.find import FindLinks
from attnscope.vocabulary import Kind

MOST_KEPT, MOST_WEIGHTS = 1000, 25_000_000  # links; weights, of which about six times as many are held


def links_in(reading: Reading, chosen: Chosen, asked: FindLinks) -> Answer[Links]:
    """Every link between two words that nothing simpler explains, in any of the chosen heads.

    With the numbers of all pairs of words, as they are held against those of other texts.

    `InputError` for pictures and sounds, texts that the model goes on with, texts without controls, and where
    all weights have no room.
    """
    if reading.perceived is not None:
        raise InputError("links are sought between words: name a pair with --from and --to, or a --pattern")
    if chosen.apart:
        raise InputError("links are sought in whole lists of heads: name these (--layer, --head), or a pair")
    if reading.asked.goes_on:
        raise InputError("links are sought in a text that is there: leave --generate out")
    _check_room(reading, chosen)
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen)
    layers, whole = layers_of(attention, chosen)
    queries, keys = names_in(layers)
    crosses = chosen.kind is Kind.CROSS
    exchange = exchange_of(reading, chosen, names_in(whole)[1], ())
    controls = exchange.controls(Controls(asked.controls, asked.seed))
    own = _heads(layers, chosen)

    def alike(others: Sequence[Layer]) -> bool:
        return bool(np.abs(_heads(others, chosen) - own).max() <= rounding(whole))

    def texts() -> Iterator[Read]:
        yield Read(own, queries, keys)
        read = runs(reading, chosen, controls, exchange, layers, alike)
        for control, went in zip(read, exchange.went(controls, range(len(keys))), strict=True):
            check_numbers(control)
            other = in_order(keys, np.argsort(went))
            yield Read(_heads(control, chosen), queries if crosses else other, other)

    with reading.listener.working(f"reading {len(controls)} controls"):
        seen = telling_links(texts(), crosses=crosses, causal=chosen.kind is Kind.DECODER)
    links = tuple(
        replace(link, layer=layers[link.layer].layer, head=chosen.heads[link.head]) for link in seen.links
    )
    found = Links(
        kind=chosen.kind,
        query_tokens=queries,
        key_tokens=keys,
        layers=tuple(layer.layer for layer in layers),
        heads=chosen.heads,
        links=links[:MOST_KEPT],
        more=max(0, len(links) - MOST_KEPT),
        best_of_controls=seen.best,
        how=controls.how,
        seed=asked.seed,
        ids=controls.ids,
        input=exchange.name,
        verdicts=tuple(verdicts_of(layer, chosen.heads) for layer in whole),
        provenance=attention.provenance,
        tower=attention.tower,
        notes=(*notes_of(attention, layers), *reading.notes),
    )
    return Answer(found, links=InPrompt(found, own, seen.explained))


def _heads(layers: Sequence[Layer], chosen: Chosen) -> Weights:
    return np.asarray(np.stack([rows_of(layer, chosen.heads) for layer in layers]))


def _check_room(reading: Reading, chosen: Chosen) -> None:
    queries, keys = map(len, reading.sides(chosen.kind))
    heads = len(chosen.layers) * len(chosen.heads)
    numbers = heads * queries * keys
    if numbers > MOST_WEIGHTS:
        raise DoesNotFitError(
            f"all links of {queries:,} x {keys:,} tokens in {heads:,} heads are {numbers:,} weights, and "
            f"{MOST_WEIGHTS:,} have room: choose layers with --layer, or name a pair with --from and --to"
        )
