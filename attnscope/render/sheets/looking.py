"""How many tokens a head looks at, and what is much."""

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.numbers import cell
from attnscope.results.base.distances import AtDistance

_SHARP, _WHOLE = 1.95, 2.95  # tokens: fewer are almost one, and more need no decimals
MOSTLY = 0.8  # of the rows: what looks at one distance in so many does so by position
SINK = 0.5  # of the weight: what leaves more on special tokens tells little of the text

Weights = Float[np.ndarray, "query key"]


def tokens_looked_at(entropy: float) -> float:
    """How many tokens, weighed alike, have this entropy in nats."""
    return float(np.exp(entropy))


def mean_entropy(weights: Weights) -> float:
    """The mean over the rows that have a key, in nats (Clark et al. 2019)."""
    rows = weights[np.isfinite(weights).all(axis=1)]
    held = np.where(rows > 0, rows, 1.0)
    return float(-(held * np.log(held)).sum(axis=1).mean()) if len(rows) else float("nan")


def many(tokens: float) -> str:
    """`1.3`, `6`: so many tokens, with a decimal where they are few."""
    return f"{tokens:.0f}" if tokens >= _WHOLE else cell(tokens, 1)


def mostly(distance: AtDistance) -> bool:
    """Whether so many rows look at one distance that position alone can do it."""
    return distance.of > 1 and distance.rows >= MOSTLY * distance.of
