"""Queries and keys of one head in one t-SNE map, with figures that say how far the map can be trusted.

Distance in the plane is not attention. The map comes with its trustworthiness, and with the rank
correlation between distance and score in the full space: only where that is strongly negative does
"near" mean "attends" for the head at hand.

The map is made of the head's own vectors (`Points`), or by words of the mean vector of a word's tokens.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import spearmanr
from sklearn.manifold import TSNE, trustworthiness
from sklearn.metrics import pairwise_distances
from threadpoolctl import threadpool_limits

from attnscope.errors import InputError
from attnscope.results import HeadAttention, HeadView, MapSettings, Projection
from attnscope.results.base.groups import Groups
from attnscope.results.projection import MAX_ITER

SETTLED = 20_000  # iterations after which a map that never stops by itself no longer visibly changes
SMALL, MAX_ITER_LARGE = 256, 1_000  # points, and the ceiling (scikit-learn's own) for maps of more
_NEARLY = (
    0.9  # share of the points of one side that have their nearest neighbour there, where the sides lie apart
)
NEIGHBOURS = 5  # over which trustworthiness is counted, where there are as many
SMALLEST, LARGEST = 1e-15, 1e15  # entries within which scikit-learn's float32 can hold squared distances
_COINCIDE = 1e-9  # spread, relative to the largest coordinate, below which all points are one


@dataclass(frozen=True, eq=False)
class Points:
    """Query and key vectors of a map, and the scaled score of each pair, NaN where masked."""

    queries: Float[np.ndarray, "query dim"]
    keys: Float[np.ndarray, "key dim"]
    scaled: Float[np.ndarray, "query key"]
    allowed: Bool[np.ndarray, "query key"]


def points_of(head: HeadAttention, view: HeadView | None = None) -> Points:
    """The points to map: vectors of `head`, or means over the groups of a `view` of it."""
    if view is None:
        return Points(head.q, head.k, head.scaled, head.allowed)
    queries, keys = mean_vectors(head.q, view.query_groups), mean_vectors(head.k, view.key_groups)
    return Points(queries, keys, mean_scores(head, view), view.allowed)


def mean_vectors(vectors: Float[np.ndarray, "token dim"], groups: Groups) -> Float[np.ndarray, "group dim"]:
    """The mean vector of each group of tokens."""
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    means: Float[np.ndarray, "group dim"] = _sums(vectors, groups) / sizes[:, None]
    return means


def mean_scores(head: HeadAttention, view: HeadView) -> Float[np.ndarray, "query_group key_group"]:
    """The mean scaled score of each query group and key group over allowed pairs of their tokens.

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
    """The sum of the rows of each group; groups are added apart, so infinities stay in their own."""
    order = [position for group in groups for position in group]
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    sums: Float[np.ndarray, "group column"] = np.add.reduceat(rows[order], starts, axis=0)
    return sums


def project_head(
    head: HeadAttention, settings: MapSettings | None = None, view: HeadView | None = None
) -> Projection:
    """The t-SNE map of a head's queries and keys, reproducible bit by bit for a head and settings.

    With a `view` of the head the points are its words (mean vectors of their tokens), or its tokens without
    special ones; all figures are then about these points. A perplexity too large for the number of points is
    reduced to a third of that number. Raises `InputError` where queries or keys are not finite, too large or
    too small.
    """
    settings = settings or MapSettings()
    if not (np.isfinite(head.q).all() and np.isfinite(head.k).all()):
        raise InputError(f"{head.name} has queries or keys that are not finite: there is no map of them")
    shown = points_of(head, view)
    points = np.concatenate([shown.queries, shown.keys])
    _check(head, points)
    perplexity = min(settings.perplexity, (len(points) - 1) / 3)
    ceiling = settings.max_iter or (MAX_ITER if len(points) <= SMALL else MAX_ITER_LARGE)
    # where it stops by itself within `SETTLED`, any higher ceiling gives the same bits
    bound = ceiling if settings.max_iter else min(ceiling, SETTLED)
    places, iterations, divergence = _plane(points, perplexity, bound, settings)
    neighbours = min(NEIGHBOURS, (len(points) - 1) // 2)
    distance = pairwise_distances(shown.queries, shown.keys, metric=settings.metric)
    undefined = _coincide(points)
    pairs, trust = shown.allowed, float("nan")
    if neighbours >= 1 and not undefined:
        trust = float(trustworthiness(points, places, n_neighbors=neighbours, metric=settings.metric))
    return Projection(
        head=head,
        queries=places[: len(shown.queries)],
        keys=places[len(shown.queries) :],
        distance=distance,
        metric=settings.metric,
        perplexity=perplexity,
        wanted_perplexity=settings.perplexity,
        seed=settings.seed,
        max_iter=ceiling,
        iterations=iterations,
        settled=iterations < bound,
        divergence=divergence,
        trustworthiness=trust,
        neighbours=neighbours,
        correlation=(float("nan") if undefined else rank_correlation(distance[pairs], shown.scaled[pairs])),
        apart=not undefined and _apart(shown.queries, shown.keys, distance, settings.metric),
        view=view,
        view_scaled=None if view is None else shown.scaled,
    )


def _apart(
    queries: Float[np.ndarray, "query dim"],
    keys: Float[np.ndarray, "key dim"],
    between: Float[np.ndarray, "query key"],
    metric: str,
) -> bool:
    """Whether queries and keys form two clouds: 90 % of each have their nearest neighbour on their own side.

    A few outliers, such as the key that all queries look at, do not join two clouds.
    """
    if min(len(queries), len(keys)) < 2:
        return False
    among = [_nearest_other(queries, metric) < between.min(axis=1)]
    among.append(_nearest_other(keys, metric) < between.min(axis=0))
    return all(float(own.mean()) >= _NEARLY for own in among)


def _nearest_other(points: Float[np.ndarray, "point dim"], metric: str) -> Float[np.ndarray, " point"]:
    distance = pairwise_distances(points, metric=metric)
    np.fill_diagonal(distance, np.inf)
    nearest: Float[np.ndarray, " point"] = distance.min(axis=1)
    return nearest


def _check(head: HeadAttention, points: Float[np.ndarray, "point dim"]) -> None:
    """Raises `InputError` for vectors too large or too small for scikit-learn's float32."""
    largest = float(np.abs(points).max())
    if largest and not SMALLEST <= largest <= LARGEST:
        entry = f"the largest entry of its queries and keys is {largest:.1e}"
        raise InputError(f"{head.name} has no map: {entry}, it must be from {SMALLEST:g} to {LARGEST:g}")


def rank_correlation(first: Float[np.ndarray, " pair"], second: Float[np.ndarray, " pair"]) -> float:
    """Spearman's rank correlation, -1 to 1; NaN for fewer than two pairs or constant values."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(spearmanr(first, second).statistic)


def _plane(
    points: Float[np.ndarray, "point dim"], perplexity: float, bound: int, settings: MapSettings
) -> tuple[Float[np.ndarray, "point 2"], int, float]:
    """Coordinates in the plane, iterations run, and the KL divergence in nats (NaN where negative)."""
    if _coincide(points):  # t-SNE ends the whole process on such points
        return np.zeros((len(points), 2)), 0, 0.0
    model = TSNE(
        metric=settings.metric,
        perplexity=perplexity,
        random_state=settings.seed,
        max_iter=bound,
        init="pca" if min(points.shape) > 1 else "random",
    )
    with threadpool_limits(1):  # sums of several threads could differ in their last bits
        places = model.fit_transform(points)
    divergence = float(model.kl_divergence_)
    known = divergence if divergence >= 0 else float("nan")  # below 0 where its approximation broke down
    return places.astype(np.float64), int(model.n_iter_) + 1, known


def _coincide(points: Float[np.ndarray, "point dim"]) -> bool:
    return bool(np.ptp(points, axis=0).max() <= _COINCIDE * np.abs(points).max())
