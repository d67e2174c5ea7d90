"""A result for every case and every optional part of what `compare` says of a tuning."""

from collections.abc import Callable
from dataclasses import replace

import made_results
import numpy as np

from attnscope.results import Drift, Kind, Verdict
from attnscope.results.claims.prompts import Prompt
from attnscope.verbs.compare import drift_sheet as sheet
from attnscope.verbs.compare.drift import intervals
from attnscope.verbs.compare.texts_result import DriftCase as Case
from attnscope.verbs.compare.texts_result import Place, PutBack

TEXTS = ("the door opened", "she opened the box", "I was watching it", "the old box")


def drift(moved: bool = True) -> Drift:
    random = np.random.default_rng(0)
    shape = (len(TEXTS), 2, 3)
    floor = random.uniform(0.001, 0.004, size=shape)
    values, own, written = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    if moved:
        own[:, 0, 1] = random.uniform(0.1, 0.3, size=len(TEXTS))
        written[:, 0, 1] = 0.4
        values[:, 1] = random.uniform(0.005, 0.02, size=(len(TEXTS), 3))
        values += own
    low, high = intervals(values)
    alone = np.array([[0.01, 0.0, 0.02], [0.1, 0.21, 0.3]])
    others = np.array([[0.1, 0.2, 0.29], [np.nan] * 3])
    back = PutBack((2, 0, 1), ((4, 1), (5, 0)), np.array([0.1, 0.2, 0.3]), alone, others, np.zeros(3))
    return Drift(
        names=("base", "tuned"),
        file="texts.txt",
        texts=tuple(Prompt(line, text) for line, text in enumerate(TEXTS, start=1)),
        kind=Kind.ENCODER,
        layers=(4, 5),
        heads=(0, 1, 2),
        moved=values,
        own=own,
        written=written,
        floor=floor,
        floor_by="bfloat16",
        low=low,
        high=high,
        answers=np.array([0.2, 0.3, 0.1, 0.05]) * moved,
        answers_floor=np.full(4, 0.01),
        answers_by="divergence in nats",
        put_back=back if moved else None,
        unanswered="" if moved else "no head moved",
        certified={Verdict.CERTIFIED: 12},
        before=made_results.provenance(),
        after=made_results.provenance(),
        limit=0.1 if moved else None,
    )


SAID, CASES = sheet.said, Case
NONE = np.full(4, np.nan)


def within(**changed: object) -> Drift:
    return replace(drift(), moved=drift().floor / 2, **changed)  # type: ignore[arg-type]


def by_themselves(*places: Place, written: bool = False) -> Drift:
    """What changed by its own weights: where it looks, or only what it writes."""
    found = drift()
    own = np.zeros_like(found.own)
    for rank, place in enumerate(places):
        own[(slice(None), *place)] = 0.5 - 0.1 * rank
    return replace(found, own=0 * own if written else own, written=own if written else 0 * own)


def in_the_mean() -> Drift:
    found = drift()
    moved = np.zeros_like(found.moved)
    moved[:2, 0, 0], moved[:3, 1, 2] = 1, 0.01  # one in two of four texts, the other in three
    return replace(found, moved=moved, limit=None)


def without_others() -> Drift:
    found = drift()
    assert found.put_back is not None
    back = replace(found.put_back, others=np.full_like(found.put_back.others, np.nan))
    return replace(found, put_back=back, answers_by="1 less the cosine of both vectors")


def none_put_back() -> Drift:
    return replace(drift(), put_back=None, unanswered="it has no head")


EXAMPLES: dict[str, Callable[[], Drift]] = {
    "moved": drift,
    "moved in the mean": in_the_mean,
    "moved, two by themselves": lambda: by_themselves((0, 1), (1, 0)),
    "moved, three by themselves": lambda: by_themselves((0, 1), (0, 2), (1, 0)),
    "moved, none by itself": by_themselves,
    "moved, one writes otherwise": lambda: by_themselves((0, 1), written=True),
    "moved, no other head put back": without_others,
    "moved, no answers": lambda: replace(none_put_back(), answers=NONE, answers_floor=NONE, answers_by=""),
    "moved, answers the same": lambda: replace(drift(), answers=np.zeros(4)),
    "moved, answers within rounding": lambda: replace(drift(), answers_floor=np.full(4, 0.25)),
    "moved, none put back": none_put_back,
    "within rounding": lambda: within(limit=0.5),
    "within rounding, no limit": lambda: within(limit=None),
    "same": lambda: drift(moved=False),
    "same heads, no answers": lambda: replace(
        drift(moved=False), answers=NONE, answers_floor=NONE, answers_by=""
    ),
    "same heads, other answers": lambda: replace(drift(moved=False), answers=np.full(4, 0.25), file=""),
}
