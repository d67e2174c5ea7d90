"""A result for every case and every optional part of what `compare` says of a tuning."""

from collections.abc import Callable
from dataclasses import replace

import made_drift as made
import numpy as np

from attnscope.render.sheets import drift
from attnscope.results import Drift
from attnscope.results.claims.drift import Case, Place

SAID, CASES = drift.said, Case
NONE = np.full(4, np.nan)


def within(**changed: object) -> Drift:
    return replace(made.drift(), moved=made.drift().floor / 2, **changed)  # type: ignore[arg-type]


def by_themselves(*places: Place, written: bool = False) -> Drift:
    """What changed by its own weights: where it looks, or only what it writes."""
    found = made.drift()
    own = np.zeros_like(found.own)
    for rank, place in enumerate(places):
        own[(slice(None), *place)] = 0.5 - 0.1 * rank
    return replace(found, own=0 * own if written else own, written=own if written else 0 * own)


def in_the_mean() -> Drift:
    found = made.drift()
    moved = np.zeros_like(found.moved)
    moved[:2, 0, 0], moved[:3, 1, 2] = 1, 0.01  # one in two of four texts, the other in three
    return replace(found, moved=moved, limit=None)


def without_others() -> Drift:
    found = made.drift()
    assert found.put_back is not None
    back = replace(found.put_back, others=np.full_like(found.put_back.others, np.nan))
    return replace(found, put_back=back, answers_by="1 less the cosine of both vectors")


def none_put_back() -> Drift:
    return replace(made.drift(), put_back=None, unanswered="it has no head")


EXAMPLES: dict[str, Callable[[], Drift]] = {
    "moved": made.drift,
    "moved in the mean": in_the_mean,
    "moved, two by themselves": lambda: by_themselves((0, 1), (1, 0)),
    "moved, three by themselves": lambda: by_themselves((0, 1), (0, 2), (1, 0)),
    "moved, none by itself": by_themselves,
    "moved, one writes otherwise": lambda: by_themselves((0, 1), written=True),
    "moved, no other head put back": without_others,
    "moved, no answers": lambda: replace(none_put_back(), answers=NONE, answers_floor=NONE, answers_by=""),
    "moved, answers the same": lambda: replace(made.drift(), answers=np.zeros(4)),
    "moved, answers within rounding": lambda: replace(made.drift(), answers_floor=np.full(4, 0.25)),
    "moved, none put back": none_put_back,
    "within rounding": lambda: within(limit=0.5),
    "within rounding, no limit": lambda: within(limit=None),
    "same": lambda: made.drift(moved=False),
    "same heads, no answers": lambda: replace(
        made.drift(moved=False), answers=NONE, answers_floor=NONE, answers_by=""
    ),
    "same heads, other answers": lambda: replace(made.drift(moved=False), answers=np.full(4, 0.25), file=""),
}
