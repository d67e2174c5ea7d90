"""What a map is made of: a vector of each query and key that it shows, and the scores between them.

By tokens these are the head's own. By words a vector is the mean over the pieces of the word.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results import HeadAttention, HeadView
from attnscope.results.view import Groups


@dataclass(frozen=True, eq=False)
class Points:
    """Vectors of the queries and the keys of a map, and the scaled score of each pair, NaN where masked."""

    queries: Float[np.ndarray, "query dim"]
    keys: Float[np.ndarray, "key dim"]
    scaled: Float[np.ndarray, "query key"]
    allowed: Bool[np.ndarray, "query key"]


def points_of(head: HeadAttention, view: HeadView | None = None) -> Points:
    """The points of `head`, or of a `view` of it."""
    if view is None:
        return Points(head.q, head.k, head.scaled, head.allowed)
    queries, keys = mean_vectors(head.q, view.query_groups), mean_vectors(head.k, view.key_groups)
    return Points(queries, keys, mean_scores(head, view), view.allowed)


def mean_vectors(vectors: Float[np.ndarray, "token dim"], groups: Groups) -> Float[np.ndarray, "group dim"]:
    """The mean vector of each of `groups`; of a group of one token the very same numbers."""
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    means: Float[np.ndarray, "group dim"] = _sums(vectors, groups) / sizes[:, None]
    return means


def mean_scores(head: HeadAttention, view: HeadView) -> Float[np.ndarray, "query_group key_group"]:
    """Of each query and key of `view` the mean scaled score over the pairs of their pieces that are allowed.

    Where the scaled score is a plain q.k x scale and all pairs are allowed, this is the scaled product of
    the mean vectors, since a product of sums is the sum of the products. NaN where no pair is allowed.
    """
    groups = view.query_groups, view.key_groups
    sums = _pair_sums(np.where(head.allowed, head.scaled, 0.0), *groups)
    pairs = _pair_sums(head.allowed.astype(np.float64), *groups)
    empty = np.full(sums.shape, np.nan)
    means: Float[np.ndarray, "query_group key_group"] = np.divide(sums, pairs, out=empty, where=pairs > 0)
    return means


def _pair_sums(
    values: Float[np.ndarray, "query key"], queries: Groups, keys: Groups
) -> Float[np.ndarray, "query_group key_group"]:
    return np.ascontiguousarray(_sums(_sums(values, queries).T, keys).T)


def _sums(rows: Float[np.ndarray, "token column"], groups: Groups) -> Float[np.ndarray, "group column"]:
    """The sum of the rows of each group; added up one by one, so that infinite rows stay in their group."""
    order = [position for group in groups for position in group]
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    sums: Float[np.ndarray, "group column"] = np.add.reduceat(rows[order], starts, axis=0)
    return sums
