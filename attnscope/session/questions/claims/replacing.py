"""What replacing each token, patch or frame does to the model's answer, beside what a flow gives to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from torch import nn

from attnscope.analysis.claims.ablation.question import Question, word_at
from attnscope.analysis.claims.flow.pieces import Blanked, blanked, lost_without, turned_without
from attnscope.analysis.claims.flow.replacing import SHUFFLES, Input, lost_chance, trusted, turned_vector
from attnscope.analysis.claims.pieces import pieces_of
from attnscope.analysis.heads.view import Units
from attnscope.capture.faults import if_it_runs
from attnscope.capture.intervening.kept import holding
from attnscope.results import Contents
from attnscope.results.claims.ablation import Asks
from attnscope.results.claims.flow import Ablated, Flow
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.tokens import Patches
from attnscope.vocabulary import Kind

NOTHING = "nothing"  # what a token is replaced by where a vocabulary has neither mask nor unknown token
MEAN_PATCH, SILENCE = "the mean patch", "silence"
MOST_REPLACED = 1024  # tokens of a text that are replaced one by one


Group = tuple[int, ...]  # positions


class Effect(NamedTuple):
    """What replacing each place did; the answer, its chance and its id, None where there is none."""

    lost: Float[np.ndarray, " place"]
    answer: str = ""
    chance: float = float("nan")
    id: int | None = None


def beside_replacing(reading: Reading, chosen: Chosen, result: Flow, seed: int, units: Units) -> Flow:
    """The same with what replacing each of the `units` does, or with the reason why none could be."""
    if result.tokens.stretches:
        return _beside_blanking(reading, chosen, result, seed)
    if len(result.tokens) > MOST_REPLACED:
        few = f"tokens are replaced, each in a run of its own, in texts of up to {MOST_REPLACED:,}"
        return replace(result, reason=few)
    return _beside_other_tokens(reading, chosen, result, seed, units)


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
    last = _last_layer(module, chosen, result.layers[-1])
    turned = None if last is None else turned_without(module, inputs, parts, result.query, last)
    return None if turned is None else Effect(turned)


def _last_layer(module: nn.Module, chosen: Chosen, layer: int) -> nn.Module | None:
    """The module that returns the vectors behind `layer`."""
    site = next(site for site in chosen.tower.sites if layer in site.layers)
    return next(iter(holding(module, site.path)), None)


def _near(result: Flow, query: Sequence[int] = ()) -> Float[np.ndarray, " key"]:
    """The closer to the query the more: along the text or in time, of a picture across its grid."""
    stretch = next(iter(result.tokens.stretches), None)
    if not isinstance(stretch, Patches):
        middle = float(np.mean(query or [result.query]))
        return np.asarray(-np.abs(np.arange(len(result.tokens)) - middle))
    near, numbers = np.zeros(len(result.tokens)), {place: n for n, place in enumerate(stretch.positions)}
    if result.query not in numbers:
        return near  # nothing is nearer to a token that stands for no place
    row, column = divmod(numbers[result.query], stretch.columns)
    for place, number in numbers.items():
        if place >= 0:
            near[place] = -np.hypot(number // stretch.columns - row, number % stretch.columns - column)
    return near


def _question(reading: Reading, chosen: Chosen, result: Flow) -> Question | None:
    """The word at the query; None of a model without one, whose vectors are looked at."""
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


def _beside_other_tokens(reading: Reading, chosen: Chosen, result: Flow, seed: int, units: Units) -> Flow:
    """The same with what replacing each unit does, or with the reason why nothing could be replaced."""
    own = chosen.kind is Kind.DECODER and reading.target is not None
    name = "decoder_input_ids" if own else "input_ids"
    ids = reading.inputs.get(name)
    if ids is None or ids[0].tolist() != list(result.tokens.ids):
        return replace(result, reason="the positions are not the tokens of the text, which could be replaced")
    instead = _replacement(reading)
    query = list(units.queries[units.query or 0])
    places = _replaced(result, instead, units)
    if not places:
        return replace(result, reason=f"there is no other {result.by} that could be replaced")
    asked = Input(name, tuple(places), instead.id)
    with reading.listener.working(f"replacing {len(places)} {result.by.several}"):
        effect = _effects(reading, chosen, result, asked, query)
    if effect is None:
        return replace(result, reason=_silent(reading))
    effects = np.full(len(result.tokens), np.nan)
    for group, lost in zip(places.values(), effect.lost, strict=True):
        effects[list(group)] = lost
    groups = tuple(places.values())
    trust = trusted(result.methods, effects, _near(result, query), seed, groups)
    ablated = Ablated(
        effects,
        instead.name,
        effect.answer,
        effect.chance,
        *trust,
        SHUFFLES,
        seed,
        groups if result.by.joins else (),
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


def _replaced(result: Flow, instead: _Replacement, units: Units) -> dict[Group, Group]:
    """By the tokens that are replaced at once the unit of which they are, but for the query's own.

    They are its ordinary tokens that reach the query and are not the replacement already.
    """
    items = result.tokens.items
    found = dict[Group, Group]()
    for number, unit in enumerate(units.keys):
        ordinary = tuple(
            i
            for i in unit
            if not (items[i].special or items[i].padding)
            and items[i].id != instead.id
            and result.rollout[-1, i] > 0
        )
        if ordinary and number != units.query:
            found[ordinary] = unit
    return found


def _effects(
    reading: Reading, chosen: Chosen, result: Flow, asked: Input, query: Sequence[int]
) -> Effect | None:
    """What is lost of the answer at the query; of a model without one how far the query's vector turns."""
    model, inputs, question = reading.model, reading.inputs, _question(reading, chosen, result)
    inside = chosen.kind is Kind.ENCODER and model.writes
    with if_it_runs(model.module, inputs, model.name):
        if question is not None:
            made = lost_chance(model.module, inputs, asked, question)
            return None if made is None else Effect(made[0], model.spell(made[1]), made[2], made[1])
        turned = turned_vector(model.module, inputs, asked, query, _last(model.module, inside))
        return None if turned is None else Effect(turned)


def _last(module: Any, encoder: bool) -> Any:
    """What returns the last vectors: the encoder of two halves, or the model without its head."""
    return module.get_encoder() if encoder else getattr(module, "base_model", module)
