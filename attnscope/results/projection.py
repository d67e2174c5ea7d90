"""The t-SNE map of one head's queries and keys, and how far it can be trusted."""

import math
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.errors import InputError
from attnscope.results.base.presented import fits
from attnscope.results.heads import HeadAttention, HeadView, OfOneHead
from attnscope.tokens import Tokens

METRICS = ("cosine", "euclidean")
MAX_ITER = 100_000_000  # the ceiling of the articles: t-SNE nearly always stops by itself long before


_READABLE, _KEPT = -0.8, 0.8  # a correlation and a trustworthiness from which it may be read: conventions


class Case(StrEnum):
    """The conclusion: whether a map can be read."""

    READABLE = "readable"
    MISLEADS = "misleads"
    PLANE_LOSES = "plane loses"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class MapSettings:
    """Settings of a map: t-SNE of distances by `metric`, at this `perplexity`, started with `seed`.

    `max_iter` None takes the ceiling that suits the number of points.
    """

    metric: str = "cosine"
    perplexity: float = 5.0
    seed: int = 0
    max_iter: int | None = None

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
class Projection(OfOneHead):
    """A t-SNE map of the queries and keys of `head` (van der Maaten and Hinton 2008).

    `queries` and `keys` are places in the plane, without unit. `distance` is the distance of every query to
    every key under `metric` in the full space. `perplexity` was used where `wanted_perplexity` was asked
    for. `iterations` were run of at most `max_iter`; `settled` when the map stopped moving by itself.
    `divergence` is the Kullback-Leibler divergence that t-SNE minimises.

    `trustworthiness` (Venna and Kaski 2001, 0 to 1, over `neighbours`) says how far neighbours in the plane
    are neighbours in the full space; `correlation` is Spearman's between `distance` and the scaled score
    over all allowed pairs: -1 where near always means a high score. Both are NaN where undefined. `apart`
    says that nearly every query and key has its nearest neighbour on its own side: two islands, between
    which nearness tells little.

    With a `view` of the head the points are its words, or its tokens without the special ones, in that
    order. A word is at the mean vector of its tokens, and `view_scaled` is the mean of the scaled scores
    over allowed pairs of tokens, NaN where there is none. `query_tokens`, `key_tokens`, `weights`, `scaled`,
    `allowed` and `answered` are those of the points.
    """

    head: HeadAttention = field(metadata={"spread": True})
    queries: Float[np.ndarray, "row 2"] = field(metadata={"file": "query_places"})
    keys: Float[np.ndarray, "column 2"] = field(metadata={"file": "key_places"})
    distance: Float[np.ndarray, "row column"]
    metric: str
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
    view: HeadView | None = None
    view_scaled: Float[np.ndarray, "row column"] | None = None
    apart: bool = False

    for_readers = ("verdict", "case")

    @property
    def case(self) -> Case:
        """The conclusion: whether the plane keeps neighbours, and whether near keys have large weights."""
        if self.trustworthiness < _KEPT:
            return Case.PLANE_LOSES
        if math.isnan(self.correlation):
            return Case.CANNOT_TELL
        readable = self.correlation <= _READABLE and not self.misses
        return Case.READABLE if readable else Case.MISLEADS

    @property
    def misses(self) -> bool:
        """Whether for less than half of the queries the nearest key has the largest weight."""
        agreeing, asked = self.agreeing
        return 2 * agreeing < asked

    @property
    def shown(self) -> HeadAttention | HeadView:
        """The head or view whose tokens the points are."""
        return self.view or self.head

    @property
    def query_tokens(self) -> Tokens:
        """The tokens of the query points."""
        return self.shown.query_tokens

    @property
    def key_tokens(self) -> Tokens:
        """The tokens of the key points."""
        return self.shown.key_tokens

    @property
    def weights(self) -> Float[np.ndarray, "query key"]:
        """The weights between the points, grouped by the view if any."""
        return self.shown.weights

    @property
    def scaled(self) -> Float[np.ndarray, "query key"]:
        """The scaled scores between the points, which enter the softmax; NaN where masked."""
        return self.head.scaled if self.view_scaled is None else self.view_scaled

    @property
    def allowed(self) -> Bool[np.ndarray, "query key"]:
        """True where a query may attend to a key."""
        return self.shown.allowed

    @property
    def answered(self) -> Bool[np.ndarray, " query"]:
        """True for queries that have a key; in a view only with weight left on one."""
        return self.shown.answered

    def ranked_keys(self, query: int) -> Int[np.ndarray, " key"]:
        """Indices of the keys that `query` may attend to, largest weight first, ties by position.

        There are none where a view leaves no weight on any key.
        """
        looked_at = self.allowed[query] & self.answered[query]
        weights = np.where(looked_at, self.weights[query], -1.0)
        order = np.argsort(-weights, kind="stable")
        return order[: int(looked_at.sum())]

    @property
    def agreeing(self) -> tuple[int, int]:
        """The number of queries whose nearest key has the largest weight, and the number of all queries."""
        shown = np.where(self.allowed, self.distance, np.inf)
        asked = np.flatnonzero(self.answered).tolist()
        return sum(int(self.ranked_keys(i)[0]) == int(shown[i].argmin()) for i in asked), len(asked)

    def rank(self, query: int, key: int) -> int | None:
        """The rank of `key` among the keys of `query` by weight, from 1; None where it is masked."""
        places = np.flatnonzero(self.ranked_keys(query) == key)
        return int(places[0]) + 1 if places.size else None

    def check_parts(self) -> None:
        points = len(self.query_tokens), len(self.key_tokens)
        fits(self.distance.shape == points, "'distance' is not between as many points as there are tokens")
        fits(
            (self.view is None) == (self.view_scaled is None),
            "'view' and 'view_scaled' do not belong together",
        )
