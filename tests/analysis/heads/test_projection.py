"""The t-SNE map of a head, of tokens or words, against plain scikit-learn; its figures by slow loops."""

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
from scipy.stats import spearmanr
from sklearn.manifold import TSNE

from attnscope.analysis.heads.projection import (
    SETTLED,
    mean_scores,
    mean_vectors,
    project_head,
    rank_correlation,
)
from attnscope.analysis.heads.view import viewed
from attnscope.errors import InputError
from attnscope.results import HeadAttention, HeadView, MapSettings, Projection, Special
from attnscope.results.projection import MAX_ITER, METRICS
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Unit

WORDS = [f"w{i}" for i in range(129)]
SHORT = MapSettings(max_iter=250)  # where the map itself is not asked for


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


@pytest.mark.parametrize(("tokens", "wanted", "used"), [(3, 5.0, 5 / 3), (13, 30.0, 25 / 3), (13, 2.5, 2.5)])
def test_a_perplexity_for_more_points_than_there_are_is_brought_down(
    tokens: int, wanted: float, used: float
) -> None:
    head = made.head(made.DOOR[:tokens])
    result = project_head(head, MapSettings(perplexity=wanted))
    assert result.perplexity == pytest.approx(used, abs=0)
    assert result.wanted_perplexity == wanted
    np.testing.assert_array_equal(places(result), plain(head, perplexity=used, max_iter=20_000))


def test_one_token_and_one_dimension_have_maps() -> None:
    single = project_head(made.head(["a"]))
    assert np.isfinite(places(single)).all()
    assert math.isnan(single.trustworthiness)
    assert math.isnan(single.correlation)
    narrow = project_head(made.head(made.DOOR, dim=1))
    assert np.isfinite(places(narrow)).all()
    assert np.ptp(places(narrow), axis=0).min() > 0
    np.random.seed(3)
    before = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    project_head(made.head(made.DOOR[:5], dim=1))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]


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


@pytest.mark.parametrize(
    ("queries", "keys", "neighbours", "metric"), [(13, 4, 5, "cosine"), (3, 2, 2, "euclidean")]
)
def test_trustworthiness_is_what_a_slow_loop_counts(
    queries: int, keys: int, neighbours: int, metric: str
) -> None:
    head = made.head(made.DOOR[:queries], list("abcd")[:keys])
    result = project_head(head, MapSettings(metric=metric, max_iter=250))
    points = np.concatenate([head.q, head.k])
    assert result.neighbours == neighbours
    expected = slow_trustworthiness(points, places(result), neighbours, metric == "cosine")
    assert result.trustworthiness == pytest.approx(expected, abs=1e-12)


def test_the_correlation_is_that_of_the_ranks_over_all_allowed_pairs() -> None:
    head = made.head(causal=True, empty=[0])
    result = project_head(head, SHORT)
    pairs = [(i, j) for i, j in product(range(13), repeat=2) if head.allowed[i, j]]
    assert len(pairs) == 13 * 14 / 2 - 1
    expected = spearmanr([result.distance[p] for p in pairs], [head.scaled[p] for p in pairs]).statistic
    assert result.correlation == pytest.approx(expected, abs=1e-12)
    assert -1 < result.correlation < 0


def test_the_correlation_knows_heads_in_which_near_means_a_high_score_and_others() -> None:
    distance = np.array([0.1, 0.2, 0.5, 0.9])
    assert rank_correlation(distance, -(distance**3)) == pytest.approx(-1)
    assert rank_correlation(distance, distance**3) == pytest.approx(1)
    assert math.isnan(rank_correlation(distance, np.ones(4)))
    assert math.isnan(rank_correlation(np.array([0.5]), np.array([1.0])))
    first, second = [1.0, 1.0, 2.0, 3.0, 3.0, 3.0], [6.0, 5.0, 5.0, 1.0, 2.0, 1.0]  # ties share their ranks
    tied = rank_correlation(np.array(first), np.array(second))
    assert tied == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)
    assert math.isnan(project_head(made.head(empty=range(13)), SHORT).correlation)
    head = made.head()
    assert math.isnan(
        project_head(replace(head, q=1 + 1e-12 * head.q, k=1 + 1e-12 * head.k), SHORT).correlation
    )


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
    assert project_head(head, SHORT).apart is apart


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


@pytest.mark.parametrize(("side", "value"), [("q", math.nan), ("k", math.inf)])
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


PIECES = (("un", (0, 2), 0), ("##lock", (2, 6), 0), ("##ing", (6, 9), 0), ("old", (10, 13), 1),
          ("door", (14, 18), 2), ("##s", (18, 19), 2))  # fmt: skip
GROUPS = ((1, 2, 3), (4,), (5, 6))  # between [CLS] and [SEP]


def cut(**changed: object) -> HeadAttention:
    """`[CLS] un ##lock ##ing old door ##s [SEP]`: words of three pieces, of one and of two."""
    text = "unlocking old doors"
    inner = tuple(Token(7, piece, text[slice(*span)], span, word) for piece, span, word in PIECES)
    ends = [Token(1, name, "", None, None, special=True) for name in ("[CLS]", "[SEP]")]
    tokens = Tokens((text,), (ends[0], *inner, ends[1]))
    names = list("abcdefgh")
    return replace(made.head(names, **changed), query_tokens=tokens, key_tokens=tokens)  # type: ignore[arg-type]


def words(head: HeadAttention, special: Special = Special.HIDE) -> HeadView:
    return viewed(head, by=Unit.WORD, special=special)


def slow_scores(head: HeadAttention, groups: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """The mean over the allowed pairs of pieces, pair by pair."""
    found = np.full((len(groups), len(groups)), np.nan)
    for (row, queries), (column, keys) in product(enumerate(groups), repeat=2):
        pairs = [head.scaled[i, j] for i, j in product(queries, keys) if head.allowed[i, j]]
        if pairs:
            found[row, column] = sum(pairs) / len(pairs)
    return found


def test_points_scores_and_weights_of_words_are_those_of_a_slow_loop() -> None:
    head = cut(causal=True)
    result = project_head(head, SHORT, view=words(head))
    assert result.query_tokens.names == ("unlocking", "old", "doors")
    assert (result.queries.shape, result.keys.shape) == ((3, 2), (3, 2))
    np.testing.assert_allclose(result.scaled, slow_scores(head, GROUPS), atol=1e-12)
    assert result.allowed.tolist() == np.tril(np.ones((3, 3), bool)).tolist()
    for (row, queries), (column, keys) in product(enumerate(GROUPS), repeat=2):
        weight = sum(head.weights[i, j] for i in queries for j in keys) / len(queries)
        assert result.weights[row, column] == pytest.approx(weight, abs=1e-12)
        q = sum(head.q[i] for i in queries) / len(queries)
        k = sum(head.k[j] for j in keys) / len(keys)
        angle = 1 - q @ k / math.sqrt(float(q @ q) * float(k @ k))
        assert result.distance[row, column] == pytest.approx(angle, abs=1e-12)
    head, causal = cut(), cut(causal=True)
    q, k = mean_vectors(head.q, GROUPS), mean_vectors(head.k, GROUPS)
    products = head.scale * q @ k.T
    np.testing.assert_allclose(mean_scores(head, words(head)), products, atol=1e-12)
    masked = mean_scores(causal, words(causal))  # within a word only some pairs are allowed
    assert np.abs(np.diag(masked - products))[[0, 2]].min() > 0.01


@pytest.mark.parametrize("special", [Special.HIDE, Special.RENORMALISE])
def test_hidden_tokens_are_no_points_and_count_in_no_figure(special: Special) -> None:
    head = made.head(made.DOOR, causal=True)  # [CLS] and [SEP] at the ends
    result = project_head(head, SHORT, view=viewed(head, special=special))
    assert result.query_tokens.names == tuple(made.DOOR[1:-1])
    assert (len(result.queries), len(result.keys)) == (11, 11)
    q, k = (x[1:-1] / np.linalg.norm(x[1:-1], axis=1, keepdims=True) for x in (head.q, head.k))
    kept = head.allowed[1:-1, 1:-1]
    expected = spearmanr((1 - q @ k.T)[kept], head.scaled[1:-1, 1:-1][kept]).statistic
    assert result.correlation == pytest.approx(expected, abs=1e-12)
    assert abs(result.correlation - project_head(head, SHORT).correlation) > 1e-3
    np.testing.assert_array_equal(result.scaled, head.scaled[1:-1, 1:-1])
    alone = made.head(made.DOOR[1:-1], causal=True)
    again = project_head(
        replace(alone, q=head.q[1:-1], k=head.k[1:-1], scaled=head.scaled[1:-1, 1:-1]), SHORT
    )
    np.testing.assert_array_equal(result.queries, again.queries)
    assert result.trustworthiness == again.trustworthiness
    sums = result.weights.sum(axis=1)
    assert np.allclose(sums, 1) if special is Special.RENORMALISE else (sums < 0.999).all()
