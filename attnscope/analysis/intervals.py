"""Intervals of 95 %: of means over prompts, and of a share of trials."""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from attnscope.results.claims.prompts import FEWEST, SURE, means, spreads
from attnscope.results.claims.ranking import Z


def interval(
    values: Float[np.ndarray, "figure prompt"], among: np.ndarray | int = 1, *, least: float = 0.0
) -> tuple[Float[np.ndarray, " figure"], Float[np.ndarray, " figure"]]:
    """Both ends of the 95 % interval of each mean, `among` so many at once; NaN of fewer than `FEWEST`.

    mean -+ t * s / sqrt(n), with n - 1 degrees of freedom (Student 1908), the level shared out (Bonferroni).
    The spread s counts as no less than `least`: what is next to nothing in every prompt is none the surer.
    """
    count = np.isfinite(values).sum(axis=1)
    level = 1 - (1 - SURE) / 2 / np.maximum(among, 1)
    error = np.maximum(spreads(values), least) / np.sqrt(np.maximum(count, 1))
    reach = stdtrit(np.maximum(count - 1, 1), level) * error
    centre = np.where(count < FEWEST, np.nan, means(values))
    return np.asarray(centre - reach), np.asarray(centre + reach)


def wilson(share: float, trials: float) -> tuple[float, float]:
    """The 95 % interval of a share of so many independent trials (Wilson 1927)."""
    squared = Z**2 / trials
    middle = (share + squared / 2) / (1 + squared)
    reach = Z / (1 + squared) * math.sqrt(share * (1 - share) / trials + squared / (4 * trials))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)
