"""What position alone may explain: the distance at which queries look hardest, and what others give there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

Weights = Float[np.ndarray, "query key"]
Allowed = Bool[np.ndarray, "query key"]


@dataclass(frozen=True)
class AtDistance:
    """The distance at which most rows look hardest: in `rows` of the `of` rows that have a choice."""

    offset: int
    rows: int
    of: int


@dataclass(frozen=True, eq=False)
class Distances:
    """The distance at which most rows look hardest, by layer and head.

    `queries` are the rows that have a choice. `offset` is that distance, of keys before the query below 0,
    `rows` in how many rows it is.
    """

    offset: Int[np.ndarray, "layer head"]
    rows: Int[np.ndarray, "layer head"]
    queries: Int[np.ndarray, "layer head"]

    def of(self, place: tuple[int, int]) -> AtDistance:
        """The distance of one head, by its place in the arrays."""
        return AtDistance(*(int(each[place]) for each in (self.offset, self.rows, self.queries)))


@dataclass(frozen=True, eq=False)
class Aimed:
    """What the weights around one query, or one pair, say of it.

    `even_attention` is what it gives each key of the query. Of a pair `largest` counts the heads that give
    its key more than any other, and `elsewhere` is by head the mean weight that the other queries give the
    key at the same distance from them, NaN where no other has one; None where distances have no meaning.
    """

    even_attention: float
    largest: int | None
    elsewhere: Float[np.ndarray, "layer head"] | None


def at_distance(weights: Weights, allowed: Allowed, positions: Sequence[int]) -> AtDistance:
    """At which distance most rows of one head look hardest."""
    places = np.asarray(positions)
    rows = np.flatnonzero((allowed.sum(axis=1) > 1) & np.isfinite(weights).all(axis=1))
    chosen = np.where(allowed[rows], weights[rows], -1.0).argmax(axis=1) if len(rows) else rows
    offsets, counts = np.unique(places[chosen] - places[rows], return_counts=True)
    if not len(counts):
        return AtDistance(0, 0, 0)
    return AtDistance(int(offsets[counts.argmax()]), int(counts.max()), len(rows))


def even(allowed: Allowed, query: int) -> float:
    """What a row gives each of its keys that weighs all alike."""
    return 1.0 / max(int(allowed[query].sum()), 1)


def even_share(allowed: Allowed, queries: Sequence[int], keys: Sequence[int]) -> float:
    """What rows that weigh all of their keys alike give these keys together: the mean over the queries."""
    rows = allowed[list(queries)]
    return float((rows[:, list(keys)].sum(axis=1) / rows.sum(axis=1).clip(min=1)).mean())


def elsewhere(weights: Weights, allowed: Allowed, query: int, key: int) -> float:
    """The mean weight of other queries on the key at the same distance; NaN where no other has one."""
    apart = key - query
    others = [(i, i + apart) for i in range(len(weights)) if i != query and 0 <= i + apart < weights.shape[1]]
    found = [float(weights[pair]) for pair in others if allowed[pair] and np.isfinite(weights[pair])]
    return float(np.mean(found)) if found else float("nan")
