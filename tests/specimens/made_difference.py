"""Two runs held against each other as they could have come out."""

from dataclasses import replace

import made_results
import numpy as np

from attnscope.analysis.claims.comparison.difference import Matrices, Picked, difference, matrices_in
from attnscope.results import Difference


def run(seed: int = 0, layers: int = 3, heads: int = 4) -> Matrices:
    """A made overview whose weights are drawn by lot."""
    plain = matrices_in(made_results.overview(layers, heads), "made.npz")
    random = np.random.default_rng(seed)
    weights = {}
    for place, each in plain.weights.items():
        raw = random.exponential(size=each.shape)
        weights[place] = raw / raw.sum(axis=1, keepdims=True)
    return replace(plain, weights=weights)


def between(picked: Picked = Picked()) -> Difference:  # noqa: B008
    return difference(run(0), run(1), ("a.npz", "b.npz"), picked)
