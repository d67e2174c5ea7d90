"""One word in many texts as it could have come out: groups that lie apart, and texts without labels."""

import made_results
import numpy as np

from attnscope.analysis.claims.comparison.senses import separation, together
from attnscope.results import Kind, Senses, Verdict
from attnscope.results.claims.senses import Usage

LABELS = ("river", "river", "money", "money", "money")
TEXTS = ("the bank of the river", "a muddy bank", "the bank has the money", "his bank", "two banks lend")


def senses(labelled: bool = True) -> Senses:
    random = np.random.default_rng(0)
    by_layer = [random.normal(size=(len(TEXTS), 2, 4)) for _ in range(3)]
    for vectors in by_layer[1:]:
        vectors[:2] += 1
    words = ("bank", "bank", "bank", "bank", "banks")
    labels = LABELS if labelled else ("",) * len(TEXTS)
    return Senses(
        question="bank",
        kind=Kind.ENCODER,
        usages=tuple(map(Usage, TEXTS, labels, words, (2, 3, 2, 2, 2))),
        layers=(0, 1, 2),
        heads=(0, 3),
        cosines=np.array([together(vectors) for vectors in by_layer]),
        separation=separation(by_layer, LABELS, controls=20, seed=0) if labelled else None,
        certified={Verdict.CERTIFIED: 30},
        provenance=made_results.provenance(),
    )
