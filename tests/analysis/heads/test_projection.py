"""The t-SNE map of a head against plain scikit-learn, its honesty figures against slow loops."""

import hashlib
import math
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import made_results as made
import numpy as np
import pytest
from sklearn.manifold import TSNE

from attnscope.analysis.heads.projection import SETTLED, project_head, rank_correlation
from attnscope.errors import InputError
from attnscope.results import HeadAttention, MapSettings, Projection
from attnscope.results.projection import MAX_ITER, METRICS

WORDS = [f"w{i}" for i in range(129)]


def places(result: Projection) -> np.ndarray:
    return np.concatenate([result.queries, result.keys])


def plain(head: HeadAttention, **settings: object) -> np.ndarray:
    """What scikit-learn makes of the same points, asked directly."""
    model = TSNE(**({"metric": "cosine", "perplexity": 5.0, "random_state": 0, "init": "pca"} | settings))
    return model.fit_transform(np.concatenate([head.q, head.k]))


def elsewhere(code: str, **environment: str) -> str:
    """What `code` prints in a process of its own, which must not crash."""
    start = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2] / 'specimens')!r})\n"
        "import numpy as np; from dataclasses import replace; import made_results as made\n"
        "from attnscope.analysis.heads.projection import project_head\n"
        "from attnscope.results import MapSettings\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", start + code],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    assert run.returncode == 0, (run.returncode, run.stderr[-500:])
    return run.stdout


# the map


def test_the_map_is_the_one_that_scikit_learn_makes_with_the_ceiling_of_the_articles() -> None:
    head = made.head(made.DOOR, ["a", "b", "c", "d"])
    result = project_head(head)
    np.testing.assert_array_equal(places(result), plain(head, max_iter=MAX_ITER))
    assert result.queries.shape == (13, 2)
    assert result.keys.shape == (4, 2)
    assert result.max_iter == MAX_ITER
    assert result.settled
    assert 250 < result.iterations < SETTLED


def test_a_given_ceiling_stops_the_map_before_it_has_settled() -> None:
    head = made.head()
    result = project_head(head, MapSettings(max_iter=300))
    assert (result.iterations, result.settled, result.max_iter) == (300, False, 300)
    np.testing.assert_array_equal(places(result), plain(head, max_iter=300))
    assert not np.array_equal(places(result), places(project_head(head)))


def test_a_map_that_never_settles_is_stopped_and_says_so() -> None:
    head = made.head()
    result = project_head(replace(head, q=np.full_like(head.q, 3.0), k=np.full_like(head.k, -1.0)))
    assert (result.iterations, result.settled) == (SETTLED, False)
    assert np.isfinite(places(result)).all()


def test_a_large_map_runs_under_a_lower_ceiling_unless_another_is_asked_for() -> None:
    head = made.head(WORDS)
    assert project_head(head).max_iter == 1000
    assert project_head(head, MapSettings(max_iter=260)).iterations == 260
    assert project_head(made.head(WORDS[:12])).max_iter == MAX_ITER


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_that_of_scikit_learn_and_its_distances_are_those_of_a_slow_loop(metric: str) -> None:
    head = made.head(made.DOOR[:7], ["a", "b", "c", "d"])
    result = project_head(head, MapSettings(metric=metric))
    np.testing.assert_array_equal(
        places(result), plain(head, metric=metric, perplexity=10 / 3, max_iter=20_000)
    )
    for query, key in product(range(7), range(4)):
        x, y = head.q[query], head.k[key]
        by_hand = {
            "euclidean": math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True))),
            "cosine": 1 - float(x @ y) / math.sqrt(float(x @ x) * float(y @ y)),
        }
        assert result.distance[query, key] == pytest.approx(by_hand[metric], abs=1e-12)


@pytest.mark.parametrize(
    ("tokens", "wanted", "used"),
    [(3, 5.0, 5 / 3), (13, 5.0, 5.0), (13, 30.0, 25 / 3), (2, 5.0, 1.0), (13, 2.5, 2.5)],
)
def test_a_perplexity_for_more_points_than_there_are_is_brought_down(
    tokens: int, wanted: float, used: float
) -> None:
    head = made.head(made.DOOR[:tokens])
    result = project_head(head, MapSettings(perplexity=wanted))
    assert result.perplexity == pytest.approx(used, abs=0)
    assert result.wanted_perplexity == wanted
    np.testing.assert_array_equal(places(result), plain(head, perplexity=used, max_iter=20_000))


def test_scikit_learn_would_not_take_the_perplexity_that_is_brought_down() -> None:
    with pytest.raises(ValueError, match="perplexity"):
        plain(made.head(["a", "b"]), perplexity=5.0)


def test_one_token_and_one_dimension_have_maps() -> None:
    single = project_head(made.head(["a"]))
    assert np.isfinite(places(single)).all()
    assert math.isnan(single.trustworthiness)
    assert math.isnan(single.correlation)
    narrow = project_head(made.head(made.DOOR, dim=1))
    assert np.isfinite(places(narrow)).all()
    assert np.ptp(places(narrow), axis=0).min() > 0


def test_a_one_dimensional_map_starts_at_random_and_the_seed_says_where() -> None:
    head = made.head(made.DOOR, dim=1)
    first, again, other = (project_head(head, MapSettings(seed=seed)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(places(first), places(again))
    assert not np.array_equal(places(first), places(other))
    assert (first.seed, other.seed) == (4, 5)


def test_points_that_coincide_or_nearly_do_not_end_the_process_and_have_finite_maps() -> None:
    code = (
        "h = made.head()\n"
        "for value in (0.0, 3.0, 1e-9):\n"
        "    for metric in ('cosine', 'euclidean'):\n"
        "        same = replace(h, q=np.full_like(h.q, value), k=np.full_like(h.k, value))\n"
        "        p = project_head(same, MapSettings(metric=metric))\n"
        "        print(np.abs(p.queries).max(), np.abs(p.keys).max(), p.iterations, p.trustworthiness)\n"
        "for spread in (1e-12, 5e-10, 2e-9, 1e-7):\n"
        "    p = project_head(replace(h, q=1 + spread * h.q, k=1 + spread * h.k))\n"
        "    print(np.isfinite(p.queries).all() and np.isfinite(p.keys).all())\n"
    )
    assert elsewhere(code).splitlines() == ["0.0 0.0 0 nan"] * 6 + ["True"] * 4


def test_the_bits_are_the_same_in_any_process_with_any_number_of_threads() -> None:
    code = (
        "import hashlib; p = project_head(made.head())\n"
        "print(hashlib.sha256(p.queries.tobytes() + p.keys.tobytes() + p.distance.tobytes()).hexdigest())\n"
        "print(repr(p.trustworthiness), repr(p.correlation), repr(p.divergence), p.iterations)\n"
    )
    here = project_head(made.head())
    digest = hashlib.sha256(
        here.queries.tobytes() + here.keys.tobytes() + here.distance.tobytes()
    ).hexdigest()
    figures = f"{here.trustworthiness!r} {here.correlation!r} {here.divergence!r} {here.iterations}"
    for threads in ("1", "2"):
        told = elsewhere(code, OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads, PYTHONHASHSEED=threads)
        assert told.splitlines() == [digest, figures]


def test_nobody_elses_random_numbers_are_touched() -> None:
    np.random.seed(3)
    before = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    project_head(made.head(made.DOOR[:5], dim=1))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]


# how far it can be trusted


def slow_trustworthiness(points: np.ndarray, plane: np.ndarray, neighbours: int, cosine: bool) -> float:
    """Venna and Kaski's formula, pair by pair: how much nearer points look in the plane than they are."""
    count, penalty = len(points), 0

    def near(vectors: np.ndarray, i: int, angle: bool) -> list[int]:
        others = [j for j in range(count) if j != i]
        if angle:
            unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            return sorted(others, key=lambda j: -float(unit[i] @ unit[j]))
        return sorted(others, key=lambda j: float(np.linalg.norm(vectors[i] - vectors[j])))

    for i in range(count):
        truly = near(points, i, cosine)
        for j in near(plane, i, False)[:neighbours]:
            penalty += max(truly.index(j) + 1 - neighbours, 0)
    return 1 - 2 / (count * neighbours * (2 * count - 3 * neighbours - 1)) * penalty


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(("queries", "keys", "neighbours"), [(13, 4, 5), (3, 2, 2), (2, 2, 1)])
def test_trustworthiness_is_what_a_slow_loop_counts(
    queries: int, keys: int, neighbours: int, metric: str
) -> None:
    head = made.head(made.DOOR[:queries], list("abcd")[:keys])
    result = project_head(head, MapSettings(metric=metric))
    points = np.concatenate([head.q, head.k])
    assert result.neighbours == neighbours
    expected = slow_trustworthiness(points, places(result), neighbours, metric == "cosine")
    assert result.trustworthiness == pytest.approx(expected, abs=1e-12)


def slow_spearman(first: list[float], second: list[float]) -> float:
    """Pearson's correlation of ranks, equal values sharing the mean of their ranks."""

    def ranks(values: list[float]) -> np.ndarray:
        below = [sum(other < value for other in values) for value in values]
        equal = [sum(other == value for other in values) for value in values]
        return np.array([b + (e + 1) / 2 for b, e in zip(below, equal, strict=True)])

    x, y = (ranks(values) - ranks(values).mean() for values in (first, second))
    return float(x @ y / math.sqrt(float(x @ x) * float(y @ y)))


def test_the_correlation_is_that_of_the_ranks_over_all_allowed_pairs() -> None:
    head = made.head(causal=True, empty=[0])
    result = project_head(head)
    pairs = [(i, j) for i, j in product(range(13), repeat=2) if head.allowed[i, j]]
    assert len(pairs) == 13 * 14 / 2 - 1
    expected = slow_spearman([result.distance[p] for p in pairs], [head.scaled[p] for p in pairs])
    assert result.correlation == pytest.approx(expected, abs=1e-12)
    assert -1 < result.correlation < 0


def test_ties_share_their_ranks() -> None:
    first, second = [1.0, 1.0, 2.0, 3.0, 3.0, 3.0], [6.0, 5.0, 5.0, 1.0, 2.0, 1.0]
    found = rank_correlation(np.array(first), np.array(second))
    assert found == pytest.approx(slow_spearman(first, second), abs=1e-12)


def test_the_correlation_knows_heads_in_which_near_means_a_high_score_and_others() -> None:
    distance = np.array([0.1, 0.2, 0.5, 0.9])
    assert rank_correlation(distance, -(distance**3)) == pytest.approx(-1)
    assert rank_correlation(distance, distance**3) == pytest.approx(1)
    assert math.isnan(rank_correlation(distance, np.ones(4)))
    assert math.isnan(rank_correlation(np.array([0.5]), np.array([1.0])))
    assert math.isnan(project_head(made.head(empty=range(13))).correlation)


def test_unit_vectors_make_cosine_distance_and_score_perfect_opposites() -> None:
    head = made.head()
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (head.q, head.k))
    assert project_head(replace(head, q=q, k=k, scaled=q @ k.T)).correlation == pytest.approx(-1)


# ranks


def slow_apart(queries: np.ndarray, keys: np.ndarray) -> bool:
    """Whether nine in ten of each side have their nearest neighbour on it, pair by pair."""

    def distance(first: np.ndarray, second: np.ndarray) -> float:
        return 1 - float(first @ second) / math.sqrt(float(first @ first) * float(second @ second))

    for own, other in ((queries, keys), (keys, queries)):
        at_home = 0
        for i, point in enumerate(own):
            nearest = min(distance(point, each) for j, each in enumerate(own) if j != i)
            at_home += nearest < min(distance(point, each) for each in other)
        if 10 * at_home < 9 * len(own):
            return False
    return True


@pytest.mark.parametrize(("offset", "apart"), [(0.0, False), (1.0, False), (30.0, True)])
def test_queries_and_keys_lie_apart_where_each_has_its_nearest_on_its_own_side(
    offset: float, apart: bool
) -> None:
    head = made.head(made.DOOR[:6], ["a", "b", "c", "d"])
    shift = np.zeros(head.q.shape[1])
    shift[0] = offset
    head = replace(head, q=head.q + shift, k=head.k - shift)
    assert slow_apart(head.q, head.k) is apart
    assert project_head(head, MapSettings(max_iter=250)).apart is apart


@pytest.mark.parametrize(("straying", "apart"), [(1, True), (3, False)])
def test_one_key_that_every_query_looks_at_does_not_join_two_clouds(straying: int, apart: bool) -> None:
    head = made.head(made.DOOR)
    shift = np.zeros(head.q.shape[1])
    shift[0] = 30.0
    keys = head.k - shift
    for key in range(straying):  # on the side of the queries, each in a direction of its own
        keys[key] += 2 * shift
        keys[key, key + 1] += 15.0
    head = replace(head, q=head.q + shift, k=keys)
    assert slow_apart(head.q, head.k) is apart
    assert project_head(head, MapSettings(max_iter=250)).apart is apart


def test_ranks_count_the_keys_that_a_query_may_look_at_by_weight() -> None:
    result = made.projection(made.head(causal=True, empty=[0]))
    weights, allowed = result.head.weights, result.head.allowed
    for query, key in product(range(13), repeat=2):
        heavier = sum(
            allowed[query, other] and weights[query, other] > weights[query, key] for other in range(13)
        )
        assert result.rank(query, key) == (heavier + 1 if allowed[query, key] else None)
    assert result.ranked_keys(0).size == 0
    assert result.ranked_keys(12).size == 13


def test_equal_weights_are_ranked_by_position() -> None:
    result = made.projection(made.head(made.DOOR[:5]))
    result.head.weights[1] = [0.1, 0.3, 0.1, 0.3, 0.2]
    assert result.ranked_keys(1).tolist() == [1, 3, 4, 0, 2]
    assert [result.rank(1, key) for key in range(5)] == [4, 1, 5, 2, 3]


# bad input


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"metric": "cosinus"}, "unknown metric 'cosinus': cosine, euclidean"),
        ({"perplexity": 0.0}, "perplexity is 0.0: it must be above 0"),
        ({"perplexity": -3.0}, "perplexity is -3.0: it must be above 0"),
        ({"perplexity": math.nan}, "perplexity is nan: it must be above 0"),
        ({"perplexity": math.inf}, "perplexity is inf: it must be above 0"),
        ({"seed": -1}, "the seed is -1: it must be from 0 to 4294967295"),
        ({"seed": 2**32}, "the seed is 4294967296: it must be from 0 to 4294967295"),
        ({"max_iter": 249}, "max-iter is 249: it must be from 250 to 100000000"),
        ({"max_iter": 10**9}, "max-iter is 1000000000: it must be from 250 to 100000000"),
    ],
)
def test_a_bad_setting_is_told_in_one_line(settings: dict[str, object], told: str) -> None:
    with pytest.raises(InputError) as caught:
        MapSettings(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == told


@pytest.mark.parametrize("side", ["q", "k"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_vectors_that_are_not_finite_have_no_map(side: str, value: float) -> None:
    head = made.head()
    getattr(head, side)[2, 3] = value
    with pytest.raises(
        InputError, match=r"^L3 H11 has queries or keys that are not finite: there is no map of them$"
    ):
        project_head(head)


@pytest.mark.parametrize(("factor", "told"), [(1e-40, "e-40"), (1e30, "e+30"), (1e200, "e+200")])
def test_vectors_beyond_what_float32_can_hold_are_refused_before_they_end_the_process(
    factor: float, told: str
) -> None:
    head = made.head()
    with pytest.raises(InputError, match="it must be from 1e-15 to 1e\\+15") as caught:
        project_head(replace(head, q=head.q * factor, k=head.k * factor))
    assert told in str(caught.value)


def test_vectors_just_within_what_float32_can_hold_have_maps() -> None:
    code = (
        "h = made.head(); h = replace(h, q=h.q / np.abs(h.q).max(), k=h.k / np.abs(h.q).max())\n"
        "for factor in (1.01e-15, 0.99e15):\n"
        "    for metric in ('cosine', 'euclidean'):\n"
        "        p = project_head(replace(h, q=h.q * factor, k=h.k * factor), MapSettings(metric=metric))\n"
        "        print(bool(np.isfinite(p.queries).all() and np.ptp(p.queries) > 1))\n"
    )
    assert elsewhere(code).split() == ["True"] * 4


def test_noise_between_points_that_coincide_is_not_called_a_correlation() -> None:
    head = made.head()
    assert math.isnan(project_head(replace(head, q=1 + 1e-12 * head.q, k=1 + 1e-12 * head.k)).correlation)
