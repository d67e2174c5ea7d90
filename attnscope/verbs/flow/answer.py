"""From one token back to the input through all layers, and what replacing each input token really does."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from attnscope.analysis.heads.view import Units, units_of
from attnscope.analysis.rows import Layer, rows_of
from attnscope.attention import Capture
from attnscope.capture.returned import Returned
from attnscope.errors import InputError, listed
from attnscope.model.pooling import is_pooled, named_pooling
from attnscope.results import Verdict
from attnscope.session.choosing import Chosen
from attnscope.session.questions.answers import finds, query_of, tags
from attnscope.session.questions.pooled import pooled_by, pooling_asked
from attnscope.session.questions.rows import (
    attention_of,
    check_whole_fits,
    layers_of,
    may_read_rows,
    notes_of,
    sample_with,
)
from attnscope.session.reading import Reading
from attnscope.session.wanted import Looking
from attnscope.tokens import Tokens
from attnscope.verbs.flow.question import Follow
from attnscope.verbs.flow.replaced import beside_replacing
from attnscope.verbs.flow.result import Flow
from attnscope.verbs.flow.rollout import (
    by_units,
    followed_back,
    max_flow,
    mean_weights,
    mixed,
    rolled_out,
)
from attnscope.vocabulary import Kind, Route, Special

MOST_FLOW = 128  # tokens up to which the largest flow is looked for: one search for each
MOST_ZEROED = 256  # positions up to which values are zeroed, each in a run of every layer


def flow(reading: Reading, chosen: Chosen, asked: Follow) -> Flow:
    """What reaches the query from every input token through the chosen layers, the first ones of the model.

    The query is a token, a patch (`r2c4`) or a time (`0.20s`), or a position, or several, whose rows are
    averaged; looked at by sentences or other units it is of these, and all of them are followed to and
    replaced as wholes; `pooled` is the one vector that the model makes of the text, `pooled:mean` and others
    say how. Without a query a tagger is asked for the token whose tag is surest. `InputError` for
    cross-attention, for layers that read in windows, and for layers that leave some out before them.
    """
    _check(reading, chosen)
    asked = replace(asked, **reading.filled(vars(asked)))
    query, looking = query_of(reading, asked), asked.looking
    if asked.names_answer and reading.task is None and not tags(reading) and not finds(reading):
        raise InputError(f"{reading.model.name} has no word head: leave --answer and --against out")
    pooling = pooling_asked(reading, chosen, query)
    sampled = None if pooling is not None else _sampled(reading, chosen, query, looking)
    if pooling is not None:
        _check_by_tokens(looking)
        check_whole_fits(reading, chosen, "flow from a pooled vector")
    attention = attention_of(reading, chosen, sampled)
    layers, certified = _layers(attention, chosen, reading.asked.sensed)
    tokens = layers[0].query_tokens
    units = None if pooling is not None else _units(chosen, tokens, query, looking)
    own = () if units is None else units.queries[units.query or 0]
    place = None if units is None else _answers_at(reading, tokens, own)
    pooled = None if pooling is None else pooled_by(reading, chosen, pooling, len(tokens))
    start = np.isin(np.arange(len(tokens)), own) / len(own) if pooled is None else pooled.weights
    with reading.listener.working("following the attention through the layers"):
        back = followed_back(layers, chosen.heads, start)
        few = len(tokens) <= MOST_FLOW and not looking.unit.joins
        most = _most(layers, chosen.heads, start if len(own) != 1 else own[0]) if few else None
    if most is None and not looking.unit.joins:
        reading.listener.notice(
            f"no flow: it is looked for in up to {MOST_FLOW} tokens, here are {len(tokens)}"
        )
    result = Flow(
        query=place,
        kind=chosen.kind,
        tokens=tokens,
        layers=tuple(layer.layer for layer in layers),
        heads=chosen.heads,
        raw=back.raw,
        rollout=back.rollout,
        by_norm=back.by_norm,
        flow=most,
        most=MOST_FLOW,
        ablated=None,
        reason="",
        certified=certified,
        provenance=attention.provenance,
        tower=attention.tower,
        notes=(*reading.notes, *notes_of(attention, layers)),
        sampled=0 if sampled is None else len(sampled),
        pooled=pooled,
        by=looking.unit,
        query_span=own if len(own) > 1 and not looking.unit.joins else (),
    )
    result = _with_zeroing(reading, chosen, result, start)
    result = beside_replacing(reading, chosen, result, units, asked)
    return by_units(result, units) if units is not None and looking.unit.joins else result


def check_query(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: Follow) -> None:
    """`InputError` for a query that is not there, or that stands in several places."""
    query, looking = asked.query, asked.looking
    assert query is not None, "looked for where it is named"
    if isinstance(query, str) and is_pooled(query, keys.sentence):
        _check_kind(chosen)
        _check_by_tokens(looking)
        named_pooling(query)
        return
    _units(chosen, keys if queries is None else queries, query, looking)


def _check_by_tokens(looking: Looking) -> None:
    if looking.unit.joins:
        raise InputError(f"flow from a pooled vector goes by tokens: leave --by {looking.unit} out")


def _units(chosen: Chosen, tokens: Tokens, query: str | int, looking: Looking) -> Units:
    _check_kind(chosen)
    if looking.treatment is not Special.SHOW:
        raise InputError("flow follows all that reaches a token: leave --special out")
    by = looking.unit
    if by.joins and not tokens.texts:
        raise InputError(f"--by {by} takes tokens of a text together: a picture or a sound has none")
    return units_of(tokens, tokens, by=by, query=query)


def _answers_at(reading: Reading, tokens: Tokens, asked: Sequence[int]) -> int:
    masks = [i for i in asked if tokens.items[i].id == reading.encoded.mask_id]
    return masks[0] if len(masks) == 1 else asked[-1]


def _sampled(reading: Reading, chosen: Chosen, query: str | int, looking: Looking) -> tuple[int, ...] | None:
    """The rows by which heads of a long text are certified, the query's among them; None: all are read."""
    if may_read_rows(reading, chosen):
        tokens = reading.tokens_of(chosen.kind)
        units = _units(chosen, tokens, query, looking)
        return sample_with(len(tokens), *units.queries[units.query or 0])
    check_whole_fits(reading, chosen, "flow")
    return None


def _most(
    layers: Sequence[Layer], heads: Sequence[int], start: int | Float[np.ndarray, " query"]
) -> Float[np.ndarray, " key"]:
    every = range(len(layers[0].query_tokens))
    means = [mean_weights(layer, heads, every, rows_of(layer, heads)) for layer in layers]
    mixing = [mixed(mean) for mean in means]
    if isinstance(start, int):
        return max_flow(mixing, start)
    return max_flow(
        [*mixing, np.tile(start, (len(start), 1))], 0
    )  # one node more, which takes that much of each


def _check_kind(chosen: Chosen) -> None:
    if chosen.kind is Kind.CROSS:
        raise InputError(
            "flow goes back through self-attention: cross-attention leads to another text (--kind encoder or "
            "decoder)"
        )


def _check(reading: Reading, chosen: Chosen) -> None:
    _check_kind(chosen)
    before = [layer for layer in chosen.tower.layers if layer <= max(chosen.layers)]
    if list(chosen.layers) != before:
        raise InputError(f"flow goes back to the input: choose the first layers, --layer {listed(before)}")


def _layers(
    attention: Capture | Returned, chosen: Chosen, sensed: bool
) -> tuple[list[Layer], dict[Verdict, int]]:
    if isinstance(attention, Capture) and sensed:
        for layer in dict.fromkeys(call.layer for call in attention.calls):
            if attention.blocks(layer) > 1:
                raise InputError(f"flow needs whole layers: layer {layer} reads in windows")
    if isinstance(attention, Capture):
        attention.check_in_place("flow goes back to tokens")
    layers, certified = layers_of(attention, chosen)
    sizes = {(len(layer.query_tokens), len(layer.key_tokens)) for layer in layers}
    if len(sizes) > 1 or any(queries != keys for queries, keys in sizes):
        raise InputError(
            "flow needs the same tokens in every layer, as queries and as keys: here they differ"
        )
    return layers, certified


def _with_zeroing(reading: Reading, chosen: Chosen, result: Flow, start: Float[np.ndarray, " query"]) -> Flow:
    if chosen.route is Route.RETURNED:
        return replace(result, no_zeroing="weights that a model returns say nothing of its values")
    if chosen.block:
        return replace(result, no_zeroing="values are zeroed in all blocks of a layer")
    if len(result.tokens) > MOST_ZEROED:
        return replace(result, no_zeroing=f"values are zeroed of up to {MOST_ZEROED} positions")
    selection = chosen.selection(result.layers)
    module, inputs = reading.model.module, reading.inputs
    try:
        with reading.running("zeroing values"):
            zeroed = rolled_out(module, inputs, selection, chosen.heads, len(result.tokens))
    except InputError as error:
        return replace(result, no_zeroing=str(error))
    return replace(result, zeroed=np.einsum("q,lqk->lk", start, zeroed.rollout), zeroing=zeroed.intervention)
