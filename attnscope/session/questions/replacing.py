"""Effect on the answer of replacing each token, patch or frame."""

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from torch import nn

from attnscope.analysis.answers.question import Question, word_at
from attnscope.analysis.inputs.pieces import pieces_of
from attnscope.analysis.inputs.replacing import (
    Blanked,
    Effects,
    Input,
    blanked,
    lost_chance,
    lost_without,
    turned_pooled,
    turned_vector,
    turned_without,
    word_embeddings,
)
from attnscope.analysis.prediction import tagged_places
from attnscope.capture.intervening.passing import holding
from attnscope.errors import InputError
from attnscope.model.pooling import Pooling
from attnscope.results import Contents
from attnscope.results.claims.attributed import Pooled
from attnscope.results.claims.effect import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.questions.answers import question_of, tags
from attnscope.session.questions.pooled import last_of, pool_by
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Unit

MOST_HELD = 512  # positions up to which all of a run is kept to go back through it

NOTHING = "nothing"  # the replacement in a vocabulary without mask and unknown token
MEAN_PATCH, SILENCE = "the mean patch", "silence"
MOST_REPLACED = 1024  # most tokens of a text that are replaced one by one
Group = tuple[int, ...]  # positions


@dataclass(frozen=True, eq=False)
class Replacing:
    """The tokens to replace and the answer to watch: those `reached` by the query behind `layer`.

    The answer is that of the `question`, None for the query's vector where the model answers nothing; without
    a query it is the `pooled` vector of all tokens. Positions in `left` stay as they are. `groups` of
    positions are replaced at once, `by` names their unit.
    """

    tokens: Tokens
    reached: Bool[np.ndarray, " token"]
    query: int | None
    layer: int
    question: Question | None
    pooled: Pooled | None = None
    left: Group = ()
    groups: tuple[Group, ...] = ()
    by: Unit = Unit.TOKEN

    @property
    def places(self) -> set[int]:
        """Positions that may be replaced."""
        return set(np.flatnonzero(self.reached).tolist()) - set(self.left)


class Effect(NamedTuple):
    """Loss at each place; the answer, its probability and its ids, empty where there is none.

    With `against` the probability is replaced by the lead over that other answer.
    """

    lost: Float[np.ndarray, " place"]
    answer: str = ""
    chance: float = float("nan")
    ids: tuple[int, ...] = ()
    against: str = ""

    @classmethod
    def of(cls, made: tuple[Effects, tuple[int, ...], float], question: Question) -> "Effect":
        lost, answer, level = made
        return cls(lost, question.text or question.name(answer[0]), level, answer, question.against_text)


class Replaced(NamedTuple):
    """The replaced places, the replacement, the input it went into, and the effect."""

    places: tuple[Group, ...]
    by: str
    input: str
    effect: Effect
    given: Input | Blanked
    id: int | None = None
    together: bool = False


def replaced_each(reading: Reading, chosen: Chosen, asked: Replacing) -> Replaced | str:
    """The effect of replacing each place in turn, or the reason why none could be replaced."""
    if asked.tokens.stretches:
        return _blanked(reading, chosen, asked)
    if len(asked.tokens) > MOST_REPLACED:
        return f"tokens are replaced, each in a run of its own, in texts of up to {MOST_REPLACED:,}"
    return _by_other_tokens(reading, chosen, asked)


def _blanked(reading: Reading, chosen: Chosen, asked: Replacing) -> Replaced | str:
    perceived = reading.perceived
    assert perceived is not None, "only a picture or a sound has stretches"
    pieces = pieces_of(perceived.inputs, perceived.positions, asked.tokens, perceived.medium)
    if pieces is None:
        return "which part of the input each position stands for cannot be told"
    parts = blanked(pieces, asked.tokens, asked.places, perceived.medium)
    if not parts.groups:
        return "there is no other part of the input that could be replaced"
    with reading.running(f"replacing {len(parts.groups)} parts"):
        effect = _effect_of_parts(reading, chosen, asked, parts)
    if effect is None:
        return silent(reading)
    name = MEAN_PATCH if pieces.of is Contents.PICTURE else SILENCE
    return Replaced(parts.groups, name, pieces.name, effect, parts, together=True)


def _effect_of_parts(reading: Reading, chosen: Chosen, asked: Replacing, parts: Blanked) -> Effect | None:
    module, inputs = reading.model.module, reading.inputs
    if asked.question is not None:
        return Effect.of(lost_without(module, inputs, parts, asked.question), asked.question)
    assert asked.query is not None, "parts of a picture are replaced for one query"
    last = layer_module(module, chosen, asked.layer)
    turned = None if last is None else turned_without(module, inputs, parts, asked.query, last)
    return None if turned is None else Effect(turned)


def word_of(reading: Reading, chosen: Chosen, tokens: Tokens, query: int) -> Question | None:
    """The question of the word or the tag at the query; None for a model whose vectors are looked at."""
    if tags(reading) and query in tagged_places(tokens):
        return question_of(reading, None, query=query)
    inside = chosen.kind is Kind.ENCODER and reading.model.writes
    if reading.task is None or inside or all(token.id < 0 for token in tokens.items):
        return None
    asks = Asks.MASK if reading.task == "masked" else Asks.NEXT
    return word_at(asks, query, len(tokens), None, reading.model.spell)


def silent(reading: Reading) -> str:
    return f"{reading.model.name} answers nothing at this token, and has no vector of it"


@dataclass(frozen=True)
class Replacement:
    """The token put in place of another: its id, or None for no embedding at all."""

    id: int | None
    name: str


def _by_other_tokens(reading: Reading, chosen: Chosen, asked: Replacing) -> Replaced | str:
    decodes = chosen.kind is Kind.DECODER and reading.target is not None
    name = "decoder_input_ids" if decodes else "input_ids"
    ids = reading.inputs.get(name)
    if ids is None or ids[0, : len(asked.tokens)].tolist() != list(asked.tokens.ids):
        return "the positions are not the tokens of the text, which could be replaced"
    instead = replacement(reading)
    found = _replaced(asked, instead)
    if not found:
        return f"there is no other {asked.by} that could be replaced"
    given = Input(name, tuple(found), instead.id)
    with reading.listener.working(f"replacing {len(found)} {asked.by.several}"):
        effect = _effects(reading, chosen, asked, given)
    if effect is None:
        return silent(reading)
    places, together = tuple(found.values()), asked.by.joins
    return Replaced(places, instead.name, name, effect, given, instead.id, together)


def replacement(reading: Reading) -> Replacement:
    """The mask token, else the unknown token, else nothing; not one that has another role too."""
    tokenizer, rows = reading.model.tokenizer, None
    with suppress(InputError):
        rows = getattr(word_embeddings(reading.model.module)[0], "weight", None)
    for role in ("mask", "unk"):
        id = getattr(tokenizer, f"{role}_token_id", None)
        others = {
            getattr(tokenizer, f"{other}_token_id", None) for other in ("bos", "eos", "cls", "sep", "pad")
        }
        # a tokenizer may have more tokens than its model
        if id is not None and id not in others and (rows is None or id < len(rows)):
            return Replacement(int(id), str(getattr(tokenizer, f"{role}_token")))
    return Replacement(None, NOTHING)


def _replaced(asked: Replacing, instead: Replacement) -> dict[Group, Group]:
    """Map from the positions that are replaced at once to the unit that holds them.

    Special tokens, padding and the replacement itself are left out.
    """
    items, places = asked.tokens.items, asked.places
    found = dict[Group, Group]()
    for unit in asked.groups or tuple((place,) for place in range(len(items))):
        ordinary = tuple(
            i
            for i in unit
            if i in places and not (items[i].special or items[i].padding) and items[i].id != instead.id
        )
        if ordinary:
            found[ordinary] = unit
    return found


def _effects(reading: Reading, chosen: Chosen, asked: Replacing, given: Input) -> Effect | None:
    model, inputs, question = reading.model, reading.inputs, asked.question
    inside = chosen.kind is Kind.ENCODER and model.writes
    with reading.running():
        if question is not None:
            made = lost_chance(model.module, inputs, given, question)
            return None if made is None else Effect.of(made, question)
        if asked.pooled is not None:
            pool = pool_by(Pooling(asked.pooled.how), last_of(model.module, inside))
            turned = turned_pooled(model.module, inputs, given, pool)
            return None if turned is None else Effect(turned)
        assert asked.query is not None, "a query, where nothing is pooled"
        asking = asked.left or (asked.query,)
        turned = turned_vector(model.module, inputs, given, asking, last_of(model.module, inside))
        return None if turned is None else Effect(turned)


def layer_module(module: nn.Module, chosen: Chosen, layer: int) -> nn.Module | None:
    """The module that returns the hidden states behind `layer`; None where there is none."""
    site = next(site for site in chosen.tower.sites if layer in site.layers)
    return next(iter(holding(module, site.path)), None)
