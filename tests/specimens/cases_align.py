"""A result for every case and every optional part of what `align` says, of links and of times."""

from collections.abc import Callable
from dataclasses import replace

import cases_media
import made_results as made
import numpy as np

from attnscope.results import Alignment, Kind, Timing, Verdict
from attnscope.verbs.align import sheet
from attnscope.verbs.align.result import (
    Case,
    Direction,
    Judged,
    LinkScore,
    Reliability,
    TimeScore,
    Weighed,
    Weighing,
    WordLink,
    WordTime,
)

TARGET, SOURCE = ("le", "chat", "<b>noir</b>", "dort", "."), ("the", "black", "cat", "sleeps")
LAYERS, HEADS = (0, 2), (0, 1, 3)
WEIGHED = (Weighed(2, 3, 0.6), Weighed(0, 1, 0.3), Weighed(2, 0, 0.1))


def verdicts(worst: Verdict = Verdict.CERTIFIED) -> tuple[tuple[Verdict, ...], ...]:
    return (Verdict.CERTIFIED,) * 3, (Verdict.CERTIFIED, Verdict.CERTIFIED, worst)


def strengths() -> np.ndarray:
    values = np.full((len(TARGET), len(SOURCE)), 0.02)
    for query, key, value in ((0, 0, 0.4), (1, 2, 0.93), (2, 1, 0.88), (3, 3, 0.7), (0, 2, 0.21)):
        values[query, key] = value
    return values


def alignment(
    *, learnt: bool = False, own: bool = False, tells: bool = True, worst: Verdict = Verdict.CERTIFIED
) -> Alignment:
    """Links that were found by sharpness; by what was `learnt`; held against gold of its `own` pair."""
    values = strengths()
    pairs = [
        (0, 0, Direction.BOTH),
        (1, 2, Direction.BOTH),
        (2, 1, Direction.TARGET),
        (3, 3, Direction.SOURCE),
    ]
    gold = ("sure", "sure", "none", "possible")
    links = tuple(
        WordLink(
            q, k, float(values[q, k]), float(values[q, k]) if learnt else None, way, gold[i] if own else None
        )
        for i, (q, k, way) in enumerate(pairs)
    )
    shuffled = np.linspace(0.2, 0.3, 99)
    return Alignment(
        kind=Kind.CROSS,
        query_tokens=made.tokens(TARGET),
        key_tokens=made.tokens(SOURCE),
        layers=LAYERS,
        heads=HEADS,
        weighing=Weighing.LEARNT if learnt else Weighing.SHARPNESS,
        weighed=WEIGHED,
        strengths=values,
        links=links,
        agreement=0.61 if tells else 0.24,
        shuffled=shuffled,
        verdicts=verdicts(worst),
        provenance=made.provenance(),
        judged=judged(learnt) if learnt or own else None,
        learnt_on="pairs.txt" if learnt else "",
    )


def judged(learnt: bool) -> Judged:
    ways = (
        ("these links", 0.04, 9.3),
        ("mean of heads", 0.1, 8.1),
        ("diagonal", 0.33, 8.1),
        ("any word", 0.87, 8.1),
    )
    return Judged(
        name="pairs.txt",
        cases=50,
        words=403,
        held_out=learnt,
        scores=tuple(LinkScore(name, 1 - off, 0.97 - off, off, 0.99 - off, n) for name, off, n in ways),
        reliability=RELIABLE if learnt else (),
        skipped=1,
        certified=3,
    )


RELIABLE = (
    Reliability(0.5, 0.7, 12, 0.61, 7 / 12, 0.32, 0.81),
    Reliability(0.9, 0.97, 40, 0.94, 0.925, 0.8, 0.97),
    Reliability(0.97, 1.0, 300, 0.99, 0.99, 0.97, 1.0),
)


def timing(*, learnt: bool = False, own: bool = False, tells: bool = True) -> Timing:
    """Three words in a sound of 0.8 s, 40 frames."""
    words, frames = ("good", "old", "cats"), 40
    begins, ends = (0.1, 0.34, 0.5), (0.3, 0.46, 0.74)
    rows = np.full((3, frames), 0.005)
    for row, begin, end in zip(rows, begins, ends, strict=True):
        row[round(begin / 0.02) : round(end / 0.02)] = 0.07
    times = tuple(
        WordTime(a, b, 0.8, 0.95 if learnt else None, *((a + 0.02, b - 0.01) if own else (None, None)))
        for a, b in zip(begins, ends, strict=True)
    )
    ways = (("these times", 15.0), ("as published", 190.0), ("equal pieces", 134.0), ("equal words", 170.0))
    gold = Judged(
        "times.tsv", 30, 96, learnt,
        tuple(TimeScore(name, off, 3 * off, 10 / off, 2 * off, 4 * off, 8 / off) for name, off in ways),
        RELIABLE if learnt else (),
    )  # fmt: skip
    return Timing(
        kind=Kind.CROSS,
        query_tokens=made.tokens(words),
        sound=cases_media.sound(),
        seconds=0.02,
        layers=LAYERS,
        heads=HEADS,
        weighing=Weighing.LEARNT if learnt else Weighing.MODEL,
        weighed=WEIGHED,
        rows=rows,
        times=times,
        width=7,
        agreement=0.5 if tells else 0.2,
        shuffled=np.linspace(0.1, 0.3, 99),
        verdicts=verdicts(),
        provenance=made.provenance(),
        judged=gold if learnt or own else None,
        learnt_on="times.tsv" if learnt else "",
    )


SAID, CASES = sheet.said, Case
ALONE = (Weighed(2, 3, 1.0),)


def few(found: Timing) -> Timing:
    return replace(
        found, query_tokens=made.tokens(("good", "old")), rows=found.rows[:2], times=found.times[:2]
    )


EXAMPLES: dict[str, Callable[[], Alignment | Timing]] = {
    "links agree": alignment,
    "links agree, by luck now and then": lambda: replace(alignment(), shuffled=np.linspace(0.2, 0.62, 99)),
    "links learnt": lambda: alignment(learnt=True),
    "links beside their gold": lambda: alignment(own=True),
    "links beside gold, though heads do not agree": lambda: alignment(own=True, tells=False),
    "no link": lambda: replace(alignment(learnt=True), links=()),
    "links of one head": lambda: replace(alignment(tells=False), weighed=ALONE, weighing=Weighing.GIVEN),
    "links of nothing": lambda: alignment(tells=False),
    "times agree": timing,
    "times learnt": lambda: timing(learnt=True),
    "times beside their gold": lambda: timing(own=True),
    "times of one head": lambda: replace(timing(tells=False), weighed=ALONE),
    "times of two words": lambda: few(timing(tells=False)),
    "times of nothing": lambda: timing(tells=False),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "links agree": (Case.AGREE, "4 of 5 words", "“chat” for “cat”", ".61", ".25", "none of 99"),
    "links agree, by luck now and then": (Case.AGREE, "3 of 99 shuffles have"),
    "links learnt": (
        Case.JUDGED,
        "(93.0 %)",
        "96 % of such",
        "13 %",
        "50 pairs of pairs.txt",
        "93 %",
        "98 %",
    ),
    "links beside their gold": (Case.JUDGED, "96 % of these", "13 %", "93 %"),
    "no link": (Case.NO_LINK, "None of 5 words", "93 %", "10 %"),
    "links of one head": (Case.ONE_HEAD, "L2 H3 alone links 5 words"),
    "links of nothing": (Case.NOTHING, "which word", ".24", ".25"),
    "times agree": (Case.AGREE, "0.10 s (“good”)", "0.74 s (“cats”)", ".50", ".20", "none of 99"),
    "times learnt": (Case.JUDGED, "15 ms", "170 ms", "30 sounds of times.tsv", "67 %", "30 ms", "98 %"),
    "times beside their gold": (Case.JUDGED, "these begins are at most 15 ms"),
    "times of two words": (Case.FEW_WORDS, "2 words", ".20", ".20"),
    "times of nothing": (Case.NOTHING, "when each word", ".20", ".20"),
}
