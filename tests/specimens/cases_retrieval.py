"""A result for every case and every optional part of what `find --retrieval` says."""

import math
from collections.abc import Callable
from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.results import Kind, Retrieval, Verdict
from attnscope.verbs.find import retrieval_sheet as sheet
from attnscope.verbs.find.result import Confirmation, Masked, Needle
from attnscope.verbs.find.result import RetrievalCase as Case


def retrieval(*, answers: bool = True, named: bool = True, others: int = 3) -> Retrieval:
    """Two layers of three heads over twelve facts; L1 H2 looks at the one asked for, L0 H1 at both alike."""
    needles = tuple(
        Needle(
            f"The key of Al{i} is red.", f"What is the key of Al{i}?", "red", "The hat of Bo is blue.",
            64 if i < 6 else 256, 60 + i, (i % 6) / 6, 0.9 if answers else 0.01, answers and i != 7,
        )
        for i in range(12)
    )  # fmt: skip
    first, first_other = np.zeros((2, 2, 3, 12))
    first[1, 2, :], first[0, 1, ::2], first_other[0, 1, 1::2] = float(named), 1.0, 1.0
    low, high, chance = np.full((3, 2, 3), math.nan) if not answers else np.zeros((3, 2, 3))
    if answers:
        low[1, 2], high[:], chance[:] = 0.74, 0.3, 1.0
        high[1, 2], chance[1, 2] = (1.0, 2.0**-11) if named else (0.3, 1.0)
    out = tuple(Masked(((1, i % 2),), 8 + i) for i in range(others))
    told = Confirmation(12, 11, Masked(((1, 2),), 1), 0.02, 0.38, out, 0.6 if others else math.nan)
    return Retrieval(
        needles, Kind.DECODER, (0, 1), (0, 1, 2), first, first_other, first * 0.9, first_other * 0.8,
        low, high, chance, told if answers and named else None, "bundled facts in a bundled text",
        {Verdict.CERTIFIED: 18}, made.provenance(), seed=3, sampled=(0, 5, 6),
    )  # fmt: skip


SAID, CASES = sheet.said, Case


def _confirmed(**fields: object) -> Retrieval:
    result = retrieval()
    assert result.confirmation is not None
    return replace(result, confirmation=replace(result.confirmation, **fields))  # type: ignore[arg-type]


def _few() -> Retrieval:
    whole = retrieval(named=False)
    return replace(whole, needles=tuple(replace(each, right=i < 6) for i, each in enumerate(whole.needles)))


def _two() -> Retrieval:
    """Two heads that look there, and none that gives as much weight."""
    whole = retrieval()
    first, chance = whole.first.copy(), whole.chance.copy()
    first[0, 2], chance[0, 2] = 1.0, chance[1, 2]
    return replace(whole, first=first, weights=first, weights_other=0 * first, chance=chance)


EXAMPLES: dict[str, Callable[[], Retrieval]] = {
    "one": retrieval,
    "two": _two,
    "not confirmed": lambda: _confirmed(found_high=0.9),
    "beside one group": lambda: retrieval(others=1),
    "beside no other": lambda: retrieval(others=0),
    "nothing to confirm by": lambda: _confirmed(right=0),
    "none": lambda: retrieval(named=False),
    "few": _few,
    "no answer": lambda: retrieval(answers=False),
    "not as recomputed": lambda: replace(retrieval(), failed=((0, 1),)),
    "tried on some": lambda: replace(retrieval(), acts="2 of 12 texts"),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "one": (
        Case.NAMED,
        "L1 H2 fetches",
        "1 of 6",
        "100 %",
        "0 %",
        "11 of 12",
        "1 of 11 other",
        "9 (average of 3",
        "confirms it",
    ),
    "two": (Case.NAMED, "L0 H2 and L1 H2 fetch", "2 of 6 heads", "confirms them"),
    "not confirmed": (Case.NAMED, "does not confirm it"),
    "beside no other": (Case.NAMED, "not as many other heads"),
    "no answer": (Case.UNANSWERED, "none of 12"),
    "none": (Case.NONE, "None of 6 heads"),
    "few": (Case.TOO_FEW, "6 answers", "6 heads", "7 could"),
}
