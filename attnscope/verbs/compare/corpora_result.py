"""The result of comparing two corpora, or one under two models: each head's difference and its error."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.presented import Presented, Value, fits
from attnscope.results.scores import HeadScores
from attnscope.verbs.corpus.result import ByMeasures, CorpusRead, LengthPair, can_be_equal


class CorporaCase(StrEnum):
    """Outcomes of comparing two corpora (docs/guide/corpora.md)."""

    UNRANKED = "unranked"
    SAME = "same"
    ONE_HEAD = "one head"
    ALIKE = "alike"
    APART = "apart"


@dataclass(frozen=True, eq=False)
class ScoresApart:
    """The difference of one measure, second corpus less first, head by head.

    `difference` is of the means, at equal length where `CorpusDifference.equal` says so, `error` its standard
    error (of independent texts, Welch 1947), `reached` the difference in such errors. `limit` is how many
    errors a head must differ by, so that by chance some head does in 1 of 20 comparisons of one source
    (Bonferroni and Student's t), NaN of one head. `first` and `second` are both means. `as_read` is the
    difference over all texts as they were read, `length_alone` the difference over the lengths that both
    have, less that at equal length (NaN where none is compared so). `of_lengths` are the mean and its
    standard error in each class of length, of both.
    """

    scores: HeadScores = field(metadata={"spread": True})
    first: Float[np.ndarray, "layer head"]
    second: Float[np.ndarray, "layer head"]
    error: Float[np.ndarray, "layer head"]
    limit: Float[np.ndarray, "layer head"]
    as_read: Float[np.ndarray, "layer head"]
    length_alone: Float[np.ndarray, "layer head"]
    of_lengths: Float[np.ndarray, "2 2 length layer head"]

    @property
    def difference(self) -> Float[np.ndarray, "layer head"]:
        """Second mean less first, in the measure's unit."""
        return self.scores.values

    @property
    def reached(self) -> Float[np.ndarray, "layer head"]:
        """Difference in standard errors; NaN where the error is 0 or unknown."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(self.error > 0, self.difference / self.error, np.nan))

    @property
    def beyond(self) -> frozenset[tuple[int, int]]:
        """Indices (layer, head) of the heads that differ by more errors than their limit."""
        return frozenset((int(i), int(j)) for i, j in np.argwhere(np.abs(self.reached) > self.limit))


@dataclass(frozen=True, eq=False, repr=False)
class CorpusDifference(ByMeasures, Presented):
    """Two corpora under one model, or one under two: every measure of every head, second less first.

    `lengths` are the classes of length that texts of either fall into. `shown` is the measure that is looked
    at.
    """

    reads: tuple[CorpusRead, CorpusRead]
    kind: Kind
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    measures: Mapping[str, ScoresApart]
    lengths: tuple[LengthPair, ...]
    verdict_of_each: tuple[Verdict, Verdict]
    provenances: tuple[Provenance, Provenance]
    tower: str = ""
    shown: str = ""
    notes: tuple[str, ...] = ()

    asks_alone = True

    @property
    def equal(self) -> bool:
        """Whether means are compared at equal length: lengths are unlike, and some class has enough texts."""
        return can_be_equal(self.lengths)

    @property
    def tokens(self) -> tuple[float, float]:
        """Mean tokens of a text of either corpus, over the compared texts: nearly alike at equal length."""
        pairs = [pair for pair in self.lengths if pair.shared or not self.equal]
        texts, tokens = (
            np.array([getattr(pair, name) for pair in pairs]).reshape(-1, 2) for name in ("texts", "tokens")
        )
        shares = texts / np.maximum(texts.sum(axis=0), 1)
        shares = shares.mean(axis=1, keepdims=True) if self.equal else shares
        first, second = (shares * tokens / np.maximum(texts, 1)).sum(axis=0)
        return float(first), float(second)

    @property
    def verdict(self) -> Verdict:
        """The worse verdict of both corpora."""
        return worst(self.verdict_of_each)

    @property
    def provenance(self) -> Provenance:
        """The provenance of the first corpus; pictures and files name both."""
        return self.provenances[0]

    @property
    def main(self) -> ScoresApart:
        """The differences in the measure that is shown, else in the first."""
        return self.measures[self.shown or next(iter(self.measures))]

    @property
    def case(self) -> CorporaCase:
        """The outcome for the measure that is shown."""
        main = self.main
        known = main.difference[~np.isnan(main.difference)]
        if known.size and not known.any():
            return CorporaCase.SAME
        if np.isnan(main.reached).all():
            return CorporaCase.UNRANKED
        if np.isnan(main.limit).all():
            return CorporaCase.ONE_HEAD
        return CorporaCase.APART if main.beyond else CorporaCase.ALIKE

    @property
    def nothing(self) -> bool:
        """Whether no head differs in any measure or length class, to the last bit.

        Where no class has enough texts of both, a missing difference at equal length does not count.
        """
        return all(
            np.array_equal(each.of_lengths[0], each.of_lengths[1], equal_nan=True)
            and not np.nan_to_num(each.difference).any()
            for each in self.measures.values()
        )

    def check_parts(self) -> None:
        super().check_parts()
        classes = {each.of_lengths.shape[2] for each in self.measures.values()}
        fits(classes == {len(self.lengths)}, "'lengths' are not those of the measures")

    def derived(self) -> dict[str, Value]:
        return {"verdict": self.verdict, "case": self.case, "equal_length": self.equal}
