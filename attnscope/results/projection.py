"""Queries and keys of one head together in a plane, and how far that plane can be trusted."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.heads import HeadAttention


@dataclass(frozen=True, eq=False)
class Projection:
    """A t-SNE map of the queries and keys of `head` (van der Maaten and Hinton 2008).

    `queries` and `keys` are places in the plane, without unit. `distance` is the distance of every query
    to every key under `metric` in the full space that the map was made of; with `centred` the keys were
    first moved so that their mean is that of the queries, which leaves attention as it is. `perplexity` was
    used where `wanted_perplexity` was asked for. `iterations` were run of at most `max_iter`; `settled`
    when the map stopped moving by itself.

    `trustworthiness` (Venna and Kaski 2001, 0 to 1, over `neighbours`) says how far neighbours in the plane
    are neighbours in the full space; `correlation` is Spearman's between `distance` and the scaled score
    over all allowed pairs: -1 where near always means a high score. Both are NaN where undefined.
    """

    head: HeadAttention
    queries: Float[np.ndarray, "query 2"]
    keys: Float[np.ndarray, "key 2"]
    distance: Float[np.ndarray, "query key"]
    metric: str
    centred: bool
    perplexity: float
    wanted_perplexity: float
    seed: int
    max_iter: int
    iterations: int
    settled: bool
    divergence: float
    trustworthiness: float
    neighbours: int
    correlation: float

    def ranked_keys(self, query: int) -> Int[np.ndarray, " key"]:
        """Positions of the keys that `query` may look at, the largest weight first, ties by position."""
        weights = np.where(self.head.allowed[query], self.head.weights[query], -1.0)
        order = np.argsort(-weights, kind="stable")
        return order[: int(self.head.allowed[query].sum())]

    def rank(self, query: int, key: int) -> int | None:
        """Place of `key` among the keys that `query` may look at, from 1; None where it may not."""
        found = np.flatnonzero(self.ranked_keys(query) == key)
        return int(found[0]) + 1 if found.size else None
