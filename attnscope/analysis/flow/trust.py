"""How far what attention gives to tokens agrees with what replacing them does, beside chance and nearness."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from attnscope.results.claims.flow import Trust

SHUFFLES, LEAST = 1000, 4  # shuffled effects, and the fewest tokens of which a rank correlation says anything
OUTER = 0.05


def trusted(
    methods: Mapping[str, Float[np.ndarray, " key"]],
    effects: Float[np.ndarray, " key"],
    near: Float[np.ndarray, " key"],
    seed: int = 0,
    groups: Sequence[Sequence[int]] = (),
) -> tuple[Trust, ...]:
    """Every method, and nearness to the query, against the size of the effects of what was replaced.

    What was replaced together, in `groups`, counts as one: the shares of its members are added up, and it is
    as near as they are on average.
    """
    parts = [list(each) for each in groups] or [
        [place] for place in np.flatnonzero(~np.isnan(effects)).tolist()
    ]
    sizes = np.array([abs(effects[part[0]]) for part in parts])
    every = {name: np.array([values[part].sum() for part in parts]) for name, values in methods.items()}
    every["nearness"] = np.array([near[part].mean() for part in parts])
    random = np.random.default_rng(seed)
    orders = np.array([random.permutation(len(parts)) for _ in range(SHUFFLES)])
    return tuple(_trust(name, values, sizes, orders) for name, values in every.items())


def _trust(
    name: str, values: Float[np.ndarray, " place"], sizes: Float[np.ndarray, " place"], orders: np.ndarray
) -> Trust:
    if len(values) < LEAST or np.ptp(values) == 0 or np.ptp(sizes) == 0:
        return Trust(name, np.nan, np.nan, np.nan, np.nan)
    first, second = _centred(values), _centred(sizes)
    own, shuffled = float(first @ second), second[orders] @ first
    low, high = (float(each) for each in np.quantile(shuffled, (OUTER, 1 - OUTER)))
    return Trust(name, own, low, high, float(100 * (shuffled < own - 1e-12).mean()))


def _centred(values: Float[np.ndarray, " place"]) -> Float[np.ndarray, " place"]:
    """The ranks, their mean taken off, of length 1: two of these multiplied are Spearman's correlation."""
    ranks = rankdata(values)
    ranks -= ranks.mean()
    return np.asarray(ranks / np.linalg.norm(ranks))
