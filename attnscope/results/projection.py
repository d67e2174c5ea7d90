"""Queries and keys of one head together in a plane, and how far that plane can be trusted."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnscope.errors import InputError
from attnscope.results.heads import HeadAttention
from attnscope.results.origin import Verdict
from attnscope.results.presented import Presented

METRICS = ("cosine", "euclidean", "manhattan", "chebyshev", "correlation")
MAX_ITER = 100_000_000  # the ceiling of the articles: t-SNE nearly always stops by itself long before


@dataclass(frozen=True)
class MapSettings:
    """How to draw a map. `max_iter` None takes the ceiling that suits the number of points."""

    metric: str = "cosine"
    perplexity: float = 5.0
    seed: int = 0
    max_iter: int | None = None
    centre_keys: bool = False

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise InputError(f"unknown metric '{self.metric}': {', '.join(METRICS)}")
        if not 0 < self.perplexity < float("inf"):
            raise InputError(f"perplexity is {self.perplexity}: it must be above 0")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"the seed is {self.seed}: it must be from 0 to {2**32 - 1}")
        if self.max_iter is not None and not 250 <= self.max_iter <= MAX_ITER:
            raise InputError(f"max-iter is {self.max_iter}: it must be from 250 to {MAX_ITER}")


@dataclass(frozen=True, eq=False, repr=False)
class Projection(Presented):
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

    @property
    def verdict(self) -> Verdict:
        """The verdict of the head's certificate."""
        return self.head.verdict

    def ranked_keys(self, query: int) -> Int[np.ndarray, " key"]:
        """Positions of the keys that `query` may look at, the largest weight first, ties by position."""
        weights = np.where(self.head.allowed[query], self.head.weights[query], -1.0)
        order = np.argsort(-weights, kind="stable")
        return order[: int(self.head.allowed[query].sum())]

    def rank(self, query: int, key: int) -> int | None:
        """Place of `key` among the keys that `query` may look at, from 1; None where it may not."""
        found = np.flatnonzero(self.ranked_keys(query) == key)
        return int(found[0]) + 1 if found.size else None
