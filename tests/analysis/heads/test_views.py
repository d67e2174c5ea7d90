"""Weights by words and without special tokens, and what goes on a page, by slow loops and by hand."""

import math
from dataclasses import replace

import made_reports as reports
import made_results as made
import numpy as np
import pytest
from small_tokenizers import BUILD

from attnscope.analysis.heads.overview import viewed_overview
from attnscope.analysis.heads.view import viewed
from attnscope.errors import InputError
from attnscope.model.inputs.text import encode
from attnscope.results import HeadAttention, Kind, Special
from attnscope.results.base.groups import words_of
from attnscope.verbs.report.answer import contributions, default_query, statistics
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


def test_hidden_special_tokens_change_no_weight_and_renormalised_rows_are_divided_by_what_remains() -> None:
    hidden = viewed(by_hand(), special=Special.HIDE)
    assert hidden.query_tokens.names == ("the", "cat", "sat")
    assert np.array_equal(hidden.weights, by_hand().weights[1:4, 1:4])
    assert hidden.emptied == 1
    assert hidden.answered.tolist() == [True, True, False]
    assert hidden.query_row(2) == 1
    assert hidden.query_row(0) is None
    scaled = viewed(by_hand(), special=Special.RENORMALISE)
    assert scaled.weights[:2] == pytest.approx(np.array([[0.25, 0.5, 0.25], [0.4, 0.4, 0.2]]))
    assert np.isnan(scaled.weights[2]).all()
    assert scaled.emptied == 1
    assert not scaled.answered[2]


def test_words_and_special_tokens_work_together() -> None:
    of = head("bert", TEXTS["english"])
    kept = [word for word in words_of(of.query_tokens) if not of.query_tokens.items[word[0]].special]
    expected = slow(of, kept, kept)
    both = viewed(of, by=Unit.WORD, special=Special.RENORMALISE)
    assert both.weights == pytest.approx(expected / expected.sum(axis=1, keepdims=True))
    assert viewed(of, by=Unit.WORD, special=Special.HIDE).weights == pytest.approx(expected)
    assert (expected.sum(axis=1) < 1).all()


def test_nothing_but_special_tokens_and_an_overview_with_holes_are_refused() -> None:
    of = made.head(["[CLS]", "[SEP]"])
    with pytest.raises(InputError, match="every query is a special token"):
        viewed(of, special=Special.HIDE)
    assert viewed(of).weights.shape == (2, 2)
    with pytest.raises(InputError, match="--special renormalise, or give one --layer and one --head"):
        viewed_overview(made.overview(2, 3), special=Special.HIDE)


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


def values(head: HeadAttention) -> dict[str, float]:
    return {one.measure: float(one.values[0, 0]) for one in statistics(head)}


def of_two_queries(weights: list[list[float]], allowed: np.ndarray | None = None) -> HeadAttention:
    """A head of two queries and three keys, [CLS] and [SEP] among them, with `weights`."""
    head = made.head(["a", "b"], ["[CLS]", "x", "[SEP]"])
    given = np.array(weights)
    return replace(head, weights=given, allowed=head.allowed if allowed is None else allowed)


@pytest.mark.parametrize(
    "head",
    [
        made.head(),
        made.head(causal=True),
        reports.cross(5, 9),
        reports.with_sink(reports.causal(7)),
    ],
    ids=["encoder", "causal", "cross", "sink"],
)
def test_contributions_are_those_of_a_slow_loop_and_sum_to_1(head: HeadAttention) -> None:
    for query in range(len(head.q)):
        found = contributions(head, query)
        assert found == pytest.approx(reports.shares(head, query), abs=1e-12)
        assert math.fsum(found) == pytest.approx(1, abs=1e-12)


def test_contributions_by_hand_and_of_masked_keys() -> None:
    for weights, v, expected in (
        # output = .5 (2, 0) + .25 (0, 4) + .25 (0, -4) = (1, 0): only the first key moves it along
        ([0.5, 0.25, 0.25], [[2.0, 0.0], [0.0, 4.0], [0.0, -4.0]], [1, 0, 0]),
        ([0.75, 0.25], [[2.0, 0.0], [-2.0, 0.0]], [1.5, -0.5]),  # the second key pulls back
    ):
        told = {"weights": np.array([weights]), "v": np.array(v), "output": np.array([[1.0, 0.0]])}
        head = replace(made.head(["a"], [*"xyz"[: len(v)]]), **told)
        assert contributions(head, 0).tolist() == expected
    causal = contributions(made.head(causal=True), 4)
    assert causal[:5].all()
    assert not causal[5:].any()


def test_statistics_by_hand() -> None:
    found = values(of_two_queries([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]))
    assert found["entropy"] == pytest.approx((0.5 * math.log(2) + 2 * 0.25 * math.log(4) + 0) / 2)
    assert found["confidence"] == pytest.approx((0.5 + 1) / 2)
    assert found["special tokens"] == pytest.approx((0.75 + 0) / 2)


def test_the_default_query_is_the_first_mask_or_of_a_decoder_the_last_or_else_the_surest() -> None:
    head = made.head(["[CLS]", "the", "door", "the", "[SEP]"])
    ids = head.query_tokens.ids
    assert default_query(head, ids[3]) == 3
    assert default_query(head, ids[4]) == 4
    head = replace(made.head(["[CLS]", "the", "door", "opened", "[SEP]"]), kind=Kind.DECODER)
    assert default_query(head, None) == 3
    head = made.head(["[CLS]", "[SEP]"])
    weights = np.array([[0.5, 0.5], [0.1, 0.9]])
    assert default_query(replace(head, weights=weights), None) == 1
    assert default_query(made.head(["[CLS]", "[SEP]"], empty=[0, 1]), None) == 0
    head = made.head(["[CLS]", "a", "b", "c", "[SEP]"], empty=[3])
    weights = head.weights.copy()
    weights[0], weights[2] = [1, 0, 0, 0, 0], [0, 0.99, 0, 0.01, 0]
    assert default_query(replace(head, weights=weights), None) == 2


def test_without_keys_or_output_there_is_nothing_to_share_out() -> None:
    assert np.isnan(contributions(made.head(empty=[2]), 2)).all()
    head = made.head()
    assert np.isnan(contributions(replace(head, output=np.zeros_like(head.output)), 3)).all()
    assert not np.isnan(contributions(made.head(empty=[2]), 3)).any()
