"""Heads in few cells: against slow loops, in one run or in several, of every kind of attention."""

from dataclasses import replace

import numpy as np
import pytest
from families import HEADS, ids, sharp

import attnscope as at
from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.thumbnails import pooled, steps_for, thumbnails
from attnscope.capture import Selection, record
from attnscope.capture.returned import ask_for_weights
from attnscope.errors import InputError
from attnscope.results import Verdict


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


@pytest.mark.parametrize("family", ["t5", "llama", "mistral"])
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


def test_layers_may_come_in_several_runs() -> None:
    model = sharp("gpt2")
    whole = thumbnails([record(model, ids())], [0, 3])
    parts = thumbnails((record(model, ids(), Selection([layer])) for layer in range(3)), [0, 3])
    assert np.array_equal(whole.weights, parts.weights, equal_nan=True)
    assert (whole.layers, whole.heads, whole.verdicts) == (parts.layers, parts.heads, parts.verdicts)


def test_weights_that_a_model_returns_are_not_certified() -> None:
    returned = ask_for_weights(sharp("bert"), ids())
    found = thumbnails([returned], [1, 2])
    assert np.array_equal(found.weights[1, 0], returned.layers[1].weights[1].double().numpy())
    assert found.verdict is Verdict.UNCERTIFIED
    assert returned.reason in found.notes


def test_layers_of_different_lengths_are_refused() -> None:
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


def test_cross_attention_has_rows_of_one_text_and_columns_of_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = at.load("demo-translate").read("the door was closed.", target="la porte")
    found = reading.grid(kind="cross")
    assert found.weights.shape[2:] == (len(found.query_tokens), len(found.key_tokens))
    assert len(found.query_tokens) != len(found.key_tokens)
    assert found.weights.shape[2:] == (3, 6)
    monkeypatch.setattr("attnscope.analysis.heads.thumbnails._CELLS", {False: 4})
    fewer = reading.grid(kind="cross")
    assert fewer.steps == (1, 2), "each query keeps its row"
    assert np.array_equal(fewer.weights, found.weights.reshape(4, 12, 3, 3, 2).max(-1))
    assert replace(found, notes=()).tower == ""


@pytest.mark.parametrize(
    ("words", "special"), [(True, "show"), (False, "renormalise"), (False, "hide"), (True, "hide")]
)
def test_thumbnails_are_looked_at_as_a_head_is(words: bool, special: str) -> None:
    """Of a text so short that a cell is one pair."""
    reading = at.load("demo").read("I was gulping at the door.")
    found = reading.grid([1, 3], [0, 7], words=words, special=special)
    one = reading.head(3, 7, words=words, special=special)
    np.testing.assert_allclose(found.weights[1, 1], one.weights, atol=1e-12)
    assert found.key_tokens == one.key_tokens
    assert (found.by.joins, found.special, found.steps) == (words, special, (1, 1))
    plain = reading.grid([3], [7]).weights[0, 0]
    assert plain.shape != found.weights.shape[2:]


def test_what_is_masked_stays_masked_by_words() -> None:
    reading = at.load("demo-causal").read("gulping doors opened.")
    found = reading.grid([0], [1], words=True)
    count = len(found.query_tokens)
    assert count < len(reading.tokens)
    assert (np.isnan(found.weights[0, 0]) == ~np.tril(np.ones((count, count), bool))).all()
