"""Questions that a state of the explorer needs answered, as plain data.

It also finds heads whose pattern does not depend on the words: they look at one offset, at special tokens, at
the first key, or at keys that other queries look at too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import isnan, nan
from typing import Any, ClassVar, Self

import numpy as np

from attnscope.explore.state import Head, State, View
from attnscope.measures import MEASURES
from attnscope.results import HeadView, HeadWeights, Overview
from attnscope.results.base.evidence import Explained
from attnscope.results.claims.ranking import HALF
from attnscope.verbs.compare.result import Difference
from attnscope.vocabulary import Kind, Special

PLACE, SPECIAL, FIRST, KEY = "position", "special", "first key", "any query"
_FIXED, _MOST = 0.8, 0.5  # of the queries at one offset; of the weight
JUDGED = ("fixed", "offset", "special-tokens", "first")
SHARP = ("entropy", "confidence", "evenness")  # measures of which this says what they are worth


def explained(overviews: Iterable[Overview]) -> dict[Head, str]:
    """Heads whose pattern does not depend on the words, each with its cause (`position`, `special`, ...)."""
    found: dict[Head, str] = {}
    for overview in overviews:
        shares = {
            PLACE: (_FIXED, _at_one_offset(overview)),
            SPECIAL: (_MOST, _values(overview, "special-tokens")),
            FIRST: (_MOST, _values(overview, "first")),
            KEY: (_MOST, _from_anywhere(overview)),
        }
        for why, (least, values) in shares.items():
            for head, value in values.items():
                if value >= least:  # NaN is not
                    found.setdefault(head, why)
    return found


def _at_one_offset(overview: Overview) -> Mapping[Head, float]:
    """Per head, of the queries with a token at its usual offset, the share whose strongest key is there."""
    count, offsets = len(overview.query_tokens), _values(overview, "offset")
    return {
        head: share * count / max(count - abs(offsets[head]), 1)
        for head, share in _values(overview, "fixed").items()
        if not isnan(offsets.get(head, nan))
    }


def _from_anywhere(overview: Overview) -> Mapping[Head, float]:
    """Per head the share of its weight on keys that other queries give at least half as much."""
    if overview.weights is None:
        return {}
    found, crosses = dict[Head, float](), overview.kind is Kind.CROSS
    for layer, heads in zip(overview.layers, overview.weights, strict=True):
        known = Explained.of(np.nan_to_num(np.stack(heads)), crosses=crosses)
        shared = np.where(known.others >= HALF * known.weights, known.weights, 0.0).sum(axis=(1, 2))
        shares = shared / np.maximum(known.weights.sum(axis=(1, 2)), np.finfo(float).tiny)
        found |= {(layer, head): float(each) for head, each in zip(overview.heads, shares, strict=True)}
    return found


def sharpest(overviews: Iterable[Overview]) -> Head | None:
    """The head with the lowest entropy whose pattern depends on the words; None where there is none."""
    every = tuple(overviews)
    without = explained(every)
    left = {
        head: value
        for overview in every
        for head, value in _values(overview, "entropy").items()
        if head not in without and not isnan(value)
    }
    return min(left, key=lambda head: (left[head], head), default=None)


def _values(overview: Overview, measure: str) -> Mapping[Head, float]:
    scores = overview.scores.get(measure)
    if scores is None:
        return {}
    return {
        (layer, head): float(scores.values[i, j])
        for i, layer in enumerate(scores.layers)
        for j, head in enumerate(scores.heads)
    }


@dataclass(frozen=True, eq=False)
class Beside:
    """One head in the `other` text, and the `difference` of both texts, or `why` there is none."""

    other: HeadWeights | HeadView
    difference: Difference | None
    why: str


TOGETHER = tuple(
    name for name, each in MEASURES.items() if each.brief and not each.description.apart
)  # measures that cost next to nothing beside the first of them
_PAIRS = 2**20  # of a query and a key: so many heads are measured before somebody else may come first


class Lane(IntEnum):
    """Speed class of a question; each class has its own thread, so slow answers do not delay quick ones."""

    QUICK = 0
    SLOW = 1
    LONG = 2


@dataclass(frozen=True)
class Question:
    """A question about one text and one attention tower of the model."""

    text: str
    tower: str

    lane: ClassVar[Lane] = Lane.SLOW
    stoppable: ClassVar[bool] = False  # half-way: nothing of the model runs for it

    @classmethod
    def of(cls, state: State, *what: Any) -> Self:
        """The question about a state's text and tower."""
        return cls(state.scene.text, state.scene.tower.pattern, *what)


@dataclass(frozen=True)
class OfHead(Question):
    """Question: the attention of one head, by tokens or by words."""

    layer: int
    head: int
    words: bool = False
    special: Special = Special.SHOW

    lane = Lane.QUICK


@dataclass(frozen=True)
class OfParts(OfHead):
    """Question: a head's scores as sums of terms."""


@dataclass(frozen=True)
class OfMap(OfHead):
    """Question: a head's queries and keys as points in a plane (t-SNE)."""

    lane = Lane.LONG
    stoppable = True


@dataclass(frozen=True)
class OfMedium(Question):
    """Question: one query's weights of a head over the picture or the sound."""

    layer: int
    head: int
    query: int

    lane = Lane.QUICK


@dataclass(frozen=True)
class OfLayer(Question):
    """Question: some heads of a layer by some measures."""

    layer: int
    heads: tuple[int, ...]
    measures: tuple[str, ...]


@dataclass(frozen=True)
class OfPrediction(Question):
    """Question: the model's prediction for the text."""


@dataclass(frozen=True)
class OfPair(Question):
    """Question: the heads that link a query to a key."""

    query: int
    key: int

    lane = Lane.LONG


@dataclass(frozen=True)
class OfWithout(Question):
    """Question: the model's prediction with and without some heads."""

    heads: tuple[Head, ...]


@dataclass(frozen=True)
class OfAbsence(Question):
    """Question: the effect of removing some heads, compared with other heads."""

    heads: tuple[Head, ...]

    lane = Lane.LONG


@dataclass(frozen=True)
class OfOther(Question):
    """Question: one head in this text and in another text."""

    layer: int
    head: int
    other: str


def head_of(state: State) -> OfHead:
    """The question about the chosen head."""
    return OfHead.of(state, *state.place, state.words, state.special)


def layer_of(state: State, layer: int) -> list[OfLayer]:
    """Questions that cover all heads of a layer, split so that a quick question can run between them."""
    measures = tuple(dict.fromkeys((*TOGETHER, *JUDGED))) if state.measure in TOGETHER else (state.measure,)
    every = range(state.scene.tower.heads)
    pairs = max(len(state.scene.queries) * len(state.scene.keys), 1)
    most = len(every) if (MEASURES[state.measure].description.apart != "") else max(_PAIRS // pairs, 1)
    heads = [tuple(every[first : first + most]) for first in range(0, len(every), most)]
    return [OfLayer.of(state, layer, portion, measures) for portion in heads]


def grid_of(state: State) -> list[OfLayer]:
    """Questions that cover every head of the grid."""
    return [question for layer in state.scene.tower.layers for question in layer_of(state, layer)]


def view_of(state: State) -> Question:
    """The question whose answer the largest pane shows."""
    match state.view:
        case View.TERMS:
            return OfParts.of(state, *state.place)
        case View.MAP:
            return OfMap.of(state, *state.place, state.words, state.special)
        case View.FOUND if state.sought is not None:
            return OfPair.of(state, *state.sought)
        case View.WITHOUT if state.removed:
            return OfAbsence.of(state, state.removed)
        case View.BESIDE if state.other is not None:
            return OfOther.of(state, *state.place, state.other)
    return OfMedium.of(state, *state.place, state.query) if state.scene.medium else head_of(state)


def needed(state: State, parts: bool = False) -> list[Question]:
    """Questions that fill the screen, in the order to ask them: head, view, its layer, other layers.

    `parts` adds the question for the score's parts under the matrix.
    """
    layers = state.scene.tower.layers
    near = sorted(layers, key=lambda layer: abs(layer - state.layer))
    asked = [head_of(state), *([OfWithout.of(state, state.removed)] if state.removed else []), view_of(state)]
    asked += [OfParts.of(state, *state.place)] if parts else []
    asked += [*layer_of(state, near[0]), OfPrediction.of(state)]
    asked += [question for layer in near[1:] for question in layer_of(state, layer)]
    return list(dict.fromkeys(asked))
