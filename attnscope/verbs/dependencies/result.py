"""Result of `dependencies`: the best head for each grammatical relation, beside the best fixed distance."""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, fits
from attnscope.results.claims.ranking import Z
from attnscope.results.heads import Placed

LEAST = 20  # fewest pairs of a relation that is tested
LEVEL = 0.05  # family-wise error rate over all relations


class Case(StrEnum):
    """Which conclusion all relations, or the chosen one, allow."""

    FOUND = "found"
    NEAREST = "nearest"
    DISTANCE = "distance"
    FEW_PAIRS = "few pairs"
    ONE_BETTER = "one better"
    ONE_WORSE = "one worse"
    ONE_OPEN = "one open"
    ONE_FEW = "one few"


class Direction(StrEnum):
    """Which attention finds a pair: the dependent attends most to its governor; of all words its governor
    attends most to the dependent; or the governor attends most to the dependent.
    """

    FROM_DEPENDENT = "dependent->head"
    FROM_HEAD = "head->dependent"
    STRONGEST = "head->strongest"


@dataclass(frozen=True)
class Share:
    """Share of right pairs, with the 95 % interval from the variance over sentences."""

    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Finder(Placed, Share):
    """A head and direction, with its accuracy on a relation."""

    layer: int
    head: int
    direction: Direction


@dataclass(frozen=True)
class FixedDistance(Share):
    """Baseline rule: the governor stands `fixed_distance` words after the word, before it where negative."""

    fixed_distance: int


@dataclass(frozen=True)
class HeldOut:
    """Two-fold held-out test: the best head of one half of the sentences, scored on the other, both ways.

    `heads` are the two that were chosen. `above_control` is their accuracy less that of the best fixed
    distance, with the 95 % interval over sentences. The distance was chosen on the pairs that test it, and
    so has the advantage.
    """

    accuracy: float
    above_control: float
    low: float
    high: float
    heads: tuple[tuple[int, int, Direction], ...]

    @property
    def unknown(self) -> bool:
        """True where the sentences are too few, or too much alike, to estimate the interval."""
        return self.low <= -1 and self.high >= 1

    @property
    def errors(self) -> float:
        """`above_control` in standard errors; 0 where the error is unknown."""
        above = self.above_control
        reach = max(self.high - above, above - self.low)  # one end may be clipped at 1
        return 0.0 if self.unknown or reach <= 0 else above / reach * Z

    @property
    def p(self) -> float:
        """Two-sided p-value of `errors` (normal)."""
        return math.erfc(abs(self.errors) / math.sqrt(2))

    @property
    def stable(self) -> bool:
        """True where both halves chose the same head and direction."""
        return len(set(self.heads)) == 1


@dataclass(frozen=True)
class Example:
    """A pair of the treebank in its sentence, and the word that an attention head picks for it.

    `dependent`, `governor` (its head) and `taken`, the word picked, are indices into `words`; `taken` is -1
    for none. The right pick is the governor, or the dependent where `direction` is `head->strongest`.
    """

    words: tuple[str, ...]
    dependent: int
    governor: int
    taken: int
    direction: Direction = Direction.FROM_DEPENDENT

    @property
    def asked(self) -> int:
        """Position of the word for which the head picks another word."""
        return self.governor if self.direction is Direction.STRONGEST else self.dependent

    @property
    def sought(self) -> int:
        """Position of the right word."""
        return self.dependent if self.direction is Direction.STRONGEST else self.governor

    @property
    def right(self) -> bool:
        """True where the head picks the right word."""
        return self.taken == self.sought

    def check_parts(self) -> None:
        """Raise `Damaged` for a position outside the sentence."""
        inside = all(0 <= each < len(self.words) for each in (self.dependent, self.governor))
        fits(inside and -1 <= self.taken < len(self.words), "'examples' name a word that is not there")


@dataclass(frozen=True)
class Relation:
    """A grammatical relation: its count, its best head, and its best fixed distance.

    `best` is the best of all heads on the very pairs that chose it, which flatters it; `held_out` does not,
    and is None where one of the halves has no such pair. `before` is the share of pairs with the governor
    before its dependent: what a head that only looks back can find from the dependent. `sentences` is the
    number of sentences with such a pair. `examples` are a pair that the best head gets right and one that it
    misses, as far as the first pairs of the file have them.
    """

    name: str
    count: int
    sentences: int
    before: float
    best: Finder
    baseline: FixedDistance
    held_out: HeldOut | None
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Treebank:
    """Size of the treebank: `sentences` in the file `name`, of which `scored` were used, and those left out.

    `limit` is the most tokens that the model reads. `pairs_without_piece` are left out since the tokenizer
    gives no token for one of their words. `too_long`, `without_relation` and `unreadable` count the sentences
    left out, by reason.
    """

    name: str
    sentences: int
    scored: int
    too_long: int
    without_relation: int
    unreadable: int
    pairs_without_piece: int
    limit: int | None = None

    @property
    def left_out(self) -> int:
        """Number of sentences that were not used."""
        return self.too_long + self.without_relation + self.unreadable


@dataclass(frozen=True, eq=False, repr=False)
class Dependencies(Counted, Presented):
    """Accuracy of every head and direction on every relation of a treebank, `accuracies` as in `relations`.

    `relations` come most frequent first, without the root, since no word can point at it. `overall` is all of
    them but punctuation as one. `distance_accuracies` are those of the `fixed_distances` tried. `ahead` is
    False where no head looks ahead. `shown` is the relation chosen by the question, "" for all. `certified`
    counts heads by verdict in the `sampled` sentences, one certificate per head and sentence; `unlike` is the
    largest difference there of a batched weight from that of the sentence read alone.
    """

    treebank: Treebank
    kind: Kind
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    relations: tuple[Relation, ...] = field(metadata={"by": "name"})
    overall: Relation
    accuracies: Float[np.ndarray, "layer head direction relation"]
    fixed_distances: tuple[int, ...]
    distance_accuracies: Float[np.ndarray, "fixed_distance relation"]
    ahead: bool
    certified: dict[Verdict, int]
    sampled: int
    unlike: float
    provenance: Provenance
    tower: str = ""
    shown: str = ""
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case", "tried", "told_apart")

    @property
    def tried(self) -> int:
        """Number of head and direction pairs among which the best was chosen."""
        return len(self.layers) * len(self.heads) * len(Direction)

    def relation(self, name: str) -> Relation:
        """The relation called `name`."""
        return next(each for each in self.relations if each.name == name)

    @property
    def judged(self) -> tuple[Relation, ...]:
        """Tested relations: those with `LEAST` pairs or more, and pairs in both halves of the sentences."""
        return tuple(each for each in self.relations if each.count >= LEAST and each.held_out is not None)

    @cached_property
    def told_apart(self) -> dict[str, int]:
        """Held-out result of each tested relation: 1 where the head is better, -1 where the distance is.

        0 where neither is significant among so many relations (Holm 1979).
        """
        told = {each.name: 0 for each in self.judged}
        for each, p, needed in self.by_p:
            if p <= needed:
                told[each.name] = -1 if _behind(each) > 0 else 1
        return told

    @cached_property
    def by_p(self) -> tuple[tuple[Relation, float, float], ...]:
        """Tested relations, their p, the least first, and the p that each needs (Holm 1979).

        After the first that fails, all later relations need what that one needed.
        """
        pairs = [(each, each.held_out.p) for each in self.judged if each.held_out is not None]
        rows, enough, needed = list[tuple[Relation, float, float]](), True, LEVEL
        for place, (each, p) in enumerate(sorted(pairs, key=lambda pair: pair[1])):
            needed = LEVEL / (len(pairs) - place) if enough else needed
            enough = p <= needed
            rows.append((each, p, needed))
        return tuple(rows)

    @property
    def told_alone(self) -> tuple[tuple[Relation, float, float], ...]:
        """Relations that are significant alone but not among all, with their p and the p they need.

        In the order of `ranking`.
        """
        open_ = (each for each in self.by_p if each[2] < each[1] <= LEVEL)
        return tuple(sorted(open_, key=lambda row: _behind(row[0])))

    @property
    def ranking(self) -> tuple[Relation, ...]:
        """Tested relations, by standard errors of the best head above the distance, the most first."""
        return tuple(sorted(self.judged, key=_behind))

    @property
    def case(self) -> Case:
        """Which conclusion all relations, or the chosen one, allow."""
        if (one := self.looked_at) is not None:
            held = one.held_out
            if held is None or one.count < LEAST:
                return Case.ONE_FEW
            return Case.ONE_BETTER if held.low > 0 else Case.ONE_WORSE if held.high < 0 else Case.ONE_OPEN
        if not self.judged:
            return Case.FEW_PAIRS
        if 1 in self.told_apart.values():
            return Case.FOUND
        return Case.NEAREST if _behind(self.ranking[0]) < 0 else Case.DISTANCE

    @property
    def looked_at(self) -> Relation | None:
        """The relation that the question chose, or None."""
        return self.relation(self.shown) if self.shown else None

    def by_head(self, name: str) -> Float[np.ndarray, "layer head direction"]:
        """Accuracy of every head and direction on one relation."""
        place = [each.name for each in self.relations].index(name)
        return np.asarray(self.accuracies[..., place])

    def check_parts(self) -> None:
        names = [relation.name for relation in self.relations]
        fits(bool(names), "'relations' are none")
        fits(not self.shown or self.shown in names, "'shown' is none of the relations")
        fits(self.accuracies.shape[2] == len(Direction), "'accuracies' are not of every direction")


def _behind(relation: Relation) -> float:
    """Standard errors by which the head is below the distance; negative where it is above."""
    return 0.0 if relation.held_out is None else -relation.held_out.errors
