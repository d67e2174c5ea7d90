"""Measures of dense heads: by layer and head, by words, beside even weights, and where they mean nothing."""

import math
from dataclasses import replace

import made_results as made
import numpy as np
import pytest
import torch
from families import ids, sharp

from attnscope.analysis.heads.overview import measure_heads, viewed_overview
from attnscope.analysis.heads.report import statistics
from attnscope.analysis.scores.dense import apply_measures, evenly_spread, unplaced
from attnscope.capture import record
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import HeadScores, Kind, Special
from attnscope.vocabulary import Unit

POSITIONAL = ("distance", "self", "previous", "next")


def mean_distance(weights: np.ndarray) -> float:
    """By a loop over every pair."""
    rows = [sum(p * abs(i - j) for j, p in enumerate(row)) for i, row in enumerate(weights.tolist())]
    return sum(rows) / len(rows)


def of_made(*names: str, words: bool = False, apart: str = "") -> dict[str, HeadScores]:
    rows = made.overview(2, 3).dense_weights
    weights = [[torch.from_numpy(each) for each in row] for row in rows]
    return apply_measures(
        weights, names, layers=(4, 9), heads=(0, 2, 5), unplaced=apart, by=Unit.WORD if words else Unit.TOKEN
    )


def test_values_stand_by_layer_and_head_in_the_order_that_was_asked_for():
    found = of_made("distance", "entropy")
    assert list(found) == ["distance", "entropy"]
    assert (found["distance"].layers, found["distance"].heads) == ((4, 9), (0, 2, 5))
    for i, row in enumerate(made.overview(2, 3).dense_weights):
        for j, weights in enumerate(row):
            assert found["distance"].values[i, j] == pytest.approx(mean_distance(weights))
    assert found["distance"].limits == (0, 12)
    assert found["entropy"].limits == (0, math.log(13))


def test_what_is_said_of_a_measure_travels_with_its_numbers():
    told = of_made("previous")["previous"]
    assert told.description == MEASURES["previous"].description
    assert (told.measure, told.unit, told.description.range) == ("previous", "weight", "0 to 1")


def test_by_words_distances_are_told_in_words_and_weights_are_not():
    found = of_made("distance", "self", words=True)
    assert (found["distance"].unit, found["self"].unit) == ("words", "weight")
    assert of_made("distance")["distance"].unit == "tokens"


def test_positions_mean_nothing_in_cross_attention_even_between_equal_texts():
    text, other = made.tokens(["a", "b", "c"]), made.tokens(["d", "e"])
    assert unplaced(Kind.ENCODER, text, text) == unplaced(Kind.DECODER, text, made.tokens("abc")) == ""
    for kind, key in ((Kind.CROSS, text), (Kind.CROSS, other), (Kind.DECODER, other)):
        assert unplaced(kind, text, key) == "queries and keys are not the same tokens"


def test_measures_without_a_meaning_are_nan_and_say_why():
    found = of_made("previous", "entropy", "first", "distance", apart="no")
    assert {name: each.absent for name, each in found.items()} == {
        "previous": "no",
        "entropy": "",
        "first": "",
        "distance": "no",
    }
    assert np.isnan(found["previous"].values).all()
    assert found["previous"].values.shape == (2, 3)
    assert np.array_equal(found["entropy"].values, of_made("entropy")["entropy"].values)


def test_measures_of_which_none_has_a_meaning_are_refused_in_one_line():
    message = "no self, next here: no; what can be measured is entropy, confidence, first"
    with pytest.raises(InputError, match=f"^{message}$"):
        of_made("self", "next", apart="no")


def test_an_overview_of_a_model_holds_every_measure_that_was_asked_for():
    captured = record(sharp("gpt2"), ids())
    found = measure_heads(captured, measures=tuple(MEASURES))
    assert list(found.scores) == list(MEASURES)
    assert found.main.measure == "entropy"
    for i, j in np.ndindex(found.main.values.shape):
        weights = found.dense_weights[i][j]
        assert found.scores["distance"].values[i, j] == pytest.approx(mean_distance(weights))
        assert found.scores["previous"].values[i, j] == pytest.approx(
            np.diag(weights, -1).sum() / (len(weights) - 1)
        )
    assert np.isnan(found.scores["next"].values).all()
    assert found.scores["next"].absent == "no query may look there"
    assert list(measure_heads(captured).scores) == ["entropy"]
    assert np.array_equal(measure_heads(captured).main.values, found.scores["entropy"].values)


def test_an_overview_without_special_tokens_counts_the_positions_that_are_left():
    whole = made.measured(made.overview(1, 2), "distance", "first", "previous")
    left = viewed_overview(whole, special=Special.RENORMALISE)
    for j, weights in enumerate(whole.dense_weights[0]):
        inner = weights[1:-1, 1:-1]  # without [CLS] and [SEP]
        inner = inner / inner.sum(1, keepdims=True)
        assert left.scores["distance"].values[0, j] == pytest.approx(mean_distance(inner))
        assert left.scores["first"].values[0, j] == pytest.approx(inner[:, 0].mean())
        assert left.scores["previous"].values[0, j] == pytest.approx(np.diag(inner, -1).mean())
    assert left.scores["distance"].unit == "tokens"


def test_an_overview_by_words_counts_words():
    names = ["a", "bc", "d"]  # the second word is cut in two
    text = made.tokens(names)
    items = (
        *text.items[:1],
        *(replace(text.items[1], span=s, text=t) for s, t in (((2, 3), "b"), ((3, 4), "c"))),
    )
    cut = replace(text, items=(*items, text.items[2]))
    weights = np.array(
        [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.2, 0.4, 0.2, 0.2], [0.7, 0.1, 0.1, 0.1]]
    )
    whole = replace(made.overview(1, 1, names), query_tokens=cut, key_tokens=cut, weights=((weights,),))
    found = viewed_overview(made.measured(whole, "distance", "previous"), by=Unit.WORD)
    words = np.array([[0.1, 0.5, 0.4], [0.3, 0.55, 0.15], [0.7, 0.2, 0.1]])
    np.testing.assert_allclose(found.dense_weights[0][0], words)
    assert found.scores["distance"].values[0, 0] == pytest.approx((0.5 + 0.8 + 0.45 + 1.4 + 0.2) / 3)
    assert found.scores["previous"].values[0, 0] == pytest.approx((0.3 + 0.2) / 2)
    assert found.scores["distance"].unit == "words"


def test_an_overview_of_cross_attention_by_words_keeps_saying_why():
    whole = made.measured(
        replace(made.overview(1, 2), kind=Kind.CROSS, key_tokens=made.tokens(made.DOOR)), "entropy", "self"
    )
    assert viewed_overview(whole, by=Unit.WORD).scores["self"].absent == whole.scores["self"].absent != ""


# one head


def test_statistics_are_every_measure_and_the_special_tokens_beside_even_weights():
    head = made.head(causal=True, kind=Kind.DECODER)
    found = {one.measure: one for one in statistics(head)}
    assert list(found) == [*(name for name, each in MEASURES.items() if each.brief), "special tokens"]
    counts = range(1, 14)
    even = {name: one.even_attention[0, 0] for name, one in found.items() if one.even_attention is not None}
    assert even["entropy"] == pytest.approx(sum(math.log(n) for n in counts) / 13)
    assert (
        even["confidence"] == even["self"] == even["first"] == pytest.approx(sum(1 / n for n in counts) / 13)
    )
    assert even["distance"] == pytest.approx(sum((n - 1) / 2 for n in counts) / 13)
    assert even["next"] == 0
    assert even["special tokens"] == pytest.approx((sum(1 / n for n in counts) + 1 / 13) / 13)


def test_statistics_of_cross_attention_have_no_positions():
    found = {one.measure: one for one in statistics(made.head(key_names=made.DOOR[:5]))}
    assert [name for name, one in found.items() if one.absent] == list(POSITIONAL)
    assert all(math.isnan(found[name].values[0, 0]) for name in POSITIONAL)
    assert np.isfinite(found["first"].values).all()


def test_even_weights_lie_on_what_a_query_may_look_at():
    allowed = np.array([[True, False, True], [False, False, False], [False, True, False]])
    even = evenly_spread(allowed)
    assert even[[0, 2]].tolist() == [[0.5, 0, 0.5], [0, 1, 0]]
    assert np.isnan(even[1]).all()
