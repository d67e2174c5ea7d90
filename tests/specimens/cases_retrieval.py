"""A result for every case and every optional part of what `find --retrieval` says."""

from collections.abc import Callable
from dataclasses import replace

import made_retrieval as made

from attnscope.render.sheets import retrieval
from attnscope.results import Retrieval
from attnscope.results.claims.retrieval import Case

SAID, CASES = retrieval.said, Case


def _confirmed(**fields: object) -> Retrieval:
    result = made.retrieval()
    assert result.confirmation is not None
    return replace(result, confirmation=replace(result.confirmation, **fields))  # type: ignore[arg-type]


def _few() -> Retrieval:
    whole = made.retrieval(named=False)
    return replace(whole, needles=tuple(replace(each, right=i < 6) for i, each in enumerate(whole.needles)))


def _two() -> Retrieval:
    """Two heads that look there, and none that gives as much weight."""
    whole = made.retrieval()
    first, chance = whole.first.copy(), whole.chance.copy()
    first[0, 2], chance[0, 2] = 1.0, chance[1, 2]
    return replace(whole, first=first, weights=first, weights_other=0 * first, chance=chance)


EXAMPLES: dict[str, Callable[[], Retrieval]] = {
    "one": made.retrieval,
    "two": _two,
    "not confirmed": lambda: _confirmed(found_high=0.9),
    "beside one group": lambda: made.retrieval(others=1),
    "beside no other": lambda: made.retrieval(others=0),
    "nothing to confirm by": lambda: _confirmed(right=0),
    "none": lambda: made.retrieval(named=False),
    "few": _few,
    "no answer": lambda: made.retrieval(answers=False),
    "not as recomputed": lambda: replace(made.retrieval(), failed=((0, 1),)),
    "tried on some": lambda: replace(made.retrieval(), acts="2 of 12 texts"),
}
