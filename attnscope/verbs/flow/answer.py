"""Answers `flow`: attribution of a query to input tokens through all layers, and token replacement."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from attnscope.analysis.answers.question import Question
from attnscope.analysis.heads.view import Units, units_of
from attnscope.analysis.inputs.attributing import Chance, Direction, Measured, attributed
from attnscope.analysis.inputs.entrance import of_pieces, of_tokens
from attnscope.analysis.inputs.replacing import SHUFFLES, Blanked, Input, trusted, vectors
from attnscope.analysis.prediction import last_of as last_token
from attnscope.analysis.prompts import NONE, OnePrompt, Seen, Spans
from attnscope.analysis.rows import Layer, rows_of
from attnscope.attention import Capture
from attnscope.capture import Selection
from attnscope.capture.returned import Returned
from attnscope.capture.running import evaluating
from attnscope.errors import InputError, listed
from attnscope.model.pooling import is_pooled, named_pooling
from attnscope.results import Verdict
from attnscope.results.claims.attributed import DISTANCE, Attributed, ByGradients
from attnscope.results.claims.effect import Asks
from attnscope.results.claims.prompts import CORRELATION, Asked, Figure
from attnscope.session.choosing import Chosen
from attnscope.session.questions.answers import (
    behind,
    finds,
    meant_at,
    query_of,
    question_of,
    spoken_token,
    tags,
)
from attnscope.session.questions.pooled import last_of, pooled_by, pooling_asked
from attnscope.session.questions.replacing import (
    MOST_HELD,
    Replacing,
    layer_module,
    replaced_each,
    silent,
    word_of,
)
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
from attnscope.tokens import Patches, Tokens
from attnscope.verbs.flow.question import Follow
from attnscope.verbs.flow.result import Ablated, Flow
from attnscope.verbs.flow.rollout import by_units, followed_back, max_flow, mean_weights, mixed, rolled_out
from attnscope.vocabulary import Kind, Route, Special

MOST_FLOW = 128  # most tokens for max-flow: one search for each token
MOST_ZEROED = 256  # most positions for value zeroing: each is one run of every layer


def flow(reading: Reading, chosen: Chosen, asked: Follow) -> Flow:
    """Attribute the query to every input token, by rollout and other methods, through the first layers.

    The query is a token, a patch (`r2c4`), a time (`0.20s`), a position, or several, whose rows are averaged.
    With sentences or other units the query is one of these, and each unit is replaced as a whole. `pooled` is
    the vector that the model makes of the whole text; `pooled:mean` and others say how. Without a query, a
    tagger uses the token with the surest tag. `InputError` for cross-attention, for layers that read in
    windows, and for layers that are not the first ones of the model.
    """
    _check_kind(chosen)
    before = [layer for layer in chosen.tower.layers if layer <= max(chosen.layers)]
    if list(chosen.layers) != before:
        raise InputError(f"flow goes back to the input: choose the first layers, --layer {listed(before)}")
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
    masks = [i for i in own if tokens.items[i].id == reading.encoded.mask_id]
    place = None if units is None else masks[0] if len(masks) == 1 else own[-1]
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
    """Raise `InputError` for a query that is missing in the text or ambiguous, before weights load."""
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


def _sampled(reading: Reading, chosen: Chosen, query: str | int, looking: Looking) -> tuple[int, ...] | None:
    """Rows that certify the heads of a long text, the query's among them; None to read all rows."""
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
    )  # one more layer: a node that takes that share of each token


def _check_kind(chosen: Chosen) -> None:
    if chosen.kind is Kind.CROSS:
        raise InputError(
            "flow goes back through self-attention: cross-attention leads to another text (--kind encoder or "
            "decoder)"
        )


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
            zeroed, seen = rolled_out(module, inputs, selection, chosen.heads, len(result.tokens))
    except InputError as error:
        return replace(result, no_zeroing=str(error))
    return replace(result, zeroed=np.einsum("q,lqk->lk", start, zeroed), zeroing=seen)


def beside_replacing(
    reading: Reading, chosen: Chosen, result: Flow, units: Units | None, meant: Follow
) -> Flow:
    """Add the effect of replacing each of the `units`, or the reason why none can be replaced.

    Without units (a pooled vector) each token is replaced, and no token is the query.
    """
    question = None if result.query is None else word_of(reading, chosen, result.tokens, result.query)
    own = () if units is None else units.queries[units.query or 0]
    if meant.names_answer and finds(reading):
        question = question_of(reading, meant.answer, meant.against)
        if not {*(question.ids or ())} <= {*own}:
            raise InputError(f"a flow of an answer goes back from its own tokens: --from '{question.text}'")
    elif meant.names_answer:
        if question is None:
            raise InputError(f"{silent(reading)}: leave --answer and --against out")
        reading, question = meant_behind(reading, question, result, meant.answer, meant.against)
        result = replace(result, notes=(*result.notes, *reading.told))
    if result.tokens.stretches and result.pooled is not None:
        return replace(result, reason="parts of pictures and sounds are replaced for one query alone")
    layer = result.layers[-1]
    groups = units.keys if units is not None and result.by.joins else ()
    asked = Replacing(
        result.tokens, result.reached, result.query, layer, question, result.pooled, own, groups, result.by
    )
    found = replaced_each(reading, chosen, asked)
    if isinstance(found, str):
        return replace(result, reason=found)
    answer = None if question is None else Chance(question, found.effect.ids)
    result = by_gradients(reading, chosen, result, found.given, answer)
    effects = np.full(len(result.tokens), np.nan)
    for places, lost in zip(found.places, found.effect.lost, strict=True):
        effects[list(places)] = lost
    groups = found.places if found.together else ()
    near = _near(result, own)
    ablated = Ablated(
        effects,
        found.by,
        found.effect.answer,
        float("nan") if found.effect.against else found.effect.chance,
        *trusted(result.methods, effects, near, meant.seed, groups),
        SHUFFLES,
        meant.seed,
        groups,
        found.input,
        replacement_id=found.id,
        answer_ids=found.effect.ids,
        against=found.effect.against,
        lead=found.effect.chance if found.effect.against else float("nan"),
        tag=question is not None and question.asks in (Asks.TAG, Asks.SPAN),
    )
    return replace(result, ablated=ablated)


def _near(result: Flow, query: Sequence[int]) -> Float[np.ndarray, " key"]:
    """Negative distance of each token to the query: along the text or in time, in a picture over its grid."""
    stretch = next(iter(result.tokens.stretches), None)
    if result.query is None:
        assert result.pooled is not None, "otherwise there is a query"
        weights = result.pooled.weights
        far = np.abs(np.arange(len(weights)) - int(np.argmax(weights))).astype(np.float64)
        return np.asarray(-far if weights.max() == 1 else np.zeros(len(far)))  # a mean has no nearest token
    if not isinstance(stretch, Patches):
        return np.asarray(-np.abs(np.arange(len(result.tokens)) - float(np.mean(query))))
    near, numbers = np.zeros(len(result.tokens)), {place: n for n, place in enumerate(stretch.positions)}
    if result.query not in numbers:
        return near  # a token without a place in the picture has no distances
    row, column = divmod(numbers[result.query], stretch.columns)
    for place, number in numbers.items():
        if place >= 0:
            near[place] = -np.hypot(number // stretch.columns - row, number % stretch.columns - column)
    return near


def meant_behind(
    reading: Reading, question: Question, result: Flow, answer: str | None, against: str | None
) -> tuple[Reading, Question]:
    """The question for a named answer, and the reading for it, longer where it has several tokens."""
    named = [each for each in (answer, against) if each is not None]
    single = all(spoken_token(reading, each) is not None for each in named)
    if answer is None or single or question.asks is not Asks.NEXT or reading.perceived is not None:
        return reading, meant_at(reading, question, answer, against)
    if question.position != last_token(result.tokens):
        raise InputError(
            f"--answer '{answer}' has several tokens, which follow the text: --from takes its last token, "
            f"{result.tokens.named(last_token(result.tokens))}"
        )
    prompt = result.tokens.only(range(last_token(result.tokens) + 1))
    whole, question, _ = behind(reading, prompt, question, answer, against)
    return whole, question


def by_gradients(
    reading: Reading, chosen: Chosen, result: Flow, replaced: Input | Blanked, answer: Chance | None
) -> Flow:
    """Add the gradient attributions of the answer to the flow, or the reason why there are none.

    Without an answer they start from the vector of the query.
    """
    if result.by.joins:
        return _without(result, f"they go back to tokens: leave --by {result.by} out")
    if result.query is None:
        return _without(result, "they follow the answer or the vector of one token, not a pooled vector")
    if len(result.tokens) > MOST_HELD:
        return _without(result, f"all of a run is kept for it: up to {MOST_HELD} positions")
    model, inputs = reading.model.module, reading.inputs
    selection: Selection | str = chosen.selection()
    if chosen.route is Route.RETURNED:
        selection = "weights that a model returns have no gradient here"
    elif chosen.block:
        selection = "a layer that reads in blocks has no one matrix of weights"
    with reading.running("following the answer back by gradients"):
        try:
            entrance = (
                of_tokens(model, inputs, replaced)
                if isinstance(replaced, Input)
                else of_pieces(inputs, replaced, len(result.tokens))
            )
            measured = _turned(reading, chosen, result, replaced) if answer is None else answer
        except InputError as error:
            return _without(result, str(error))
        found = attributed(model, entrance, measured, selection, result.layers, result.heads)
    count = len(result.tokens)  # tokens of the answer may follow the text
    of_text = (each if each.values is None else replace(each, values=each.values[:count]) for each in found)
    return replace(result, attributed=tuple(of_text))


def _without(result: Flow, reason: str) -> Flow:
    return replace(result, attributed=tuple(Attributed(name, None, reason) for name in ByGradients))


def _turned(reading: Reading, chosen: Chosen, result: Flow, replaced: Input | Blanked) -> Measured:
    module, inputs = reading.model.module, reading.inputs
    inside = chosen.kind is Kind.ENCODER and reading.model.writes
    tokens = isinstance(replaced, Input)
    last = last_of(module, inside) if tokens else layer_module(module, chosen, result.layers[-1])
    assert last is not None, "its vectors turned"
    with evaluating(module):
        was = vectors(module, inputs, last, nullcontext())
    assert was is not None, "its vectors turned"
    assert result.query is not None, "a query, where nothing is pooled"
    return Direction(last, result.query, was[:, result.query].float())


def figures(result: Flow, spans: Spans) -> OnePrompt:
    """Correlation of each method with replacement effects, and mean effect of each field of the prompt."""
    found = dict[Figure, Seen]()
    if (replaced := result.ablated) is None:
        return OnePrompt(Asked.FLOW, found)
    alone = next((each.correlation for each in replaced.trust if each.method == DISTANCE), NONE)
    for each in replaced.trust:
        if each.method != DISTANCE:
            stands = bool(each.correlation > each.high)
            found[Figure(each.method, CORRELATION)] = Seen(each.correlation, alone, stands=stands)
    measured = f"{replaced.unit} lost" if replaced.answer else replaced.unit
    tried = np.isfinite(replaced.effects)
    for name, places in spans.items():
        own = np.isin(np.arange(len(tried)), places) & tried
        rest = replaced.effects[tried & ~own]
        if own.any():
            value, others = float(replaced.effects[own].mean()), float(rest.mean()) if len(rest) else NONE
            stands = bool(np.isfinite(others)) and value > float(rest.max())
            found[Figure(f"field:{name}", measured)] = Seen(value, others, stands=stands)
    return OnePrompt(Asked.FLOW, found)
