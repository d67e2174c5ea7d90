"""Composition of heads as it could have come out: layers of several sizes, one input without a path."""

import made_results
import numpy as np

from attnscope.results import Composition, Kind, Verdict
from attnscope.results.claims.composition import Through

LAYERS, COUNTS, HIDDEN, DRAWS = (0, 1, 3), (4, 5, 3), 20, 50


def pairs(shown: tuple[int, int] | None = None) -> np.ndarray:
    """Every earlier head with every later one; with `shown` those that it is one of."""
    heads = [(layer, head) for layer, count in zip(LAYERS, COUNTS, strict=True) for head in range(count)]
    every = [(*early, *late) for early in heads for late in heads if early[0] < late[0]]
    return np.array([pair for pair in every if shown in (None, pair[:2], pair[2:])])


def composition(shown: tuple[int, int] | None = None, seed: int = 0) -> Composition:
    """Numbers by lot; no pair composes through values into the last layer."""
    random, found = np.random.default_rng(seed), pairs(shown)
    shape = (len(Through), len(found))
    scores = random.uniform(0.1, 0.6, shape)
    scores[2, found[:, 2] == 3] = np.nan
    lacking = np.isnan(scores)
    chance, spread, below, limit = (
        np.where(lacking, np.nan, each)
        for each in (
            random.uniform(0.2, 0.24, shape),
            random.uniform(0.01, 0.03, shape),
            DRAWS * (scores > 0.22),
            random.uniform(0.31, 0.35, shape),
        )
    )
    return Composition(
        kind=Kind.DECODER,
        layers=LAYERS,
        counts=COUNTS,
        hidden=HIDDEN,
        through=tuple(Through),
        pairs=found,
        scores=scores,
        chance=chance,
        spread=spread,
        below=below,
        limit=limit,
        draws=DRAWS,
        seed=3,
        inside=("residual additions", "the weights of norms before what the heads read"),
        outside=("other heads and feed-forward parts between them", "offsets"),
        reasons=("L3: no matrix alone makes its values",),
        certified={Verdict.CERTIFIED: 12},
        provenance=made_results.provenance(),
        shown=shown,
    )
