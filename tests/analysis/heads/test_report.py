"""What goes on a page: contributions against a slow loop, statistics by hand, the default query."""

import math
from dataclasses import replace

import made_reports as reports
import made_results as made
import numpy as np
import pytest

from attnscope.analysis.heads.report import compose_report, contributions, default_query, statistics
from attnscope.results import HeadAttention, Kind


def values(head: HeadAttention) -> dict[str, float]:
    return {one.measure: float(one.values[0, 0]) for one in statistics(head)}


def by_hand(weights: list[list[float]], allowed: np.ndarray | None = None) -> HeadAttention:
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


def test_contributions_by_hand() -> None:
    # output = .5 (2, 0) + .25 (0, 4) + .25 (0, -4) = (1, 0): only the first key moves it along
    head = replace(
        made.head(["a"], ["x", "y", "z"]),
        weights=np.array([[0.5, 0.25, 0.25]]),
        v=np.array([[2.0, 0.0], [0.0, 4.0], [0.0, -4.0]]),
        output=np.array([[1.0, 0.0]]),
    )
    assert contributions(head, 0).tolist() == [1, 0, 0]


def test_a_key_that_pulls_back_has_a_negative_contribution() -> None:
    # output = .75 (2) + .25 (-2) = 1
    head = replace(
        made.head(["a"], ["x", "y"]),
        weights=np.array([[0.75, 0.25]]),
        v=np.array([[2.0], [-2.0]]),
        output=np.array([[1.0]]),
    )
    assert contributions(head, 0).tolist() == [1.5, -0.5]


def test_masked_keys_contribute_nothing() -> None:
    head = made.head(causal=True)
    assert not contributions(head, 4)[5:].any()
    assert contributions(head, 4)[:5].all()


def test_without_keys_or_output_there_is_nothing_to_share_out() -> None:
    assert np.isnan(contributions(made.head(empty=[2]), 2)).all()
    head = made.head()
    assert np.isnan(contributions(replace(head, output=np.zeros_like(head.output)), 3)).all()
    assert not np.isnan(contributions(made.head(empty=[2]), 3)).any()


def test_statistics_by_hand() -> None:
    found = values(by_hand([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]))
    assert found["entropy"] == pytest.approx((0.5 * math.log(2) + 2 * 0.25 * math.log(4) + 0) / 2)
    assert found["confidence"] == pytest.approx((0.5 + 1) / 2)
    assert found["special tokens"] == pytest.approx((0.75 + 0) / 2)


def test_queries_without_keys_do_not_count() -> None:
    allowed = np.array([[True, True, True], [False, False, False]])
    found = values(by_hand([[0.5, 0.25, 0.25], [math.nan] * 3], allowed))
    assert found["confidence"] == pytest.approx(0.5)
    assert found["special tokens"] == pytest.approx(0.75)
    nothing = values(by_hand([[math.nan] * 3] * 2, np.zeros((2, 3), bool)))
    assert all(math.isnan(value) for value in nothing.values())


def test_the_first_mask_is_the_default_query() -> None:
    head = made.head(["[CLS]", "the", "door", "the", "[SEP]"])
    ids = head.query_tokens.ids
    assert default_query(head, ids[3]) == 3
    assert default_query(head, ids[4]) == 4


@pytest.mark.parametrize("mask_id", [None, 999_999])
def test_without_a_mask_it_is_the_surest_query_of_the_text_itself(mask_id: int | None) -> None:
    head = made.head(["[CLS]", "a", "b", "c", "[SEP]"], empty=[3])
    weights = head.weights.copy()
    weights[0], weights[2] = [1, 0, 0, 0, 0], [0, 0.99, 0, 0.01, 0]
    assert default_query(replace(head, weights=weights), mask_id) == 2


def test_in_a_decoder_it_is_the_last_token_of_the_text_itself() -> None:
    head = replace(made.head(["[CLS]", "the", "door", "opened", "[SEP]"]), kind=Kind.DECODER)
    assert default_query(head, None) == 3


def test_of_special_tokens_alone_the_surest_is_taken_and_of_none_the_first() -> None:
    head = made.head(["[CLS]", "[SEP]"])
    weights = np.array([[0.5, 0.5], [0.1, 0.9]])
    assert default_query(replace(head, weights=weights), None) == 1
    assert default_query(made.head(["[CLS]", "[SEP]"], empty=[0, 1]), None) == 0


def test_a_report_holds_what_it_was_made_of() -> None:
    made_of = made.projection()
    prediction = reports.masked(made_of.head, [4])
    found = compose_report(made_of, 4, prediction)
    assert found.head is made_of.head
    assert (found.query, found.prediction) == (4, prediction)
    assert found.contributions == pytest.approx(reports.shares(made_of.head, 4))
    assert [one.measure for one in found.statistics][:2] == ["entropy", "confidence"]
