"""Defines a head's strongest link: which pairs are passed over, and what position alone may explain.

Special tokens, the query itself, and a key with more than half of the head's weight (often the first token)
take weight from nearly every query and say little of the text. The rule uses one head alone, so that it has
the same link alone, in a grid of heads and on a page.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.tokens import Tokens

MOST = 0.5  # of a head's weight: a token that takes more is passed over
FEWEST = 5  # queries of which that can be said

Weights = Float[np.ndarray, "query key"]
Pairs = Bool[np.ndarray, "query key"]


@dataclass(frozen=True, eq=False)
class Rest:
    """The pairs of one head among which its strongest link is chosen, and those passed over.

    Passed over are pairs on a `special` token, on the `sink` (a key with more than half of the weight, -1
    without one), and of a token with itself (`own`). `pairs` are all others of queries that are not special;
    if there are none, all pairs of queries that have a choice, and then `whole` is true.
    """

    weights: Weights
    pairs: Pairs
    special: Pairs
    sink: int
    own: Pairs
    whole: bool

    @property
    def parts(self) -> tuple[Pairs, Pairs, Pairs]:
        """The pairs passed over, each once: on special tokens, on the sink, on the query itself."""
        on_sink = np.zeros(self.pairs.shape, dtype=bool)
        if self.sink >= 0:
            on_sink[:, self.sink] = True
        return self.special, on_sink, self.own & ~self.special & ~on_sink

    def share(self, pairs: Pairs) -> float:
        """The share of weight on some pairs, mean over queries that have a key; NaN without any."""
        answered = ~np.isnan(self.weights).any(axis=1)
        return float((self.weights * pairs)[answered].sum(axis=1).mean()) if answered.any() else float("nan")

    @property
    def aside(self) -> float:
        """The share of weight on pairs that are passed over."""
        return sum(self.share(each) for each in self.parts) if not self.whole else 0.0 * self.share(self.own)

    @property
    def strongest(self) -> tuple[int, int]:
        """The query and key of the largest remaining weight; (-1, -1) where no query has a key."""
        if not self.pairs.any():
            return -1, -1
        query, key = np.unravel_index(np.where(self.pairs, self.weights, -1.0).argmax(), self.pairs.shape)
        return int(query), int(key)


def rest_of(weights: Weights, queries: Tokens, keys: Tokens, *, crosses: bool, every: bool = False) -> Rest:
    """The remaining pairs of a head; with `every`, all pairs of queries that have two keys or more.

    A weight of exactly 0 is that of a masked pair. A query that sees one key alone gives it 1 in every head.
    """
    there = weights > 0
    asking, asked = (
        np.array([token.special for token in side.items], dtype=bool) for side in (queries, keys)
    )
    own = np.zeros(there.shape, dtype=bool)
    if not crosses:
        own = np.array(queries.positions)[:, None] == np.array(keys.positions)
    special = np.broadcast_to(asked, there.shape)
    rows = weights[~np.isnan(weights).any(axis=1)]
    sink = sink_of(np.where(asked, 0.0, rows.sum(axis=0) / max(len(rows), 1)), len(rows))
    rest = Rest(weights, there, special, sink, own, whole=False)
    free = there & (there.sum(axis=1, keepdims=True) > 1)
    left = free & ~asking[:, None] & ~np.logical_or.reduce(rest.parts)
    whole = every or not left.any()
    pairs = left if not whole else free if free.any() else there
    return Rest(weights, pairs, special, -1 if whole else sink, own, whole)


def sink_of(shares: Float[np.ndarray, " key"], queries: int) -> int:
    """The key with more than half of the weight, given at least `FEWEST` queries; -1 without one."""
    key = int(np.nan_to_num(shares).argmax())
    return key if queries >= FEWEST and shares[key] > MOST else -1


@dataclass(frozen=True)
class AtDistance:
    """The most frequent offset of a row's strongest key: in `rows` of the `of` rows with a choice."""

    offset: int
    rows: int
    of: int


@dataclass(frozen=True, eq=False)
class Distances:
    """The most frequent offset of a row's strongest key, by layer and head.

    `queries` are the rows that have a choice. `offset` is that distance, of keys before the query below 0,
    `rows` in how many rows it is.
    """

    offset: Int[np.ndarray, "layer head"]
    rows: Int[np.ndarray, "layer head"]
    queries: Int[np.ndarray, "layer head"]

    def of(self, place: tuple[int, int]) -> AtDistance:
        """The offset of one head, by its place in the arrays."""
        return AtDistance(*(int(each[place]) for each in (self.offset, self.rows, self.queries)))


@dataclass(frozen=True, eq=False)
class Aimed:
    """Context for the weights at one query or one pair, to compare them with.

    `even_attention` is the weight of uniform attention on each key of the query. For a pair, `largest`
    counts heads that give its key more than any other, and `elsewhere` is by head the mean weight of other
    queries on the key at the same distance, NaN where no other has one; None where distances have no
    meaning.
    """

    even_attention: float
    largest: int | None
    elsewhere: Float[np.ndarray, "layer head"] | None


def at_distance(weights: Weights, allowed: Pairs, positions: Sequence[int]) -> AtDistance:
    """The most frequent offset from a query to its strongest key in one head."""
    places = np.asarray(positions)
    rows = np.flatnonzero((allowed.sum(axis=1) > 1) & np.isfinite(weights).all(axis=1))
    chosen = np.where(allowed[rows], weights[rows], -1.0).argmax(axis=1) if len(rows) else rows
    offsets, counts = np.unique(places[chosen] - places[rows], return_counts=True)
    if not len(counts):
        return AtDistance(0, 0, 0)
    return AtDistance(int(offsets[counts.argmax()]), int(counts.max()), len(rows))


def even(allowed: Pairs, query: int) -> float:
    """The weight of uniform attention on each key of a query."""
    return 1.0 / max(int(allowed[query].sum()), 1)


def even_share(allowed: Pairs, queries: Sequence[int], keys: Sequence[int]) -> float:
    """The share that uniform attention gives these keys together, mean over the queries."""
    rows = allowed[list(queries)]
    return float((rows[:, list(keys)].sum(axis=1) / rows.sum(axis=1).clip(min=1)).mean())


def elsewhere(weights: Weights, allowed: Pairs, query: int, key: int) -> float:
    """Mean weight of other queries on the key at the same distance; NaN where none has one."""
    apart = key - query
    others = [(i, i + apart) for i in range(len(weights)) if i != query and 0 <= i + apart < weights.shape[1]]
    found = [float(weights[pair]) for pair in others if allowed[pair] and np.isfinite(weights[pair])]
    return float(np.mean(found)) if found else float("nan")
