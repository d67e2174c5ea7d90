"""One question over many prompts: each figure by prompt, its mean, interval and exceptions."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, Value, fits
from attnscope.results.claims.ranking import LEAST_SPREAD
from attnscope.vocabulary import Special, Unit

CORRELATION = "rank correlation"  # of a method
SURE = 0.95  # of intervals, how many hold what they are of
FEWEST = 6  # prompts of an interval: of five all lie on one side by chance more often than 5 in 100 (2 / 2^5)
_LINES = 12  # whose numbers are told of those with one reason
_ALIKE = 1e-9  # of the mean: a smaller spread is that of rounding


class Asked(StrEnum):
    """The kind of question put to each prompt."""

    FIND = "find"
    LIKE = "find like"
    LINKS = "links"
    ABLATE = "ablate"
    RANK = "ablate rank"
    FLOW = "flow"
    PREDICT = "predict"
    LAYERS = "predict layers"
    WHY = "why"
    ANSWER = "why answer"

    @property
    def signed(self) -> bool:
        """Whether figures may be negative, with a sign that matters."""
        return self in (Asked.ABLATE, Asked.RANK) or self.of_parts

    @property
    def of_parts(self) -> bool:
        """Whether figures are parts of one sum, each compared with the effect of removing it."""
        return self in (Asked.WHY, Asked.ANSWER)


class Case(StrEnum):
    """The conclusion about the first figure."""

    NOTHING = "no figure"
    FEW = "too few prompts"  # for an interval
    HOLDS = "clearly"  # beyond its controls, among all figures at once
    ALONE = "perhaps"  # beyond its controls, had it been the only figure
    CANNOT_TELL = "cannot tell"
    ANSWERS = "answers"
    LAYERS = "layers"
    PART = "a part"  # stands in some prompt
    NO_PART = "no part"


_SURER = (Case.HOLDS, Case.ALONE, Case.CANNOT_TELL, Case.FEW)


@dataclass(frozen=True)
class Prompt:
    """An answered prompt: its `text` and its `line` number, from 1."""

    line: int
    text: str


@dataclass(frozen=True)
class Refused:
    """A `line` that gave no answer (its number), and the `reason`."""

    line: int
    reason: str


def by_reason(refused: Iterable[Refused]) -> dict[str, list[int]]:
    """The line numbers for each reason of refusal; reasons that differ only after a colon are joined.

    What follows a colon is of the text of each line, such as which tokens it has.
    """
    alike = dict[str, list[Refused]]()
    for each in refused:
        alike.setdefault(each.reason.partition(": ")[0], []).append(each)
    return {
        its[0].reason if len({each.reason for each in its}) == 1 else reason: [each.line for each in its]
        for reason, its in alike.items()
    }


def lines_told(lines: Sequence[int]) -> str:
    """Line numbers as text: `1,3,4`, with a count of those beyond `_LINES`."""
    more = f" and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
    return f"{','.join(map(str, lines[:_LINES]))}{more}"


@dataclass(frozen=True)
class Figure:
    """A quantity with one number per prompt: of a head, a part of a score, a method, an answer or a layer.

    `name` is its label; `layer` and `head` are None where it belongs to none; `measured` says what the
    number is.
    """

    name: str
    measured: str
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Prompts(Presented):
    """The figures of one question over the prompts of a `file`, a row each, NaN where a prompt has none.

    `values` are the question's figures for each prompt alone, `controls` their controls, drawn for this
    prompt. `effects` are the measured effect of removing a part of a sum, or a head ranked by its predicted
    effect; NaN for all else. `stands` says whether the figure stands out in that prompt by the rule for one
    prompt.

    `prompts` and `figures` are the columns and rows of these arrays, `asked` the kind of question. `low` and
    `high` are the ends of the 95 % interval of each mean, prompts as trials (Student's t), clipped to
    possible values; NaN for fewer than six prompts. `excess_low` and `excess_high` are those of the mean
    excess over the control, and `excess_surely` its lower end where all figures of one measure are to hold
    at once (Bonferroni). `question` is the question in words, `certified` counts the prompts by verdict;
    `refused` are the lines without an answer. `kind` and `tower` name the attention, None where there is
    none; `by` and `special` are its unit and special tokens. `notes` are those of any prompt.
    """

    asked: Asked
    question: str
    file: str
    prompts: tuple[Prompt, ...]
    refused: tuple[Refused, ...]
    figures: tuple[Figure, ...]
    values: Float[np.ndarray, "figure prompt"]
    controls: Float[np.ndarray, "figure prompt"]
    effects: Float[np.ndarray, "figure prompt"]
    stands: Bool[np.ndarray, "figure prompt"]
    low: Float[np.ndarray, " figure"]
    high: Float[np.ndarray, " figure"]
    excess_low: Float[np.ndarray, " figure"]
    excess_high: Float[np.ndarray, " figure"]
    excess_surely: Float[np.ndarray, " figure"]
    certified: dict[Verdict, int]
    provenance: Provenance
    kind: Kind | None = None
    tower: str = ""
    notes: tuple[str, ...] = ()
    by: Unit = Unit.TOKEN
    special: Special = Special.SHOW

    for_readers = ("verdict", "case")

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict of any prompt; None where nothing is certified, as for untouched runs."""
        return worst(each for each, count in self.certified.items() if count) if self.certified else None

    @cached_property
    def mean(self) -> Float[np.ndarray, " figure"]:
        """The mean of each figure over the prompts that have it."""
        return means(self.values)

    @cached_property
    def control_mean(self) -> Float[np.ndarray, " figure"]:
        """The mean of each figure's controls."""
        return means(self.controls)

    @cached_property
    def spread(self) -> Float[np.ndarray, " figure"]:
        """The standard deviation of each figure over prompts; NaN for fewer than two."""
        return spreads(self.values)

    @cached_property
    def excess(self) -> Float[np.ndarray, "figure prompt"]:
        """By how much each value exceeds its control (distances: falls below it; changes: in size).

        For a part of a score: how much more is lost without it than without the largest of its controls.
        """
        return beyond(self.asked, self.values, self.controls, self.effects)

    @cached_property
    def against(self) -> Bool[np.ndarray, "figure prompt"]:
        """True where a prompt contradicts the mean: opposite sign, or not beyond its control."""
        if self.asked.signed:
            return np.asarray(self.values * np.sign(self.mean)[:, None] <= 0)
        return np.asarray(self.excess <= 0)

    def count(self, figure: int) -> int:
        """The number of prompts that have this figure."""
        return int(np.isfinite(self.values[figure]).sum())

    def opposed(self, figure: int) -> tuple[int, ...]:
        """Line numbers of the prompts that contradict this figure."""
        return tuple(each.line for each, one in zip(self.prompts, self.against[figure], strict=True) if one)

    @cached_property
    def errors(self) -> Float[np.ndarray, " figure"]:
        """The mean excess over the control in standard errors; the spread counts as at least .02."""
        spread = np.fmax(spreads(self.excess), LEAST_SPREAD)
        count = np.isfinite(self.excess).sum(axis=1)
        return np.asarray(means(self.excess) / spread * np.sqrt(count))

    @cached_property
    def ranking(self) -> tuple[int, ...]:
        """Indices of the figures, those with the strongest conclusion (`_case_of`) first.

        Within a conclusion the largest mean comes first (for distances the smallest); where none exceeds its
        control, the one that is nearest to it in standard errors, but for ablated heads the largest. Methods
        and fields are ordered by their excess in standard errors, methods first. Parts of a score are
        ordered by the number of prompts they stand out in, then by share; answers and layers keep their
        order.
        """

        def order(i: int) -> tuple[float, ...]:
            size, errors = abs(float(self.mean[i])), float(self.errors[i])
            if self.asked is Asked.LAYERS:
                return (i,)
            if self.asked is Asked.PREDICT:
                return i > 0, -size, i
            if self.asked.of_parts:
                return -int(self.stands[i].sum()), -size, i
            if self.asked is not Asked.FLOW:
                case = self._case_of(i)
                if case in (Case.HOLDS, Case.ALONE) or self.asked in (Asked.ABLATE, Asked.RANK):
                    return _SURER.index(case), size if self.asked is Asked.LIKE else -size, i
                return _SURER.index(case), -errors if np.isfinite(errors) else np.inf, -size, i
            later = self.asked is Asked.FLOW and self.figures[i].measured != CORRELATION
            return later, -errors if np.isfinite(errors) else np.inf, -size, i

        every = [i for i in range(len(self.figures)) if np.isfinite(self.mean[i])]
        return tuple(sorted(every, key=order))

    @property
    def case(self) -> Case:
        """The conclusion about the first figure of the ranking."""
        if not self.ranking:
            return Case.NOTHING
        if self.asked.of_parts:
            return Case.PART if self.stands[self.ranking[0]].any() else Case.NO_PART
        if self.asked is Asked.PREDICT:
            return Case.ANSWERS
        return Case.LAYERS if self.asked is Asked.LAYERS else self._case_of(self.ranking[0])

    def _case_of(self, figure: int) -> Case:
        if self.count(figure) < FEWEST:
            return Case.FEW
        if self.excess_surely[figure] > 0:
            return Case.HOLDS
        if not self.excess_low[figure] > 0:
            return Case.CANNOT_TELL
        return Case.HOLDS if self._first_by_luck(figure) <= 1 - SURE else Case.ALONE

    def _first_by_luck(self, figure: int) -> float:
        """The chance that some head is first in so many prompts if each prompt's first were random.

        Only for ablated heads, else 1. The first is drawn among the figures of heads in its layer; a head is
        first where these, and its other controls, move the answer less. The chance is the binomial tail
        times the number of heads (Bonferroni).
        """
        mine = self.figures[figure]
        if self.asked is not Asked.ABLATE or mine.head is None:
            return 1.0
        heads = [i for i, each in enumerate(self.figures) if each.head is not None]
        drawn = [i for i in heads if self.figures[i].layer == mine.layer]
        sizes, share = np.abs(self.values), 1 / len(drawn)
        first = self.stands[figure] & (sizes[figure] >= np.fmax.reduce(sizes[drawn], axis=0))
        count, often = self.count(figure), int(first.sum())
        tail = math.fsum(
            math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(often, count + 1)
        )
        return min(1.0, len(heads) * tail)

    def check_parts(self) -> None:
        shape = (len(self.figures), len(self.prompts))
        every = (self.values, self.controls, self.effects, self.stands)
        fits(all(each.shape == shape for each in every), "'values' are not one for each figure and prompt")
        ends = (self.low, self.high, self.excess_low, self.excess_high, self.excess_surely)
        fits(all(len(each) == len(self.figures) for each in ends), "'low' is not one for each figure")
        fits(bool(self.prompts), "'prompts' are none")

    def derived(self) -> dict[str, Value]:
        """Every figure with its mean, intervals and counts, in order of the ranking."""
        return {"ranked": list(self._rows())}

    def _rows(self) -> Iterator[dict[str, Value]]:
        for i in self.ranking:
            figure = self.figures[i]
            yield {
                "name": figure.name,
                "measured": figure.measured,
                "layer": figure.layer,
                "head": figure.head,
                "mean": float(self.mean[i]),
                "spread": float(self.spread[i]),
                "control": float(self.control_mean[i]),
                "count": self.count(i),
                "stands_in": int(self.stands[i].sum()),
                "against": list(self.opposed(i)),
            }


def means(values: Float[np.ndarray, "figure prompt"]) -> Float[np.ndarray, " figure"]:
    """The mean of each figure over the prompts that have it; NaN where none has."""
    there = np.isfinite(values)
    count = there.sum(axis=1)
    total = np.where(there, values, 0.0).sum(axis=1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def spreads(values: Float[np.ndarray, "figure prompt"]) -> Float[np.ndarray, " figure"]:
    """Standard deviations over the prompts that have the figure; NaN for fewer than two."""
    there = np.isfinite(values)
    count = there.sum(axis=1)
    off = np.where(there, values - means(values)[:, None], 0.0)
    deviation = np.sqrt((off**2).sum(axis=1) / np.maximum(count - 1, 1))
    deviation = np.where(deviation <= _ALIKE * np.abs(means(values)), 0.0, deviation)
    return np.asarray(np.where(count > 1, deviation, np.nan))


def beyond(
    asked: Asked,
    values: Float[np.ndarray, "figure prompt"],
    controls: Float[np.ndarray, "figure prompt"],
    effects: Float[np.ndarray, "figure prompt"],
) -> Float[np.ndarray, "figure prompt"]:
    """By how much each value exceeds its control (`Prompts.excess`)."""
    if asked.of_parts:
        return np.asarray(effects * np.sign(values) - controls)
    if asked is Asked.LIKE:
        return np.asarray(controls - values)
    return np.asarray((np.abs(values) if asked.signed else values) - controls)
