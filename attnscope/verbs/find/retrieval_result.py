"""Which heads fetch a fact out of a long text, where it is asked for, and whether the model needs them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, fits, within
from attnscope.results.scores import ordered

COPIES = 0.1  # of the answers: a head that looks first at the fact in fewer fetches none (Wu et al. 2024)
SURE = 0.05  # by how much luck any of the heads would be named
Head = tuple[int, int]


class Case(StrEnum):
    """What can be said of the heads, by one test after the other."""

    UNANSWERED = "no question answered"
    NAMED = "heads fetch"
    TOO_FEW = "too few answers"
    NONE = "no head fetches"


@dataclass(frozen=True)
class Needle:
    """A fact that was put into a text, its `text`, and the `question` that asks for it at the end.

    What was read has so many `tokens`, for an asked `length`; the fact stands at a `depth` from 0, its
    beginning, to 1, its end. The `answer` has this `probability`, and is `right` where it is the likeliest,
    token by token. `other` is a fact of another answer in the same text, which is not asked for.
    """

    text: str
    question: str
    answer: str
    other: str
    length: int
    tokens: int
    depth: float
    probability: float
    right: bool


@dataclass(frozen=True)
class Masked:
    """How many questions are still answered without these `heads`: so many are `right`."""

    heads: tuple[Head, ...]
    right: int


@dataclass(frozen=True)
class Confirmation:
    """Of other facts the model answers `right` of so many `asked`, and of these some without heads.

    `found` is without the named heads, at the 95 % ends `found_low` and `found_high` of a share; `others` are
    groups of as many heads that were not named, `others_low` the lower end of the mean share that is left.
    """

    asked: int
    right: int
    found: Masked
    found_low: float
    found_high: float
    others: tuple[Masked, ...]
    others_low: float

    for_readers = ("confirmed",)

    @property
    def confirmed(self) -> bool:
        """Whether surely fewer questions are answered without the named heads than without as many others."""
        return bool(self.others) and self.found_high < self.others_low


@dataclass(frozen=True, eq=False, repr=False)
class Retrieval(Counted, Presented):
    """Every head over all `needles`: how often it looks first at the fact that is asked for.

    `first[i, j, k]` is the share of the answer's tokens at which the strongest key of head `heads[j]` of
    `layers[i]` lies in the fact k; `first_other` the same of the fact that is not asked for. `weights` and
    `weights_other` are what it gives to each in the mean. `scores`, with the 95 % interval `low` to `high`
    (Wilson's), and `controls` are the means of both over the needles that the model answers; NaN where it
    answers none. `chance` is how probable it is that a head which looks at either fact alike looks so often
    more at the one asked for (sign test).

    `named` are the heads that look first at it in a tenth of the answers, and more often than at the other
    one by no luck of any head (Bonferroni). `alike` has for each of them the head, of those that are not
    named, that is nearest in weight on both facts together; None where none gives them half as much.
    `confirmation` is there where a head is named. `how` says where facts and text are from, `seed` draws
    them and where they stand. `certified` counts heads by verdict in the `sampled` needles' texts, a
    certificate a head and text; `failed` are those that are not as they were recomputed in any of them.
    `acts` says on what it was tried whether heads' answers act; nothing where on every such text.
    """

    needles: tuple[Needle, ...]
    kind: Kind
    layers: tuple[int, ...]
    heads: tuple[int, ...] = field(metadata={"file": "head_numbers"})
    first: Float[np.ndarray, "layer head needle"]
    first_other: Float[np.ndarray, "layer head needle"]
    weights: Float[np.ndarray, "layer head needle"]
    weights_other: Float[np.ndarray, "layer head needle"]
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    chance: Float[np.ndarray, "layer head"]
    confirmation: Confirmation | None
    how: str
    certified: dict[Verdict, int]
    provenance: Provenance
    tower: str = ""
    seed: int = 0
    notes: tuple[str, ...] = ()
    sampled: tuple[int, ...] = ()
    failed: tuple[Head, ...] = ()
    acts: str = ""

    for_readers = ("verdict", "case", "named", "scores", "controls", "alike")

    @property
    def answered(self) -> int:
        """How many questions the model answers."""
        return sum(each.right for each in self.needles)

    @property
    def case(self) -> Case:
        """What can be said."""
        if not self.answered:
            return Case.UNANSWERED
        if self.named:
            return Case.NAMED
        return Case.TOO_FEW if self.answered < self.enough else Case.NONE

    @property
    def enough(self) -> int:
        """The fewest answers by which a head can be named: one that looks at the fact in each of them."""
        return math.ceil(math.log2(self.chance.size / SURE))

    @cached_property
    def scores(self) -> Float[np.ndarray, "layer head"]:
        """How often each head looks first at the fact that is asked for."""
        return self.mean(self.first)

    @cached_property
    def controls(self) -> Float[np.ndarray, "layer head"]:
        """How often it looks first at the other fact."""
        return self.mean(self.first_other)

    def mean(self, values: Float[np.ndarray, "layer head needle"]) -> Float[np.ndarray, "layer head"]:
        """Over the needles that the model answers; NaN where these are none."""
        right = [i for i, each in enumerate(self.needles) if each.right]
        return np.asarray(values[..., right].mean(-1) if right else np.full(values.shape[:2], np.nan))

    @cached_property
    def ranking(self) -> tuple[tuple[int, int], ...]:
        """The places of all heads, those first that look more often at the fact than at the other."""
        return tuple(ordered(self.scores - self.controls))

    @cached_property
    def named(self) -> tuple[Head, ...]:
        """The heads that fetch, by layer and number, the best first."""
        return named_of(self.ranking, self.scores, self.chance, self.layers, self.heads)

    @cached_property
    def alike(self) -> tuple[Head | None, ...]:
        """For each named head one that gives as much weight to both facts together, and is not named."""
        mass = self.mean(self.weights + self.weights_other)
        others = [place for place in self.ranking if self.head(place) not in self.named]
        found = list[Head | None]()
        for own in (float(mass[self.place(head)]) for head in self.named):
            near = [place for place in others if mass[place] >= own / 2]
            far = [abs(float(mass[place]) - own) for place in near]
            found.append(self.head(near[far.index(min(far))]) if near else None)
        return tuple(found)

    def head(self, place: tuple[int, int]) -> Head:
        """The layer and the head at a place of the arrays."""
        return self.layers[place[0]], self.heads[place[1]]

    def place(self, head: Head) -> tuple[int, int]:
        """Where a layer and a head stand in the arrays."""
        return self.layers.index(head[0]), self.heads.index(head[1])

    def check_parts(self) -> None:
        shape = (len(self.layers), len(self.heads), len(self.needles))
        fits(bool(self.needles), "'needles' are none")
        fits(all(within(i, shape[2]) for i in self.sampled), "'sampled' are not all needles")
        for name in ("first", "first_other", "weights", "weights_other"):
            fits(getattr(self, name).shape == shape, f"'{name}' is not of these heads and needles")
        for name in ("low", "high", "chance"):
            fits(getattr(self, name).shape == shape[:2], f"'{name}' is not of these heads")


def named_of(
    ranking: Sequence[tuple[int, int]],
    scores: Float[np.ndarray, "layer head"],
    chance: Float[np.ndarray, "layer head"],
    layers: Sequence[int],
    heads: Sequence[int],
) -> tuple[Head, ...]:
    """The heads that look first at the fact often enough, and by no luck of any of them (Bonferroni)."""
    named = (scores >= COPIES) & (chance * scores.size <= SURE)
    return tuple((layers[i], heads[j]) for i, j in ranking if named[i, j])
