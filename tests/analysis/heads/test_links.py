"""The strongest links of heads, and heads in few cells, against slow loops."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import made_results as made
import numpy as np
import pytest
from families import HEADS, ids, sharp

import attnscope as at
from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.overview import pooled, steps_for, thumbnails
from attnscope.analysis.heads.view import aimed, among_all, links
from attnscope.capture import Selection, record
from attnscope.capture.returned import ask_for_weights
from attnscope.errors import InputError
from attnscope.results import Kind, Overview, Verdict

NAMES = ["[CLS]", "the", "door", "opened", "[SEP]"]


def overview(names: list[str] = NAMES, sink: float = 0.9) -> Overview:
    """2 layers x 3 heads of which every row leaves `sink` on the first key, and some queries have no key."""
    random = np.random.default_rng(5)
    made_up = made.overview(2, 3, names)
    count = len(names)
    weights = random.dirichlet(np.ones(count), size=(2, 3, count)) * (1 - sink)
    weights[..., 0] += sink
    weights[0, 1, count - 2] = np.nan
    weights[1, 2] = np.nan
    rows = tuple(tuple(row) for row in weights)
    found = links(rows, made_up.query_tokens, made_up.key_tokens, Kind.ENCODER)
    return replace(made_up, weights=rows, **found)


def slow(weights: np.ndarray, queries: list[int], keys: list[int], own: bool) -> tuple[int, int, float]:
    best = (-1, -1, float("nan"))
    for query, key in itertools.product(queries, keys):
        weight = weights[query, key]
        if (own or query != key) and not np.isnan(weight) and not weight <= best[2]:
            best = query, key, float(weight)
    return best


def assert_links(of: Overview, queries: list[int], keys: list[int], own: bool = True) -> None:
    for i, j in np.ndindex(2, 3):
        query, key, weight = slow(of.dense_weights[i][j], queries, keys, own)
        assert of.strongest[i, j].tolist() == [query, key]
        np.testing.assert_equal(of.strongest_weight[i, j], weight)


def test_links_of_ordinary_tokens_of_all_and_of_one_query_are_those_of_a_slow_loop() -> None:
    found = overview()
    assert found.ordinary
    assert_links(found, [1, 2, 3], [1, 2, 3], own=False)
    found = among_all(overview())
    assert not found.ordinary
    assert_links(found, list(range(5)), list(range(5)))
    assert set(found.strongest[..., 1].ravel().tolist()) == {0, -1}
    found = aimed(overview(), 2)
    assert found.main.measure == "row"
    assert_links(found, [2], [1, 2, 3])
    np.testing.assert_array_equal(found.main.values, found.strongest_weight)


CAUSAL = np.array(
    [[1, 0, 0, 0, 0, 0], [0.9, 0.1, 0, 0, 0, 0], [0.5, 0.1, 0.4, 0, 0, 0], [0.6, 0.02, 0.38, 0, 0, 0],
     [0.8, 0.05, 0.05, 0, 0.1, 0], [0.6, 0.1, 0.1, 0.05, 0.05, 0.1]]
)  # fmt: skip
WORDS = ["When", "Mary", "and", "John", "went", "home"]


def strongest(weights: np.ndarray, names: list[str], kind: Kind = Kind.DECODER) -> SimpleNamespace:
    text = made.tokens(names)
    return SimpleNamespace(**links([[weights]], text, text, kind))


def test_a_token_with_more_than_half_of_the_weight_and_the_query_itself_are_passed_over() -> None:
    found = strongest(CAUSAL, WORDS)
    assert (found.strongest[0, 0].tolist(), found.strongest_weight[0, 0]) == ([3, 2], 0.38)
    assert found.heaviest[0, 0] == 0
    on_sink, on_itself = [1, 0.9, 0.5, 0.6, 0.8, 0.6], [0.1, 0.4, 0, 0.1, 0.1]  # of the first it is the same
    assert found.aside[0, 0] == pytest.approx((sum(on_sink) + sum(on_itself)) / 6)
    weights = CAUSAL.copy()
    weights[4], weights[5] = [0, 0.1, 0.1, 0.7, 0.1, 0], [0, 0.1, 0.1, 0.1, 0.7, 0]
    found = strongest(weights, WORDS)
    assert (found.strongest[0, 0].tolist(), found.heaviest[0, 0]) == ([1, 0], -1)
    assert strongest(CAUSAL[:4, :4], WORDS[:4]).heaviest[0, 0] == -1


def test_of_one_pair_the_weight_itself_is_shown_in_every_head() -> None:
    key = 3
    found = aimed(overview(), 3, key, beside=["entropy"])
    assert list(found.scores) == ["pair", "entropy"]
    assert found.aim == (3, key)
    assert_links(found, [3], [key])
    expected = [[weights[3, key] for weights in row] for row in found.dense_weights]
    np.testing.assert_array_equal(found.main.values, expected)
    assert np.isnan(found.main.values).sum() == 2


SHOWN = {
    "ordinary": overview(),
    "all": among_all(overview()),
    "row": aimed(overview(), 2),
    "pair": aimed(overview(), 2, 3),
}


@pytest.mark.parametrize(
    ("tokens", "heads", "step"),
    [(1, 12, 1), (64, 12, 1), (65, 12, 2), (512, 16, 8), (33, 32, 2), (32, 32, 1)],
)
def test_a_text_of_any_length_fits_into_a_thumbnail_and_few_queries_keep_their_rows(
    tokens: int, heads: int, step: int
) -> None:
    assert steps_for(tokens, 5, heads) == (step, 1)
    assert steps_for(5, tokens, heads) == (1, step)


def test_a_cell_is_the_largest_of_its_pairs_that_may_be_seen() -> None:
    weights, allowed = np.arange(15.0).reshape(3, 5), np.ones((3, 5), bool)
    assert pooled(weights, allowed, (2, 2)).tolist() == [[6, 8, 9], [11, 13, 14]]
    assert pooled(weights, allowed, (1, 3)).tolist() == [[2, 4], [7, 9], [12, 14]]
    allowed[0, :2] = allowed[1, 1] = allowed[2, 4] = False
    found = pooled(weights, allowed, (2, 2))
    assert found[0].tolist() == [5, 8, 9]
    assert found[1].tolist()[:2] == [11, 13]
    assert np.isnan(found[1, 2])
    assert np.isnan(
        pooled(np.full((1, 2), np.nan), np.ones((1, 2), bool), (1, 1))
    ).all()  # a query without a key


@pytest.mark.parametrize("family", ["t5", "mistral"])
def test_thumbnails_are_the_recomputed_heads_pooled_by_a_slow_loop(family: str) -> None:
    captured = record(sharp(family), ids(70))
    found = thumbnails([captured], range(HEADS))
    assert found.weights.shape == (3, HEADS, 35, 35)
    assert found.steps == (2, 2)
    for layer, head in ((0, 1), (2, 5)):
        whole = recompute_head(captured, layer, head)
        for row in range(35):
            for column in range(35):
                pairs = [(i, j) for i in (2 * row, 2 * row + 1) for j in (2 * column, 2 * column + 1)]
                seen = [float(whole.weights[pair]) for pair in pairs if whole.allowed[pair]]
                cell = found.weights[layer, head, row, column]
                assert (np.isnan(cell) and not seen) or cell == max(seen)
    assert found.verdict is Verdict.CERTIFIED


def test_weights_that_a_model_returns_are_not_certified_and_layers_of_different_lengths_refused() -> None:
    returned = ask_for_weights(sharp("bert"), ids())
    found = thumbnails([returned], [1, 2])
    assert np.array_equal(found.weights[1, 0], returned.layers[1].weights[1].double().numpy())
    assert found.verdict is Verdict.UNCERTIFIED
    assert returned.reason in found.notes
    long, short = (
        record(sharp("bert"), ids(11), Selection([0])),
        record(sharp("bert"), ids(9), Selection([1])),
    )
    with pytest.raises(InputError, match="layers 0 and 1 differ in their numbers of queries and keys"):
        thumbnails([long, short], [0])


def test_a_reading_shows_its_heads_in_as_few_runs_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = at.load("demo-causal").read("the door was closed.")
    whole = reading.grid()
    assert whole.weights.shape == (4, 12, 6, 6)
    assert np.isnan(whole.weights[:, :, 0, 1:]).all()
    monkeypatch.setattr("attnscope.session.questions.heads._READ_AT_ONCE", 1)
    assert np.array_equal(whole.weights, reading.grid().weights, equal_nan=True)
    some = reading.grid([1, 3], [0, 5])
    assert np.array_equal(some.weights, whole.weights[[1, 3]][:, [0, 5]], equal_nan=True)


def test_that_of_a_special_query_or_among_all_may_go_to_any_key() -> None:
    assert_links(aimed(overview(), 0), [0], list(range(5)))
    assert_links(aimed(among_all(overview()), 2), [2], list(range(5)))


def test_what_is_masked_stays_masked_by_words() -> None:
    reading = at.load("demo-causal").read("gulping doors opened.")
    found = reading.grid([0], [1], words=True)
    count = len(found.query_tokens)
    assert count < len(reading.tokens)
    assert (np.isnan(found.weights[0, 0]) == ~np.tril(np.ones((count, count), bool))).all()
