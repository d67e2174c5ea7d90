"""The results of `cite`: what an answer loses without each passage, beside attention and gradients.

    lost        how much of a sentence's log probability goes when the tokens of a passage are taken away
    columns     what attention and gradients give to each passage, which is what people usually go by
    controls    what is lost when random halves of the other passages are taken away together

Removal decides. A sentence comes from passages without each of which it loses at least half of its
probability (`LEAST`), and so many times as much as without any other passage or half of them that losses
drawn by lot would seldom show it (`times`): few other passages are passed by luck.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Float

from attnscope.results.base.groups import Passage
from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, fits, in_tokens
from attnscope.results.claims.prompts import Refused
from attnscope.results.claims.ranking import times
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

LEAST = math.log(2)  # nats that an answer loses without its source, at least: half of its probability
MOST_SOURCES = 3  # passages that a sentence is said to come from together


class Method(StrEnum):
    """The ways to rank passages; the last three use no model."""

    REMOVAL = "removal"
    FIT = "fit of subsets"
    ATTENTION = "attention"
    COPYING = "copying heads"
    BY_NORM = "by norm"
    GRADIENT = "gradient x input"
    INTEGRATED = "integrated gradients"
    WEIGHED = "attention x gradient"
    LONGEST = "longest passage"
    NEAREST = "nearest passage"
    WORDS = "shared words"


REMOVAL, FIT, ATTENTION, COPYING, BY_NORM, GRADIENT, INTEGRATED, WEIGHED, LONGEST, NEAREST, WORDS = Method
CONTROLS = LONGEST, NEAREST, WORDS


class Case(StrEnum):
    """Outcomes for a sentence of the answer: its sources are found, it has none, or no single one."""

    FROM = "from passages"
    NONE = "from none"  # as probable without every passage
    SPREAD = "from no single one"  # it needs the passages, and none stands out


@dataclass(frozen=True, eq=False)
class Column:
    """The `values` that a `method` gives to passages by sentence; `absent` says why there are none."""

    method: Method
    values: Float[np.ndarray, "sentence passage"] | None
    absent: str = ""


@dataclass(frozen=True)
class Statement:
    """A sentence of the answer: its `text`, the `positions` of its tokens, and its probability.

    `probability` and `log_probability` are those of all its tokens together. `without_all` is the log
    probability that it loses without any passage. `candidates` are the passages of the largest losses,
    `controls` the losses without random halves of the other passages. Where passages were taken away in
    random subsets `r2` is the fit's R² on held-out subsets.
    """

    text: str
    positions: tuple[int, ...]
    log_probability: float
    without_all: float
    candidates: tuple[int, ...] = ()
    controls: tuple[float, ...] = ()
    r2: float = float("nan")

    for_readers = ("probability",)

    @property
    def probability(self) -> float:
        """The probability of the sentence, from 0 to 1."""
        return math.exp(self.log_probability)


def candidates_of(lost: Float[np.ndarray, " passage"]) -> tuple[int, ...]:
    """The fewest passages whose losses stand out of the others', largest first; empty if none do."""
    measured = np.flatnonzero(~np.isnan(lost)).tolist()
    order = sorted(measured, key=lambda passage: (-lost[passage], passage))
    for count in range(1, min(MOST_SOURCES, len(order) - 1) + 1):
        first, others = order[:count], order[count:]
        most = max(abs(float(lost[each])) for each in others)
        if lost[first[-1]] >= needed(most, count, len(others)):
            return tuple(first)
    return ()


def needed(most: float, count: int, others: int) -> float:
    """The least loss by which `count` passages stand out of `others` that lose at most `most`."""
    return max(LEAST, times(count, others) * most)


def floor_of(
    lost: Float[np.ndarray, " passage"], candidates: Sequence[int], controls: Sequence[float]
) -> float:
    """The largest absolute loss without a passage that is no candidate, or in a control."""
    others = [each for passage, each in enumerate(lost.tolist()) if passage not in candidates]
    return max((abs(each) for each in (*others, *controls) if not math.isnan(each)), default=0.0)


def sources_of(
    lost: Float[np.ndarray, " passage"], candidates: tuple[int, ...], controls: Sequence[float]
) -> tuple[int, ...]:
    """The candidates if their losses stand out of the controls as well, else none."""
    if not candidates:
        return ()
    least = min(float(lost[each]) for each in candidates)
    others = int((~np.isnan(lost)).sum()) - len(candidates)
    return (
        candidates if least >= needed(floor_of(lost, candidates, controls), len(candidates), others) else ()
    )


@dataclass(frozen=True, eq=False, repr=False)
class Citation(Counted, Presented):
    """The passages of a prompt, the sentences of an answer, and how much each passage matters to each.

    `passages` can be taken away: units `by` which the text was cut, or given ones (None). `target` is the
    answer, `statements` are its sentences, `columns` are other ways to rank passages. `lost` is the fall of a
    sentence's log probability in nats without a passage; NaN for passages that were not taken away alone.
    `kept` is what is read beside the passages, such as a question; `answer_tokens` are those of the answer's
    side, where that is not the prompt's. `how` says where the answer is from. `subsets` is the number of
    random halves of the passages that were taken away, drawn with `seed`, and `weights` were fitted to them
    (Cohen-Wang et al. 2024), in log odds. `cases` are the outcomes for each sentence, and `sources` its
    passages, largest loss first; `case` is that of the first sentence with a source, or else of the first.

    `copying` are the heads whose strongest key among the passages is the very token that they help to write.
    `floor` is how far batching alone changes the answer, by rounding, in nats.
    """

    tokens: Tokens
    passages: tuple[Passage, ...]
    answer: str = field(metadata={"file": "target"})
    statements: tuple[Statement, ...]
    columns: tuple[Column, ...]
    lost: Float[np.ndarray, "sentence passage"]
    kept: str
    how: str
    kind: Kind
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    copying: tuple[tuple[int, int], ...]
    floor: float
    certified: dict[Verdict, int]
    provenance: Provenance
    by: Unit | None = None
    answer_tokens: Tokens | None = None
    subsets: int = 0
    weights: Float[np.ndarray, "sentence passage"] | None = None
    seed: int = 0
    tower: str = ""
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "case", "cases", "sources")

    @property
    def methods(self) -> dict[Method, Float[np.ndarray, "sentence passage"]]:
        """Values of every method by sentence and passage, removal last."""
        found = {each.method: each.values for each in self.columns if each.values is not None}
        fitted = {} if self.weights is None else {FIT: self.weights}
        return found | fitted | {REMOVAL: self.lost}

    def floor_of(self, sentence: int) -> float:
        """The largest absolute loss without a passage that is no candidate, or in a control."""
        own = self.statements[sentence]
        return floor_of(self.lost[sentence], own.candidates, own.controls)

    @property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """The passages that each sentence comes from, largest loss first."""
        return tuple(
            sources_of(lost, each.candidates, each.controls)
            for lost, each in zip(self.lost, self.statements, strict=True)
        )

    @property
    def cases(self) -> tuple[Case, ...]:
        """The outcome for each sentence."""
        return tuple(
            Case.FROM if named else Case.NONE if statement.without_all < LEAST else Case.SPREAD
            for statement, named in zip(self.statements, self.sources, strict=True)
        )

    @property
    def shown(self) -> int:
        """Number of the first sentence that comes from passages, else 0."""
        return next((i for i, case in enumerate(self.cases) if case is Case.FROM), 0)

    @property
    def case(self) -> Case:
        """The outcome for the sentence `shown`."""
        return self.cases[self.shown]

    def order(self, sentence: int, method: Method = REMOVAL) -> tuple[int, ...]:
        """Passage numbers by a method's values, largest first; those without a value at the end."""
        values = self.methods[method][sentence]
        return tuple(
            sorted(range(len(values)), key=lambda each: (-np.nan_to_num(values[each], nan=-np.inf), each))
        )

    def check_parts(self) -> None:
        shape = (len(self.statements), len(self.passages))
        fits(bool(self.statements), "'statements' are none")
        fits(len(self.passages) > 1, "'passages' are fewer than two")
        fits(self.lost.shape == shape, "'lost' is not of these sentences and passages")
        fits(self.weights is None or self.weights.shape == shape, "'weights' are not of these passages")
        for column in self.columns:
            fits(column.values is None or column.values.shape == shape, "'columns' are not of these passages")
        for passage in self.passages:
            in_tokens(passage.positions, len(self.tokens), "passages")
        answer = self.tokens if self.answer_tokens is None else self.answer_tokens
        for statement in self.statements:
            in_tokens(statement.positions, len(answer), "statements")
            in_tokens(statement.candidates, len(self.passages), "candidates")


class RefereeCase(StrEnum):
    """Outcomes of a comparison of methods: removal and attention compared, or no case with a source."""

    COMPARED = "compared"
    NO_SOURCE = "without a source"


@dataclass(frozen=True)
class Judged:
    """One case: the passages that it is from (empty for none), and those that removal `named`.

    `line` is the number of its line in the file; the `answer` to the `question` has this `probability`.
    `source` are its source passages, of so many `passages`. `right` says whether removal named sources alone,
    or none of none.

    `ranks` are the ranks of the first source by each method, in their order, and `tops` the values of the
    first passage; NaN where a method has nothing, and of ranks where there is no source.
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
    """Accuracy of a `method` at ranking sources, over the `cases` that have one and on which it has values.

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
    """Ways to cite side by side: their `scores` over the cases of a `file` that were `judged`.

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
    def case(self) -> RefereeCase:
        """The outcome of the comparison."""
        return (
            RefereeCase.COMPARED if self.score(REMOVAL) and self.score(ATTENTION) else RefereeCase.NO_SOURCE
        )

    @property
    def none(self) -> int:
        """Number of cases without a source."""
        return sum(not each.source for each in self.judged)

    @property
    def sourced(self) -> int:
        """Number of cases with a source."""
        return len(self.judged) - self.none

    @property
    def wrongly_named(self) -> int:
        """Number of cases without a source in which removal names one."""
        return sum(bool(each.named) and not each.source for each in self.judged)

    @property
    def missed(self) -> int:
        """Number of cases with a source in which removal names none."""
        return sum(bool(each.source) and not each.named for each in self.judged)

    @property
    def misnamed(self) -> int:
        """Number of cases with a source in which removal names a passage that is no source."""
        return sum(bool(each.source) and not {*each.named} <= {*each.source} for each in self.judged)

    def score(self, method: str) -> Score | None:
        """The score of one method; None where it has no values in any case with a source."""
        found = next((each for each in self.scores if each.method == method), None)
        return None if found is None or math.isnan(found.top1) else found

    def check_parts(self) -> None:
        fits(bool(self.judged), "'judged' are none")
        for each in self.judged:
            fits(len(each.ranks) == len(each.tops) == len(self.scores), "'ranks' are not of all methods")
            inside = all(0 <= place < each.passages for place in (*each.source, *each.named))
            fits(inside, "'source' is no passage")
