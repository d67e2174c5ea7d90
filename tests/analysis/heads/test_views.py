"""Weights by words and without special tokens, against slow loops and numbers by hand."""

import math
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
from small_tokenizers import BUILD

from attnscope.analysis.heads.overview import viewed_overview
from attnscope.analysis.heads.view import viewed
from attnscope.errors import InputError
from attnscope.model.inputs.text import encode
from attnscope.results import HeadAttention, Special
from attnscope.results.base.groups import regrouped, words_of
from attnscope.vocabulary import Unit

TEXTS = {
    "english": "closing the door, unopened",
    "chinese": "我喜欢猫 日本",
    "arabic": "القط على الباب",
    "family": "the 👩\u200d👩\u200d👧 door",
}


def head(
    sort: str, text: str, *, causal: bool = False, sink: float | None = None, seed: int = 3
) -> HeadAttention:
    """Made-up weights over the tokens that a tokenizer of that sort makes of `text`."""
    tokens = encode(BUILD[sort](), (text,), name=sort, limit=None).tokens
    count = len(tokens)
    allowed = np.tril(np.ones((count, count), dtype=bool)) if causal else np.ones((count, count), dtype=bool)
    powers = np.where(allowed, np.exp(2 * np.random.default_rng(seed).normal(size=(count, count))), 0.0)
    sums = powers.sum(axis=1, keepdims=True) + (0.0 if sink is None else math.exp(sink))
    return replace(
        made.head(["a"] * count),
        query_tokens=tokens,
        key_tokens=tokens,
        weights=powers / sums,
        allowed=allowed,
        sink=sink,
    )


def slow(of: HeadAttention, queries: list[tuple[int, ...]], keys: list[tuple[int, ...]]) -> np.ndarray:
    """The definition, number by number: sum over the pieces of a key, mean over those of a query."""
    found = np.full((len(queries), len(keys)), np.nan)
    for row, query in enumerate(queries):
        rows = [i for i in query if not math.isnan(of.weights[i][0])]
        for column, key in enumerate(keys):
            if rows:
                found[row, column] = sum(sum(of.weights[i][j] for j in key) for i in rows) / len(rows)
    return found


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("sort", ["bert", "roberta", "gpt2", "albert", "t5", "llama"])
@pytest.mark.parametrize("causal", [False, True])
def test_words_sum_over_keys_and_average_over_queries_and_rows_still_sum_to_1(
    sort: str, text: str, causal: bool
) -> None:
    of = head(sort, TEXTS[text], causal=causal)
    by_words = viewed(of, by=Unit.WORD)
    groups = words_of(of.query_tokens)
    assert by_words.weights == pytest.approx(slow(of, groups, groups), abs=1e-12)
    assert by_words.weights.sum(axis=1) == pytest.approx(np.ones(len(groups)), abs=1e-12)
    assert len(by_words.query_tokens) == len(by_words.key_tokens) == len(groups)


def test_a_pair_of_words_is_masked_only_when_all_its_pieces_are() -> None:
    of = head("gpt2", TEXTS["english"], causal=True)
    by_words = viewed(of, by=Unit.WORD)
    for row, query in enumerate(by_words.query_groups):
        for column, key in enumerate(by_words.key_groups):
            assert by_words.allowed[row, column] == any(of.allowed[i, j] for i in query for j in key)
    assert not by_words.allowed.all()
    partly = [of.allowed[np.ix_(word, word)] for word in by_words.query_groups if len(word) > 1]
    assert partly, "some words are cut"
    assert not any(each.all() for each in partly), "within a word later pieces are masked"
    assert by_words.allowed.diagonal().all(), "and yet the word sees itself"


def test_rows_that_a_sink_takes_from_keep_what_the_sink_leaves() -> None:
    of = head("roberta", TEXTS["english"], sink=1.0)
    by_words = viewed(of, by=Unit.WORD)
    for row, query in enumerate(by_words.query_groups):
        left = np.mean([of.weights[i].sum() for i in query])
        assert by_words.weights[row].sum() == pytest.approx(left)
        assert left < 0.999


def test_a_piece_without_any_key_is_left_out_of_its_word_s_mean() -> None:
    weights = np.array([[0.25, 0.25, 0.5], [np.nan] * 3, [np.nan] * 3])
    found = regrouped(weights, ((0, 1), (2,)), ((0,), (1, 2)))
    assert found[0] == pytest.approx([0.25, 0.75])
    assert np.isnan(found[1]).all()


def by_hand(**changed: object) -> HeadAttention:
    """Three tokens between [CLS] and [SEP], with weights that are easy to add up."""
    rows = [
        [0.1, 0.2, 0.3, 0.2, 0.2],
        [0.5, 0.1, 0.2, 0.1, 0.1],
        [0.0, 0.4, 0.4, 0.2, 0.0],
        [0.5, 0.0, 0.0, 0.0, 0.5],
        [1.0, 0.0, 0.0, 0.0, 0.0],
    ]
    fields = {"weights": np.array(rows), "allowed": np.ones((5, 5), dtype=bool)} | changed
    return replace(made.head(["[CLS]", "the", "cat", "sat", "[SEP]"]), **fields)


def test_the_mass_on_special_tokens_is_the_mean_over_the_queries_that_have_a_key() -> None:
    mass = by_hand().special_mass
    assert mass is not None
    assert dict(mass.by_name) == pytest.approx({"[CLS]": 2.1 / 5, "[SEP]": 0.8 / 5})
    assert mass.total == pytest.approx(2.9 / 5)
    rows = by_hand().weights
    rows[1] = np.nan
    without = by_hand(weights=rows).special_mass
    assert without is not None
    assert without.total == pytest.approx(2.3 / 4)


def test_a_text_without_special_tokens_has_no_mass_on_them() -> None:
    assert made.head(["the", "cat"]).special_mass is None


def test_special_tokens_of_one_name_are_counted_together() -> None:
    of = made.head(["[CLS]", "the", "[SEP]", "cat", "sat", "[SEP]"])
    mass = of.special_mass
    assert mass is not None
    assert list(mass.by_name) == ["[CLS]", "[SEP]"]
    assert mass.by_name["[SEP]"] == pytest.approx(of.weights[:, [2, 5]].sum(axis=1).mean())


def test_hidden_special_tokens_take_rows_and_columns_with_them_and_change_no_weight() -> None:
    hidden = viewed(by_hand(), special=Special.HIDE)
    assert hidden.query_tokens.names == ("the", "cat", "sat")
    assert np.array_equal(hidden.weights, by_hand().weights[1:4, 1:4])
    assert hidden.emptied == 1
    assert hidden.answered.tolist() == [True, True, False]
    assert hidden.query_row(2) == 1
    assert hidden.query_row(0) is None


def test_renormalised_rows_are_divided_by_what_remains_and_an_empty_one_is_counted() -> None:
    scaled = viewed(by_hand(), special=Special.RENORMALISE)
    assert scaled.weights[:2] == pytest.approx(np.array([[0.25, 0.5, 0.25], [0.4, 0.4, 0.2]]))
    assert np.isnan(scaled.weights[2]).all()
    assert scaled.emptied == 1
    assert not scaled.answered[2]


def test_words_and_special_tokens_work_together() -> None:
    of = head("bert", TEXTS["english"])
    both = viewed(of, by=Unit.WORD, special=Special.RENORMALISE)
    kept = [word for word in words_of(of.query_tokens) if not of.query_tokens.items[word[0]].special]
    expected = slow(of, kept, kept)
    assert both.weights == pytest.approx(expected / expected.sum(axis=1, keepdims=True))
    assert both.weights.sum(axis=1) == pytest.approx(np.ones(len(kept)))
    hidden = viewed(of, by=Unit.WORD, special=Special.HIDE)
    assert hidden.weights == pytest.approx(expected)
    assert (hidden.weights.sum(axis=1) < 1).all()


def test_a_query_that_had_no_key_from_the_first_is_not_counted_as_emptied() -> None:
    of = made.head(["[CLS]", "the", "cat", "[SEP]"], empty=[1])
    hidden = viewed(of, special=Special.HIDE)
    assert hidden.answered.tolist() == [False, True]
    assert hidden.emptied == 0


def test_nothing_but_special_tokens_is_refused_when_they_are_left_out() -> None:
    of = made.head(["[CLS]", "[SEP]"])
    with pytest.raises(InputError, match="every query is a special token"):
        viewed(of, special=Special.HIDE)
    assert viewed(of).weights.shape == (2, 2)


def test_cross_attention_groups_each_side_by_its_own_tokens() -> None:
    of = made.head(["a", "b", "c"], key_names=["d", "e", "f", "[SEP]"])
    hidden = viewed(of, special=Special.HIDE)
    assert hidden.weights.shape == (3, 3)
    assert np.array_equal(hidden.weights, of.weights[:, [0, 1, 2]])


def test_an_overview_by_words_has_the_entropies_and_links_of_its_words() -> None:
    of = head("bert", TEXTS["english"])
    whole = replace(
        made.overview(layers=1, heads=2, names=["a"] * len(of.query_tokens)),
        query_tokens=of.query_tokens,
        key_tokens=of.key_tokens,
        weights=((of.weights, head("bert", TEXTS["english"], seed=8).weights),),
    )
    by_words = viewed_overview(whole, by=Unit.WORD, special=Special.RENORMALISE)
    for j, each in enumerate(whole.weights[0]):
        expected = viewed(replace(of, weights=each), by=Unit.WORD, special=Special.RENORMALISE).weights
        entropies = [-sum(w * math.log(w) for w in row if w > 0) for row in expected]
        assert by_words.scores["entropy"].values[0, j] == pytest.approx(np.mean(entropies))
        query, key = by_words.strongest[0, j]
        left = np.where(np.eye(len(expected), dtype=bool) | (expected.mean(axis=0) > 0.5), -1.0, expected)
        assert expected[query, key] == left.max() == by_words.strongest_weight[0, j]
    assert by_words.special_mass == whole.special_mass
    assert by_words.special_mass is not None
    assert by_words.scores["entropy"].values[0, 0] != pytest.approx(by_words.scores["entropy"].values[0, 1])


def test_an_overview_of_rows_with_holes_is_refused() -> None:
    with pytest.raises(InputError, match="--special renormalise, or give one --layer and one --head"):
        viewed_overview(made.overview(2, 3), special=Special.HIDE)
