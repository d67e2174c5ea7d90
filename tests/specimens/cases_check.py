"""A result for every case and every optional part of what `check` says."""

from collections.abc import Callable
from dataclasses import replace

import made_check as made

from attnscope.render.focus import Focus
from attnscope.render.sheets import check
from attnscope.results import Check, Verdict
from attnscope.results.verification import Case

SAID, CASES = check.said, Case


def one(place: int, verdict: Verdict) -> Check:
    """One head alone, as it was stored, with this verdict now."""
    found = made.check()
    return replace(found, heads=(replace(found.heads[place], verdict=verdict),))


def exact() -> Check:
    found = made.check()
    return replace(found, heads=tuple(replace(each, off=0.0) for each in found.heads))


def first(count: int) -> Check:
    found = made.check(broken=True)
    return replace(found, heads=found.heads[:count])


EXAMPLES: dict[str, Callable[[], Check] | tuple[Callable[[], Check], Focus]] = {
    "differs": lambda: made.check(broken=True),
    "differs in one head": lambda: first(2),
    "differs in its proof": lambda: one(0, Verdict.FAILED),
    "same to the bit": exact,
    "same but rounding": made.check,
    "same, not proved": lambda: one(1, Verdict.INCONCLUSIVE),
    "no head": lambda: first(0),
}
