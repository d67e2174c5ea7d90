"""Data of an HTML page of many heads: weights of all, queries and keys of some, from one model run.

Which heads a page has room for is known before the model runs (`Extent`); nothing is drawn here.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.overview import View, made_small
from attnscope.analysis.rows import Layer, rows_of
from attnscope.analysis.scores.supplies import AllowedPairs
from attnscope.attention import Capture
from attnscope.capture.following.describe import names_in
from attnscope.capture.returned import Returned
from attnscope.errors import InputError
from attnscope.measures.registry import needs_norms
from attnscope.results import HeadAttention, Overview, Thumbnails
from attnscope.results.base.evidence import Link, Opening, Weights
from attnscope.session.choosing import Chosen
from attnscope.session.opening import ENTROPY
from attnscope.session.questions.exchanging import Controls, exchange_of, layers_of, rounding, runs
from attnscope.session.questions.heads import allowed_pairs, check_has_words, overview_in, tell_windows
from attnscope.session.reading import Reading
from attnscope.session.wanted import Looking
from attnscope.vocabulary import Kind, Route

MOST_HEADS, MOST_NUMBERS = 16, 400_000  # limits up to which all heads are in full
# number of shuffled texts to compare a page's first link with, their seed, most tokens of such a text
CONTROLS, SEED, CONTROLLED = 8, 0, 512
Held = Mapping[str, Any]  # page parts: `heads`, an overview; `full`, heads with queries and keys
Places = tuple[tuple[int, int], ...]


class Extent(NamedTuple):
    """Sizes of the attention that a page would hold, known before the model runs.

    `causal` queries see no key behind them.
    """

    layers: int
    heads: int
    queries: int
    keys: int
    causal: bool


def extent(reading: Reading, chosen: Chosen) -> Extent | None:
    """Sizes of the chosen heads; None where the positions are not those of the inputs."""
    if chosen.block:
        return None
    if reading.perceived is not None:
        return _foreseen(reading, chosen)
    queries, keys = map(len, reading.sides(chosen.kind))
    return Extent(len(chosen.layers), len(chosen.heads), queries, keys, chosen.kind is Kind.DECODER)


def _foreseen(reading: Reading, chosen: Chosen) -> Extent | None:
    """The extent by the processor's patches or frames; None where positions are not known.

    A layer that reads in windows, or pools, holds less than all of them (see `seen_extent`).
    """
    labels = reading.labels(chosen)
    read = labels.tokens or ()
    queries = len(read if chosen.kind is Kind.ENCODER else labels.target or read)
    keys = len(read) if chosen.kind is Kind.CROSS else queries
    if not queries or not keys:
        return None
    return Extent(len(chosen.layers), len(chosen.heads), queries, keys, chosen.kind is Kind.DECODER)


def seen_extent(reading: Reading, chosen: Chosen, foreseen: Extent) -> Extent:
    """The true extent: for a picture or a sound the first chosen layer is run to count positions."""
    if reading.perceived is None or chosen.route is Route.RETURNED:
        return foreseen
    first = replace(chosen, layers=chosen.layers[:1], heads=chosen.heads[:1])
    with reading.listener.working("reading the attention"):
        call = reading.capture(first).call(first.layers[0], block=0)
    return foreseen._replace(queries=len(call.query_tokens), keys=len(call.key_tokens))


def kept(reading: Reading, chosen: Chosen, measures: Sequence[str] = ENTROPY) -> Reading:
    """The reading with its attention captured, so that all of a page comes from one run."""
    if reading.captured is not None or chosen.route is Route.RETURNED:
        return reading
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen, projections=needs_norms(measures))
    return replace(reading, captured=attention) if isinstance(attention, Capture) else reading


def read_small(reading: Reading, chosen: Chosen, looking: Looking) -> tuple[Thumbnails, Held]:
    """Thumbnails of every chosen head, and the overview and full heads beside them, from one run."""
    check_has_words(reading, chosen, looking)
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen)
        if reading.perceived is not None and isinstance(attention, Capture):
            tell_windows(attention, reading, chosen)
        overview = overview_in(attention, chosen, ENTROPY)
        full = in_full(attention, chosen, strongest_first(overview))
        view = View(looking.unit, looking.treatment)
        small = made_small(overview, _allowed(attention, chosen, overview), view)
    return replace(small, notes=(*small.notes, *reading.notes)), {"full": full, "heads": (overview,)}


def read_ranked(reading: Reading, chosen: Chosen, ranked: Places, *, whole: bool) -> Held:
    """The ranked heads for a page: their overview if `whole`, and the best of them in full.

    Empty where layers differ in their positions; the listener is told so.
    """
    places = tuple(place for place in ranked if place[1] in chosen.heads)
    layers, heads = (tuple(sorted({place[axis] for place in places})) for axis in (0, 1))
    meant = replace(chosen, layers=layers, heads=heads)
    try:
        with reading.listener.working("reading the attention"):
            attention = reading.attention(meant)
            overview = (overview_in(attention, meant, ENTROPY),) if whole else ()
            return {"full": in_full(attention, meant, places, few=True), "heads": overview}
    except InputError as error:
        reading.listener.notice(f"the page shows no weights: {error}")
        return {}


def heads_in_full(
    reading: Reading, chosen: Chosen, overview: Overview, first: Link | None
) -> tuple[HeadAttention, ...]:
    """Heads of an overview with queries and keys, the link's first; empty if none is recomputed."""
    with reading.listener.working("reading the attention"):
        return in_full(reading.attention(chosen), chosen, strongest_first(overview, first))


def most_telling(reading: Reading, chosen: Chosen, overview: Overview) -> Opening:
    """The overview's most telling link, compared with a few shuffled texts unless the text is long.

    The overview is by tokens.
    """
    controls, count = None, 0
    if max(len(overview.query_tokens), len(overview.key_tokens)) <= CONTROLLED:
        with suppress(InputError):  # without controls the link is sought all the same
            controls, count = _most_of_controls(reading, chosen, overview)
    return Opening(overview.most_telling(controls), count)


def _most_of_controls(reading: Reading, chosen: Chosen, overview: Overview) -> tuple[Weights, int]:
    if not overview.query_tokens.texts or not overview.key_tokens.texts:
        raise InputError("no texts are read")
    with reading.listener.working("reading shuffled texts"):
        layers, whole = layers_of(reading.attention(chosen), chosen)
        exchange = exchange_of(reading, chosen, names_in(whole)[1], ())
        texts = exchange.controls(Controls(CONTROLS, SEED))

        def heads(of: Sequence[Layer]) -> Weights:
            return np.asarray(np.nan_to_num(np.stack([rows_of(layer, chosen.heads) for layer in of])))

        own = heads(layers)
        most = np.zeros_like(own)
        if own.shape[2:] != overview.dense_weights[0][0].shape:
            raise InputError("what is shown is not what was read")
        tolerated = rounding(whole)

        def alike(others: Sequence[Layer]) -> bool:
            return bool(np.abs(heads(others) - own).max() <= tolerated)

        for run in runs(reading, chosen, texts, exchange, layers, alike):
            np.maximum(most, heads(run), out=most)
    return most, len(texts)


def in_full(
    attention: Capture | Returned, chosen: Chosen, places: Places, *, few: bool = False
) -> tuple[HeadAttention, ...]:
    """The heads at `places`, recomputed: all if they have room on a page, else the first alone.

    With `few` as many as there is room for. Empty for weights that the model returned.
    """
    if isinstance(attention, Returned) or not places:
        return ()
    first = recompute_head(attention, *places[0], block=chosen.block)
    most = min(MOST_HEADS, MOST_NUMBERS // max(_numbers(first), 1))
    if few:
        places = places[:most]
    elif len(places) > most:
        places = places[:1]
    rest = (recompute_head(attention, *place, block=chosen.block) for place in places[1:])
    return (first, *rest) if places else ()


def strongest_first(overview: Overview, link: Link | None = None) -> Places:
    """Layer and head of all heads, with the link's head first, else that of the strongest weight."""
    i, j = divmod(int(np.nan_to_num(overview.strongest_weight).argmax()), len(overview.heads))
    i, j = (i, j) if link is None else (link.layer, link.head)
    first = overview.layers[i], overview.heads[j]
    every = ((layer, head) for layer in overview.layers for head in overview.heads)
    return (first, *(place for place in every if place != first))


def _allowed(attention: Capture | Returned, chosen: Chosen, overview: Overview) -> AllowedPairs:
    """The mask of allowed keys by head; for returned weights every pair is allowed."""
    if isinstance(attention, Returned):
        everywhere = torch.ones(overview.dense_weights[0][0].shape, dtype=torch.bool)
        return lambda i, j: everywhere
    return allowed_pairs(attention, chosen, overview.layers)


def _numbers(head: HeadAttention) -> int:
    return head.q.size + head.k.size + head.weights.size * (1 + len(head.terms))
