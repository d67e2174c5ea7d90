"""How often each way to cite finds the passage that an answer is from, over cases whose source is known."""

import math
from dataclasses import dataclass
from enum import StrEnum

from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, fits
from attnscope.results.claims.prompts import Refused
from attnscope.verbs.cite.result import ATTENTION, REMOVAL, Method


class Case(StrEnum):
    """What can be said of ways to cite: that removal and attention find the source, or of no source alone."""

    COMPARED = "compared"
    NO_SOURCE = "without a source"


@dataclass(frozen=True)
class Judged:
    """One case: the passages that it is from, none for no passage, and those that removal `named`.

    `line` is the number of its line in the file; of the `question` the `answer` has this `probability`. It is
    from `source`, of so many `passages`. It is `right` where removal named sources alone, or none of none.

    By method, in their order, `ranks` is the place of the first source and `tops` what the first passage
    gets; NaN where a method has nothing, and of ranks where there is no source.
    """

    line: int
    question: str
    answer: str
    probability: float
    source: tuple[int, ...]
    passages: int
    named: tuple[int, ...]
    ranks: tuple[float, ...]
    tops: tuple[float, ...]

    for_readers = ("right",)

    @property
    def right(self) -> bool:
        """Whether removal named a source and nothing else, or nothing where there is none."""
        return {*self.named} <= {*self.source} and bool(self.named) == bool(self.source)


@dataclass(frozen=True)
class Score:
    """How well a `method` does in the `cases` that have a source, and for which it says anything.

    `top1` is how often it puts a source first, from `top1_low` to `top1_high` with 95 % (Wilson's interval),
    `reciprocal` the mean of 1 over its rank, from `reciprocal_low` to `reciprocal_high` (1,000 draws of
    cases). `tells` is the chance that what it gives to its first passage is more in a case with a source than
    in one without (area under the curve); NaN where all cases are of one sort.
    """

    method: Method
    cases: int
    top1: float
    top1_low: float
    top1_high: float
    reciprocal: float
    reciprocal_low: float
    reciprocal_high: float
    tells: float


@dataclass(frozen=True, eq=False, repr=False)
class Referee(Counted, Presented):
    """Ways to cite side by side, their `scores` over the cases of a `file` that were `judged`.

    `chance` is top-1 of a passage drawn by lot.

    `refused` lines could not be asked. Of ways that know no model, and of removal, the scores are among the
    others. `how` says where the answers are from, `seed` is that of controls and intervals. Of cases without
    a source, `none` is how many there are, and in `wrongly_named` of them removal names one; of those with
    one it names none in `missed`, and a passage that is no source in `misnamed`.
    """

    file: str
    judged: tuple[Judged, ...]
    scores: tuple[Score, ...]
    chance: float
    how: str
    kind: Kind
    certified: dict[Verdict, int]
    provenance: Provenance
    refused: tuple[Refused, ...] = ()
    tower: str = ""
    seed: int = 0

    for_readers = ("verdict", "case", "none", "wrongly_named", "missed", "misnamed")

    @property
    def case(self) -> Case:
        """What can be said."""
        return Case.COMPARED if self.score(REMOVAL) and self.score(ATTENTION) else Case.NO_SOURCE

    @property
    def none(self) -> int:
        """How many cases have no source."""
        return sum(not each.source for each in self.judged)

    @property
    def sourced(self) -> int:
        """How many cases have a source."""
        return len(self.judged) - self.none

    @property
    def wrongly_named(self) -> int:
        """In how many of the cases without a source removal names one."""
        return sum(bool(each.named) and not each.source for each in self.judged)

    @property
    def missed(self) -> int:
        """In how many of the cases with a source removal names none."""
        return sum(bool(each.source) and not each.named for each in self.judged)

    @property
    def misnamed(self) -> int:
        """In how many of them it names a passage that is no source."""
        return sum(bool(each.source) and not {*each.named} <= {*each.source} for each in self.judged)

    def score(self, method: str) -> Score | None:
        """That of one way; None where it said nothing in any case."""
        found = next((each for each in self.scores if each.method == method), None)
        return None if found is None or math.isnan(found.top1) else found

    def check_parts(self) -> None:
        fits(bool(self.judged), "'judged' are none")
        for each in self.judged:
            fits(len(each.ranks) == len(each.tops) == len(self.scores), "'ranks' are not of all methods")
            inside = all(0 <= place < each.passages for place in (*each.source, *each.named))
            fits(inside, "'source' is no passage")
