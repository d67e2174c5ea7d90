"""A result for every case and every optional part of what `check` says."""

import math
from collections.abc import Callable
from dataclasses import replace

import made_results

from attnscope.render.sheets import Focus
from attnscope.results import Check, HeadCheck, Verdict
from attnscope.verbs.check import sheet
from attnscope.verbs.check.result import Case, PartCheck


def check(*, broken: bool = False) -> Check:
    """Three heads: as stored, or `broken`: one of them off, and one that has lost a number."""
    heads = (
        HeadCheck(0, 1, "weights", 1e-8, 3e-7, Verdict.CERTIFIED),
        HeadCheck(2, 11, "scores", 4e-3 if broken else 4e-7, 2e-6, Verdict.CERTIFIED),
        HeadCheck(3, 5, "output", math.inf if broken else 0.0, 2e-6, Verdict.CERTIFIED),
    )
    told = made_results.provenance()
    return Check("run.npz", heads, ("torch: stored 2.4, now 2.5",), told, told)


SAID, CASES = sheet.said, Case


def one(place: int, verdict: Verdict) -> Check:
    """One head alone, as it was stored, with this verdict now."""
    found = check()
    return replace(found, heads=(replace(found.heads[place], verdict=verdict),))


def exact() -> Check:
    found = check()
    return replace(found, heads=tuple(replace(each, off=0.0) for each in found.heads))


def first(count: int) -> Check:
    found = check(broken=True)
    return replace(found, heads=found.heads[:count])


def parts(*offs: float) -> Check:
    made = tuple(PartCheck(name, off, 1e-6) for name, off in zip(("chance", "rank"), offs, strict=True))
    return replace(check(), heads=(), parts=made, proved=Verdict.CERTIFIED)


EXAMPLES: dict[str, Callable[[], Check] | tuple[Callable[[], Check], Focus]] = {
    "differs": lambda: check(broken=True),
    "differs in one head": lambda: first(2),
    "differs in its proof": lambda: one(0, Verdict.FAILED),
    "same to the bit": exact,
    "same but rounding": check,
    "same, not proved": lambda: one(1, Verdict.INCONCLUSIVE),
    "no head": lambda: first(0),
    "parts": lambda: parts(0.0, 3e-7),
    "a part is off": lambda: parts(2e-4, 0.0),
    "a part is another one": lambda: parts(0.0, math.inf),
}
