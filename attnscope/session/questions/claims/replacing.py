"""What replacing each token, patch or frame does to the model's answer, beside what a flow gives to it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attnscope.analysis.claims.ablation.question import Question, word_at
from attnscope.analysis.claims.flow.pieces import Blanked, blanked, lost_without, turned_without
from attnscope.analysis.claims.flow.replacing import (
    SHUFFLES,
    Input,
    lost_chance,
    trusted,
    turned_pooled,
    turned_vector,
)
from attnscope.analysis.claims.pieces import pieces_of
from attnscope.capture.faults import if_it_runs
from attnscope.model.pooling import Pooling
from attnscope.results import Contents
from attnscope.results.claims.ablation import Asks
from attnscope.results.claims.flow import Ablated, Flow
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.gradients import Asked, by_gradients, layer_module
from attnscope.session.questions.claims.pooled import last_of, pool_by
from attnscope.session.reading import Reading
from attnscope.tokens import Patches, Tokens
from attnscope.vocabulary import Kind

NOTHING = "nothing"  # what a token is replaced by where a vocabulary has neither mask nor unknown token
MEAN_PATCH, SILENCE = "the mean patch", "silence"
MOST_REPLACED = 1024  # tokens of a text that are replaced one by one


class Effect(NamedTuple):
    """What replacing each place did; the answer, its chance and its id, None where there is none."""

    lost: Float[np.ndarray, " place"]
    answer: str = ""
    chance: float = float("nan")
    id: int | None = None


def beside_replacing(reading: Reading, chosen: Chosen, result: Flow, seed: int) -> Flow:
    """The same with what replacing each part of the input does, or with the reason why none could be."""
    if result.tokens.stretches and result.pooled is not None:
        return replace(result, reason="parts of pictures and sounds are replaced for one query alone")
    if result.tokens.stretches:
        return _beside_blanking(reading, chosen, result, seed)
    if len(result.tokens) > MOST_REPLACED:
        few = f"tokens are replaced, each in a run of its own, in texts of up to {MOST_REPLACED:,}"
        return replace(result, reason=few)
    return _beside_other_tokens(reading, chosen, result, seed)


def _beside_blanking(reading: Reading, chosen: Chosen, result: Flow, seed: int) -> Flow:
    """Of a picture or a sound: its patches or frames without what they hold."""
    perceived = reading.perceived
    assert perceived is not None, "only a picture or a sound has stretches"
    pieces = pieces_of(perceived.inputs, perceived.positions, result.tokens, perceived.medium)
    if pieces is None:
        return replace(result, reason="which part of the input each position stands for cannot be told")
    reached = set(np.flatnonzero(result.reached).tolist()) - {result.query}
    parts = blanked(pieces, result.tokens, reached, perceived.medium)
    if not parts.groups:
        return replace(result, reason="there is no other part of the input that could be replaced")
    model, inputs = reading.model, reading.inputs
    question = _question(reading, chosen, result)
    with (
        reading.listener.working(f"replacing {len(parts.groups)} parts"),
        if_it_runs(model.module, inputs, model.name),
    ):
        effect_of_each = _effect_of_parts(reading, chosen, result, parts, question)
    if effect_of_each is None:
        return replace(result, reason=_silent(reading))
    result = by_gradients(reading, chosen, result, parts, Asked(question, effect_of_each.id))
    effects = np.full(len(result.tokens), np.nan)
    for group, effect in zip(parts.groups, effect_of_each.lost, strict=True):
        effects[list(group)] = effect
    trust = trusted(result.methods, effects, _near(result), seed, parts.groups)
    name = MEAN_PATCH if pieces.of is Contents.PICTURE else SILENCE
    return replace(
        result,
        ablated=Ablated(
            effects,
            name,
            effect_of_each.answer,
            effect_of_each.chance,
            *trust,
            SHUFFLES,
            seed,
            parts.groups,
            pieces.name,
            answer_id=effect_of_each.id,
        ),
    )


def _effect_of_parts(
    reading: Reading, chosen: Chosen, result: Flow, parts: Blanked, question: Question | None
) -> Effect | None:
    module, inputs = reading.model.module, reading.inputs
    if question is not None:
        lost, answer, chance = lost_without(module, inputs, parts, question)
        return Effect(lost, reading.model.spell(answer), chance, answer)
    last = layer_module(module, chosen, result.layers[-1])
    assert result.query is not None, "parts of a picture are replaced for one query"
    turned = None if last is None else turned_without(module, inputs, parts, result.query, last)
    return None if turned is None else Effect(turned)


def _near(result: Flow) -> Float[np.ndarray, " key"]:
    """The closer to the query the more: along the text or in time, of a picture across its grid."""
    stretch = next(iter(result.tokens.stretches), None)
    if result.query is None:
        assert result.pooled is not None, "otherwise there is a query"
        weights = result.pooled.weights
        far = np.abs(np.arange(len(weights)) - int(np.argmax(weights))).astype(np.float64)
        return np.asarray(-far if weights.max() == 1 else np.zeros(len(far)))  # a mean is near to none
    if not isinstance(stretch, Patches):
        return -np.abs(np.arange(len(result.tokens)) - result.query).astype(np.float64)
    near, numbers = np.zeros(len(result.tokens)), {place: n for n, place in enumerate(stretch.positions)}
    if result.query not in numbers:
        return near  # nothing is nearer to a token that stands for no place
    row, column = divmod(numbers[result.query], stretch.columns)
    for place, number in numbers.items():
        if place >= 0:
            near[place] = -np.hypot(number // stretch.columns - row, number % stretch.columns - column)
    return near


def _question(reading: Reading, chosen: Chosen, result: Flow) -> Question | None:
    """The word at the query; None of a model without one and of a whole text: vectors are looked at."""
    if result.query is None:
        return None
    inside = chosen.kind is Kind.ENCODER and reading.model.writes
    if reading.task is None or inside or all(token.id < 0 for token in result.tokens.items):
        return None
    asks = Asks.MASK if reading.task == "masked" else Asks.NEXT
    return word_at(asks, result.query, len(result.tokens), None, reading.model.spell)


def _silent(reading: Reading) -> str:
    return f"{reading.model.name} answers nothing at this token, and has no vector of it"


@dataclass(frozen=True)
class _Replacement:
    """What stands in the place of a token: the number of another one, or None for no embedding at all."""

    id: int | None
    name: str


def _beside_other_tokens(reading: Reading, chosen: Chosen, result: Flow, seed: int) -> Flow:
    """The same with what replacing each token does, or with the reason why nothing could be replaced."""
    own = chosen.kind is Kind.DECODER and reading.target is not None
    name = "decoder_input_ids" if own else "input_ids"
    ids = reading.inputs.get(name)
    if ids is None or ids[0].tolist() != list(result.tokens.ids):
        return replace(result, reason="the positions are not the tokens of the text, which could be replaced")
    instead = _replacement(reading)
    places = _replaced(result, instead)
    if not places:
        return replace(result, reason="there is no other token that could be replaced")
    asked = Input(name, places, instead.id)
    with reading.listener.working(f"replacing {len(places)} tokens"):
        effect = _effects(reading, chosen, result, asked)
    if effect is None:
        return replace(result, reason=_silent(reading))
    question = _question(reading, chosen, result)
    result = by_gradients(reading, chosen, result, asked, Asked(question, effect.id))
    effects = np.full(len(result.tokens), np.nan)
    effects[list(places)] = effect.lost
    trust = trusted(result.methods, effects, _near(result), seed)
    ablated = Ablated(
        effects,
        instead.name,
        effect.answer,
        effect.chance,
        *trust,
        SHUFFLES,
        seed,
        input=name,
        replacement_id=instead.id,
        answer_id=effect.id,
    )
    return replace(result, ablated=ablated)


def _replacement(reading: Reading) -> _Replacement:
    """The mask, else the token for what is unknown, else nothing: of GPT-2 the unknown one ends a text."""
    tokenizer = reading.model.tokenizer
    for role in ("mask", "unk"):
        id = getattr(tokenizer, f"{role}_token_id", None)
        others = {
            getattr(tokenizer, f"{other}_token_id", None) for other in ("bos", "eos", "cls", "sep", "pad")
        }
        if id is not None and id not in others:
            return _Replacement(int(id), str(getattr(tokenizer, f"{role}_token")))
    return _Replacement(None, NOTHING)


def _replaced(result: Flow, instead: _Replacement) -> tuple[int, ...]:
    """The ordinary tokens that reach the query, but for itself and what is the replacement already."""
    tokens: Tokens = result.tokens
    return tuple(
        i
        for i, token in enumerate(tokens.items)
        if i != result.query
        and not (token.special or token.padding)
        and token.id != instead.id
        and result.rollout[-1, i] > 0
    )


def _effects(reading: Reading, chosen: Chosen, result: Flow, asked: Input) -> Effect | None:
    """What is lost of the answer at the query; of a model without one how far the query's vector turns."""
    model, inputs, question = reading.model, reading.inputs, _question(reading, chosen, result)
    inside = chosen.kind is Kind.ENCODER and model.writes
    with if_it_runs(model.module, inputs, model.name):
        if question is not None:
            made = lost_chance(model.module, inputs, asked, question)
            return None if made is None else Effect(made[0], model.spell(made[1]), made[2], made[1])
        if result.pooled is not None:
            how = Pooling(result.pooled.how)
            turned = turned_pooled(model.module, inputs, asked, pool_by(how, last_of(model.module, inside)))
            return None if turned is None else Effect(turned)
        assert result.query is not None, "a query, where nothing is pooled"
        turned = turned_vector(model.module, inputs, asked, result.query, last_of(model.module, inside))
        return None if turned is None else Effect(turned)
