"""What a tuning changed as it could have come out: one head of six moved by itself, or nothing did."""

import made_results
import numpy as np

from attnscope.analysis.claims.comparison.drift import intervals
from attnscope.results import Drift, Kind, Verdict
from attnscope.results.claims.drift import PutBack
from attnscope.results.claims.prompts import Prompt

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
    back = PutBack(
        (2, 0, 1),
        ((4, 1), (5, 0)),
        np.array([0.1, 0.2, 0.3]),
        alone,
        others,
        np.zeros(3),
    )
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
