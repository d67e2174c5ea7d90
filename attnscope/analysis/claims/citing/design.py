"""Which passages are taken away together: each alone, or random halves of many and a sparse fit to these.

With many passages the log odds of a sentence are fitted as a sum over the passages that are there, by Lasso
as in ContextCite (Cohen-Wang et al. 2024). A fit is a guess: what it puts first is taken away itself.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from sklearn.linear_model import Lasso
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler

KEPT = 0.5  # of the passages in a random subset
ALPHA = 0.01  # of Lasso, on log odds by token: ContextCite's own
HELD_OUT = 0.25  # of the subsets: what the fit is tested on
CONTROLS, _TRIES = 20, 4  # halves of the other passages beside which a loss stands, at most; draws for each
_LEAST_CHANCE = 1e-12  # and most, 1 less that: log odds are no larger


def halves(passages: int, count: int, seed: int) -> Bool[np.ndarray, "subset passage"]:
    """Which passages are there in each of `count` random subsets."""
    random = np.random.default_rng(seed)
    return np.asarray(random.random((count, passages)) < KEPT)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What each passage adds to the log odds of a sentence, and R² on the subsets that were held out."""

    weights: Float[np.ndarray, " passage"]
    r2: float


def fitted(
    there: Bool[np.ndarray, "subset passage"], chances: Float[np.ndarray, " subset"], tokens: int
) -> Fitted:
    """The fit to log probabilities of a sentence of so many tokens; R² is NaN where they are all the same."""
    odds = log_odds(chances)
    held = max(2, round(HELD_OUT * len(odds)))
    known, left = slice(None, -held), slice(-held, None)
    r2 = float("nan")
    if np.ptp(odds[left]) > 0:
        weights, rest = _lasso(there[known], odds[known], tokens)
        r2 = float(r2_score(odds[left], there[left] @ weights + rest))
    return Fitted(_lasso(there, odds, tokens)[0], r2)


def log_odds(chances: Float[np.ndarray, " subset"]) -> Float[np.ndarray, " subset"]:
    """ln p / (1 - p) of log probabilities."""
    probable = np.clip(np.exp(chances), _LEAST_CHANCE, 1 - _LEAST_CHANCE)
    low = np.minimum(chances, np.log(probable))  # of what is least probable the log probability is known
    return np.asarray(low - np.log1p(-probable))


def _lasso(
    there: Bool[np.ndarray, "subset passage"], odds: Float[np.ndarray, " subset"], tokens: int
) -> tuple[Float[np.ndarray, " passage"], float]:
    scaler = StandardScaler()
    scaled = scaler.fit_transform(there.astype(float))
    model = Lasso(alpha=ALPHA).fit(scaled, odds / tokens)
    weights = model.coef_ / scaler.scale_
    return weights * tokens, float(model.intercept_ - scaler.mean_ @ weights) * tokens


def others_together(passages: int, candidates: Collection[int], seed: int) -> list[tuple[int, ...]]:
    """Random halves of the passages that are no candidates, each another one, drawn with `seed`."""
    others = [each for each in range(passages) if each not in candidates]
    random = np.random.default_rng(seed)
    drawn = dict[tuple[int, ...], None]()
    for _ in range(_TRIES * CONTROLS):
        size = int(random.integers(len(others) // 2, (len(others) + 1) // 2 + 1))
        drawn[tuple(sorted(random.permutation(others)[: max(size, 1)].tolist()))] = None
        if len(drawn) == CONTROLS:
            break
    return [*drawn]
