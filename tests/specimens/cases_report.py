"""A result for every case and every optional part of what is said of one query of a head."""

from collections.abc import Callable
from dataclasses import replace

import made_reports as reports
import made_results as made
import numpy as np

from attnscope.analysis.heads.view import viewed
from attnscope.results import HeadAttention, Report, Special
from attnscope.verbs.report import sheet as sheets
from attnscope.verbs.report.result import Case
from attnscope.vocabulary import Unit

SAID, CASES = sheets.said, Case
NONE = float("nan")


def swapped() -> Report:
    """The first key adds what the one with the largest weight did."""
    result = reports.report()
    given, most = result.contributions.copy(), int(result.contributions.argmax())
    given[[0, most]] = given[[most, 0]]
    return replace(result, contributions=given)


def joined(special: Special) -> Report:
    head = made.head()
    return reports.report(head, view=viewed(head, by=Unit.WORD, special=special))


def predicted(of: Callable[[HeadAttention], object]) -> Report:
    head = made.head()
    return reports.report(head, prediction=of(head))  # type: ignore[arg-type]


def numbers() -> Report:
    """Measures that have no meaning, no choice, or nothing beside them."""
    listed = (
        reports.statistic("self", NONE, NONE, "no common tokens"),
        reports.statistic("next", NONE, NONE, "no common tokens"),
        reports.statistic("entropy", 0.0, 0.0),
        reports.statistic("distance", 2.5),
    )
    return reports.report(statistics=listed)


def without_map() -> Report:
    head = made.head(empty=range(13))
    return reports.report(head, projection=made.projection(head, trustworthiness=NONE, correlation=NONE))


EXAMPLES: dict[str, Callable[[], Report]] = {
    "looks": reports.report,
    "adds more than all": lambda: reports.report(contributions=np.array([-0.3, *[0.0] * 6, 1.3, *[0.0] * 5])),
    "another key adds most": swapped,
    "many keys": lambda: reports.report(made.head(reports.words(20)), 4),
    "of a decoder": lambda: reports.report(reports.cross(5, 9), 2),
    "with a sink": lambda: reports.report(reports.with_sink(reports.causal(9)), 6),
    "by words": lambda: joined(Special.SHOW),
    "special tokens left out": lambda: joined(Special.HIDE),
    "divided by the rest": lambda: joined(Special.RENORMALISE),
    "another mask": lambda: predicted(lambda head: reports.masked(head, [2])),
    "two masks": lambda: predicted(lambda head: reports.masked(head, [2, 4], verdict=0.25)),
    "next": lambda: predicted(reports.following),
    "writes": lambda: predicted(lambda head: reports.written(head, "la porte")),
    "no mask": lambda: predicted(lambda head: reports.masked(head, [])),
    "no key": lambda: reports.report(made.head(empty=[4]), 4),
    "no output": lambda: reports.report(contributions=np.full(13, NONE)),
    "odd numbers": numbers,
    "no map": without_map,
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "looks": (Case.LOOKS, "L3 H11", "“on”", "“because” (.28", ".08", "52 %"),
    "another key adds most": (Case.LOOKS, "“because” (.28", "but 52 %", "[CLS] (.03)"),
    "two masks": (Case.LOOKS, "“because”", "“princess'”", "“on”", "50.0 %"),
    "another mask": (Case.LOOKS, "“because”", "“princess”", "“cat”", "50.0 %"),
    "next": (Case.LOOKS, "After [SEP]", "“princess”", "50.0 %"),
    "writes": (Case.LOOKS, "“la porte”"),
    "no key": (Case.NO_KEY, "“on”", "L3 H11"),
    "no output": (Case.NO_OUTPUT, "L3 H11", "“on”"),
}
