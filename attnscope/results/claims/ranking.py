"""Ranks heads by the evidence for each, compared with its controls."""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from typing import TypeVar

import numpy as np
from jaxtyping import Float

Z = 1.959963984540054  # of a 95 % interval
_SAME = 1e-4  # of an excess: further apart than rounding makes two that are equal
_ROUNDINGS = 64  # machine epsilons of a number, between a text alone and in a batch

HALF = 0.5  # of a weight: what has to be left of it in the controls to say what it depends on
TWICE = 2.0  # times even attention
LEVEL = 0.05  # of the controls: more of them that reach as far leave nothing shown
SINK = 3.0  # times as long as the typical hidden state: draws weight whatever it means (Sun et al. 2024)
LEAST_CONTROLS = 19  # the fewest of which none reaching as far is that share
AHEAD = 2.0  # times the largest of the others, at least: what stands ahead of them all
LEAST_SPREAD = 0.02  # of numbers of which several are averaged, in their own unit
STEADIEST = 0.1  # spread of one number of a head over its controls that it has at least, in its own unit

Place = tuple[int, int]
ByHead = Float[np.ndarray, "layer head"]
Even = TypeVar("Even", float, ByHead)


def much(even: Even) -> Even:
    """The smallest weight that counts as much: twice uniform attention, or halfway from it to 1 if less."""
    found: Even = np.minimum(TWICE * even, (1 + even) / 2)
    return found


class DependsOn(StrEnum):
    """The condition a weight depends on: the position, the key (for any query), the word, or the context."""

    POSITION = "position"
    KEY = "key"
    WORD = "word"
    CONTEXT = "context"


class Group(StrEnum):
    """The strength of evidence for a head, strongest first."""

    STANDS_OUT = "stand out"
    ABOVE_ITS_OWN = "above their own controls only"
    POSITION = "explained by position"
    KEY = "given to that key from elsewhere too"
    NEITHER = "neither"


@dataclass(frozen=True, eq=False)
class Evidence:
    """The value of each head beside its controls; field names are those of a finding."""

    weights: ByHead
    mean: ByHead
    spread: ByHead
    below: ByHead
    best_excess: Float[np.ndarray, " control"]
    even_attention: ByHead | None = None
    stayed: ByHead | None = None
    followed: ByHead | None = None
    smaller_is_better: bool = False
    elsewhere: ByHead | None = None

    @cached_property
    def excess(self) -> ByHead:
        """The excess of each head over its controls, in standard deviations over them (at least .1)."""
        clear = self.mean - self.weights if self.smaller_is_better else self.weights - self.mean
        return np.asarray(clear / np.maximum(self.spread, STEADIEST))

    @property
    def of_place(self) -> ByHead:
        """The value that stays when other words take the key's place."""
        return self.mean if self.stayed is None else self.stayed

    @property
    def few(self) -> bool:
        """Whether there are too few controls for any head to stand out."""
        return len(self.best_excess) < LEAST_CONTROLS

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups in order of evidence; with too few controls `neither` comes before explained heads."""
        explained = Group.POSITION, Group.KEY
        last = (Group.NEITHER, *explained) if self.few else (*explained, Group.NEITHER)
        return Group.STANDS_OUT, Group.ABOVE_ITS_OWN, *last

    @cached_property
    def ranking(self) -> tuple[Place, ...]:
        """Places (layer, head) of all heads with a value, ordered by group, then by value.

        In each the largest number comes first, of likeness the smallest; of equal ones the first.
        """
        groups, number = self.groups, self.weights if self.smaller_is_better else -self.weights

        def evidence(place: Place) -> tuple[int, float, Place]:
            return groups.index(self.group(place)), float(number[place]), place

        places = [(int(i), int(j)) for i, j in np.argwhere(~np.isnan(self.weights))]
        return tuple(sorted(places, key=evidence))

    def as_far(self, place: Place) -> int:
        """The number of controls in which some head exceeds its own controls as far as this head does."""
        return int((self.best_excess >= self.excess[place] - _SAME).sum())

    def group(self, place: Place) -> Group:
        """The group of a head; position or key explain it however far it exceeds its controls.

        A head stands out where at most 5 % of controls have a head as far clear (Westfall and Young 1993).
        Nothing is shown of a head that gives no more than even attention.

        """
        return self._groups[place]

    @cached_property
    def _groups(self) -> dict[Place, Group]:
        return {(i, j): self._group((i, j)) for i, j in np.ndindex(self.weights.shape)}

    def _group(self, place: Place) -> Group:
        explained: dict[DependsOn | None, Group] = {
            DependsOn.POSITION: Group.POSITION,
            DependsOn.KEY: Group.KEY,
        }
        if (group := explained.get(self.depends_on(place))) is not None:
            return group
        looks = self.even_attention is None or self.weights[place] > self.even_attention[place]
        if looks and not self.few and self.excess[place] > 0:
            if self._rare(self.as_far(place)):
                return Group.STANDS_OUT
            if self._rare(len(self.best_excess) - int(self.below[place])):
                return Group.ABOVE_ITS_OWN
        return Group.NEITHER

    def _rare(self, reaching: int) -> bool:
        return (1 + reaching) / (len(self.best_excess) + 1) <= LEVEL + 1e-12

    def of_group(self, group: Group) -> tuple[Place, ...]:
        """Places of the heads in one group, best first."""
        return tuple(place for place in self.ranking if self._groups[place] is group)

    def depends_on(self, place: Place) -> DependsOn | None:
        """The condition that keeps half or more of a head's weight (position, key or word), else the context.

        None for likeness, for a head with no more weight than uniform attention, and for one whose weight
        stays with the position but is not `much`.
        """
        own, even = float(self.weights[place]), self.even_attention
        if self.smaller_is_better or even is None or not own > float(even[place]):
            return None
        if float(self.of_place[place]) >= HALF * own:
            return DependsOn.POSITION if own >= much(float(even[place])) else None
        if self.elsewhere is not None and float(self.elsewhere[place]) >= HALF * own:
            return DependsOn.KEY
        followed = self.followed is not None and float(self.followed[place]) >= HALF * own
        return DependsOn.WORD if followed else DependsOn.CONTEXT


@cache
def times(count: int, others: int, level: float = LEVEL, least: float = AHEAD) -> float:
    """The factor by which `count` sizes must exceed the largest of `others` to stand out, at least `least`.

    Of independent exponential sizes, c are all t times as large as each of m others with probability binom(m
    + c, c) prod k / (k + c t), k from 1 to m; t makes this the `level`. For one size and level 1 in 20, t is
    39 beside one other, 9.5 beside two, 4.6 beside four and 2 from 40 on.
    """

    def luck(factor: float) -> float:
        ways = float(math.comb(others + count, count))
        return ways * math.prod(k / (k + count * factor) for k in range(1, others + 1))

    low, high = least, least
    while luck(high) > level:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if luck(middle) > level else (low, middle)
    return high


def beyond(
    value: float | Float[np.ndarray, "..."], controls: Float[np.ndarray, "..."], smaller: bool
) -> Float[np.ndarray, "..."]:
    """The number of `controls` (first axis) that the value exceeds by more than rounding.

    Controls are read in batches, where sums are added in another order than in a text alone: what is equal
    in both, as where a head looks at places alone, differs by some machine epsilons of float32.
    """
    rounding = _ROUNDINGS * np.finfo(np.float32).eps * np.abs(value) + 1e-9
    below = controls > value + rounding if smaller else controls < value - rounding
    return np.where(np.isnan(value), np.nan, np.asarray(below).sum(axis=0, dtype=float))


class Contents(StrEnum):
    """The contents that controls rearrange: words of a text, patches of a picture, frames of a sound."""

    TEXT = "text"
    PICTURE = "picture"
    SOUND = "sound"

    @property
    def part(self) -> str:
        """One part that moves: `word`, `patch` or `frame`."""
        return {Contents.TEXT: "word", Contents.PICTURE: "patch", Contents.SOUND: "frame"}[self]

    @property
    def parts(self) -> str:
        """The parts that move: `words of the text`, `patches of the picture`, `frames of the sound`."""
        named = {Contents.PICTURE: "patches of the picture", Contents.SOUND: "frames of the sound"}
        return named.get(self, "words of the text")
