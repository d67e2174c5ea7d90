"""Weights between groups of tokens: the sum over a group of keys, the mean over a group of queries."""

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.words import Groups


def regrouped(
    weights: Float[np.ndarray, "query key"], queries: Groups, keys: Groups, *, renormalise: bool = False
) -> Float[np.ndarray, "query_group key_group"]:
    """Weights by groups of tokens; with `renormalise` each row is divided by its sum, NaN where that is 0.

    A row of NaN is a query without a key: it is left out of the mean over its group, which is NaN only
    where no piece has a key.
    """
    answered = ~np.isnan(weights).any(axis=1)
    taken = (members(queries, len(weights)) & answered).astype(np.float64)
    pieces = taken.sum(axis=1, keepdims=True)
    sums = np.nan_to_num(weights) @ members(keys, weights.shape[1]).T
    rows = _divided(taken @ sums, pieces)
    return _divided(rows, rows.sum(axis=1, keepdims=True)) if renormalise else rows


def members(groups: Groups, count: int) -> Bool[np.ndarray, "group token"]:
    """Which of `count` tokens belong to each group."""
    members = np.zeros((len(groups), count), dtype=bool)
    for row, group in enumerate(groups):
        members[row, list(group)] = True
    return members


def _divided(
    rows: Float[np.ndarray, "row column"], sums: Float[np.ndarray, "row 1"]
) -> Float[np.ndarray, "row column"]:
    """Rows over their sums, NaN where that is 0."""
    empty = np.full(rows.shape, np.nan)
    quotients: Float[np.ndarray, "row column"] = np.divide(rows, sums, out=empty, where=sums > 0)
    return quotients
