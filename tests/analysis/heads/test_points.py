"""Maps of words, and without special tokens: points, scores and figures by hand and against slow loops."""

import math
from dataclasses import replace
from itertools import product

import made_results as made
import numpy as np
import pytest
from scipy.stats import spearmanr

from attnscope.analysis.heads.projection import mean_scores, mean_vectors, project_head
from attnscope.analysis.heads.view import viewed
from attnscope.errors import InputError
from attnscope.results import HeadAttention, HeadView, Special
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Unit

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


def test_a_word_is_the_mean_of_its_pieces() -> None:
    vectors = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 0.5], [5.0, 1.0, 1.0], [7.0, 8.0, 9.0]])
    means = mean_vectors(vectors, ((3,), (0, 1, 2)))
    np.testing.assert_array_equal(means, [[7.0, 8.0, 9.0], [3.0, 1.0, 0.5]])


@pytest.mark.parametrize("causal", [False, True])
def test_points_scores_and_weights_of_words_are_those_of_a_slow_loop(causal: bool) -> None:
    head = cut(causal=causal)
    result = project_head(head, view=words(head))
    assert result.query_tokens.names == ("unlocking", "old", "doors")
    assert (result.queries.shape, result.keys.shape) == ((3, 2), (3, 2))
    np.testing.assert_allclose(result.scaled, slow_scores(head, GROUPS), atol=1e-12)
    assert result.allowed.tolist() == np.tril(np.ones((3, 3), bool)).tolist() or not causal
    for (row, queries), (column, keys) in product(enumerate(GROUPS), repeat=2):
        weight = sum(head.weights[i, j] for i in queries for j in keys) / len(queries)
        assert result.weights[row, column] == pytest.approx(weight, abs=1e-12)
        q = sum(head.q[i] for i in queries) / len(queries)
        k = sum(head.k[j] for j in keys) / len(keys)
        angle = 1 - q @ k / math.sqrt(float(q @ q) * float(k @ k))
        assert result.distance[row, column] == pytest.approx(angle, abs=1e-12)


def test_a_plain_score_of_two_words_is_the_scaled_product_of_their_mean_vectors() -> None:
    head, causal = cut(), cut(causal=True)
    q, k = mean_vectors(head.q, GROUPS), mean_vectors(head.k, GROUPS)
    products = head.scale * q @ k.T
    np.testing.assert_allclose(mean_scores(head, words(head)), products, atol=1e-12)
    masked = mean_scores(causal, words(causal))  # within a word only some pairs are allowed
    assert np.abs(np.diag(masked - products))[[0, 2]].min() > 0.01


def test_an_infinite_score_stays_with_its_own_words() -> None:
    head = cut()
    head.scaled[1, 4] = -np.inf
    found = mean_scores(head, words(head))
    assert np.argwhere(np.isneginf(found)).tolist() == [[0, 1]]
    assert np.isfinite(np.delete(found.ravel(), 1)).all()


@pytest.mark.parametrize("special", [Special.HIDE, Special.RENORMALISE])
def test_hidden_tokens_are_no_points_and_count_in_no_figure(special: Special) -> None:
    head = made.head(made.DOOR, causal=True)  # [CLS] and [SEP] at the ends
    result = project_head(head, view=viewed(head, special=special))
    assert result.query_tokens.names == tuple(made.DOOR[1:-1])
    assert (len(result.queries), len(result.keys)) == (11, 11)
    q, k = (x[1:-1] / np.linalg.norm(x[1:-1], axis=1, keepdims=True) for x in (head.q, head.k))
    kept = head.allowed[1:-1, 1:-1]
    expected = spearmanr((1 - q @ k.T)[kept], head.scaled[1:-1, 1:-1][kept]).statistic
    assert result.correlation == pytest.approx(expected, abs=1e-12)
    assert abs(result.correlation - project_head(head).correlation) > 1e-3
    np.testing.assert_array_equal(result.scaled, head.scaled[1:-1, 1:-1])
    alone = made.head(made.DOOR[1:-1], causal=True)
    again = project_head(replace(alone, q=head.q[1:-1], k=head.k[1:-1], scaled=head.scaled[1:-1, 1:-1]))
    np.testing.assert_array_equal(result.queries, again.queries)
    assert result.trustworthiness == again.trustworthiness
    sums = result.weights.sum(axis=1)
    assert np.allclose(sums, 1) if special is Special.RENORMALISE else (sums < 0.999).all()


def test_ranks_are_those_of_words() -> None:
    head = cut()
    result = project_head(head, view=words(head))
    order = np.argsort(-result.weights[1], kind="stable").tolist()
    assert result.ranked_keys(1).tolist() == order
    assert result.rank(1, order[0]) == 1


def test_a_query_with_nothing_left_ranks_no_key() -> None:
    head = cut()
    head.weights[4] = np.eye(8)[0]
    result = project_head(head, view=words(head, Special.RENORMALISE))
    assert result.answered.tolist() == [True, False, True]
    assert result.ranked_keys(1).size == 0
    assert result.rank(1, 0) is None


def test_the_map_of_a_head_without_a_view_is_what_it_was() -> None:
    head = cut(causal=True)
    result = project_head(head)
    assert (result.view, result.view_scaled) == (None, None)
    assert result.scaled is head.scaled
    assert result.weights is head.weights
    assert result.query_tokens is head.query_tokens


def test_special_tokens_alone_leave_nothing_to_map() -> None:
    head = made.head(["[CLS]", "[SEP]"])
    with pytest.raises(InputError, match="every query is a special token: without them nothing is left"):
        viewed(head, special=Special.HIDE)
