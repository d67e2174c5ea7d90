"""Two corpora for every case and every optional part of what `compare` says of them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_corpus as made
import numpy as np
from cases_corpus import NOTHING, flat

from attnscope.render.sheets import Focus
from attnscope.results import CorpusDifference
from attnscope.verbs.compare import corpora_sheet as corpora
from attnscope.verbs.compare.corpora_result import CorporaCase as Case
from attnscope.verbs.corpus.result import LengthPair

SAID, CASES = corpora.said, Case


def differing(
    difference: np.ndarray, measure: str = "entropy", limit: float = 2.7, error: float = 0.1
) -> CorpusDifference:
    """A has 8 tokens, or .40, in every head; B so much more, with an error of .1."""
    result = made.apart()
    own, first = result.measures[measure], flat(np.log(8.0) if measure == "entropy" else 0.4)
    scores = replace(own.scores, values=difference)
    changed = replace(
        own,
        scores=scores,
        first=first,
        second=first + difference,
        error=flat(error),
        limit=flat(limit),
        length_alone=flat(0.2),
        of_lengths=np.zeros((2, 2, 1, 3, 4)),
    )
    return replace(result, measures={measure: changed}, lengths=(LengthPair(8, 11, (9, 9), (81, 81)),))


def of_lengths(found: CorpusDifference, *lengths: LengthPair) -> CorpusDifference:
    return replace(found, lengths=lengths)


ONE, TWO = flat(0.05, at01=-0.3), flat(0.05, at01=-0.3, at12=0.28)
EQUAL = LengthPair(8, 11, (5, 10), (40, 90)), LengthPair(12, 15, (5, 30), (60, 390))
UNEQUAL = (
    *(LengthPair(each, each, (4, 2), (4 * each, 2 * each)) for each in (8, 16)),
    LengthPair(64, 90, (0, 2), (0, 140)),
)


def with_reads(**second: int) -> CorpusDifference:
    a, b = (found := differing(TWO)).reads
    return replace(found, reads=(a, replace(b, **second)))


def of_two_models() -> CorpusDifference:
    found = of_lengths(differing(TWO), *EQUAL)
    first, second = found.provenances
    return replace(found, provenances=(first, replace(second, model="distilbert-base-uncased")))


def in_this_alone() -> CorpusDifference:
    found = differing(0 * ONE)
    return replace(found, measures={**found.measures, "first": differing(TWO).main})


EXAMPLES: dict[str, Callable[[], CorpusDifference] | tuple[Callable[[], CorpusDifference], Focus]] = {
    "apart": partial(differing, TWO),
    "apart, in nats": (partial(differing, TWO), Focus(in_nats=True)),
    "apart, one head": partial(differing, ONE),
    "apart, by another measure": partial(differing, TWO, "previous"),
    "apart, of other length": lambda: of_lengths(differing(TWO), *UNEQUAL),
    "apart, at equal length": lambda: of_lengths(differing(TWO), *EQUAL),
    "apart, at equal length of few": lambda: of_lengths(
        differing(TWO), *EQUAL, LengthPair(64, 90, (20, 0), (1400, 0))
    ),
    "apart, of few texts": partial(with_reads, texts=8, tokens=8 * 17),
    "apart, under two models": of_two_models,
    "alike": partial(differing, flat(0.05, at01=-0.25)),
    "alike, at equal length": lambda: of_lengths(differing(flat(0.05, at01=-0.25)), *EQUAL),
    "same": partial(differing, 0 * ONE),
    "same in this measure": in_this_alone,
    "one head": partial(differing, ONE, limit=float("nan")),
    "unranked": partial(differing, NOTHING),
    "unranked, no scatter": partial(differing, ONE, error=0.0),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "apart": (
        Case.APART,
        "2 of 12",
        "tokens",
        "L0 H2",
        "8.0",
        "41 texts of small.txt (A)",
        "5.9",
        "30 texts",
    ),
    "apart, in nats": (Case.APART, "2 of 12", "2.079", "1.779"),
    "apart, one head": (Case.APART, "1 of 12 heads differs"),
    "apart, by another measure": (Case.APART, "2 of 12", "the token before", "L0 H2", ".400", ".100"),
    "apart, of other length": (Case.APART, "12.0", "31.3", "alone"),
    "apart, at equal length": (Case.APART, "2 of 12", "at equal length"),
    "apart, at equal length of few": (Case.APART, "33 %", "A are"),
    "apart, of few texts": (Case.APART, "only 8 texts of other.txt (B)"),
    "apart, under two models": (Case.APART, "(A, bert-base-uncased)", "(B, distilbert-base-uncased)"),
    "alike": (Case.ALIKE, "None of 12", "L0 H2", "8.0", "6.2"),
    "same": (Case.SAME, "12 heads", "1 measure", "to the last bit"),
    "same in this measure": (Case.SAME, "12 heads", "tokens"),
    "one head": (Case.ONE_HEAD, "L0 H2", "8.0", "5.9", "3.0 standard errors"),
    "unranked": (Case.UNRANKED, "None of 12"),
    "unranked, no scatter": (Case.UNRANKED, "None of 12", "same number"),
}
