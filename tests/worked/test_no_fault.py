"""A mistake that is provably no change of the sum at hand is no fault of it, and every other one is."""

import numpy as np
import pytest

from attnscope.render.figure import figure_of
from attnscope.results import Verdict, Worked
from attnscope.results.worked import Given, Scoring
from attnscope.worked import work_out

NAME = "query and key exchanged"
X = [[0.1, 0.2, 0.3], [0.7, 0.5, 0.9], [0.4, 0.8, 0.6], [0.2, 0.2, 0.7]]
W = [[0.3, 0.1], [0.2, 0.9], [0.5, 0.4]]
V = [[1, 2], [3, 4], [5, 6], [7, 9]]


def worked(scoring: Scoring = Scoring.SCALED_DOT, causal: bool = False, **rows: object) -> Worked:
    given = {key: Given(np.array(value, np.float64)) for key, value in rows.items()}
    return work_out(given, scoring=scoring, causal=causal)


def tried(result: Worked) -> list[str]:
    return [fault.name for fault in result.proofs[0][1].faults]


@pytest.mark.parametrize("causal", [False, True])
def test_where_x_has_one_matrix_for_queries_and_keys_their_exchange_is_no_fault(causal: bool) -> None:
    result = worked(causal=causal, x=X, wq=W, wk=W, wv=W)
    assert result.verdict is Verdict.CERTIFIED
    assert NAME not in tried(result)
    assert "scale off by sqrt 2" in tried(result)
    assert any("Q and K may be exchanged" in note for note in result.notes)


def test_scores_that_are_symmetric_as_typed_are_so_whatever_float64_makes_of_them() -> None:
    q = [[0.1], [0.3]]
    apart = worked(q=q, k=[[1], [2]], v=V[:2])
    assert apart.verdict is Verdict.CERTIFIED
    assert NAME in tried(apart)
    assert 0.1 * 3 != 0.3 * 1  # in float64
    alike = worked(q=q, k=[[1], [3]], v=V[:2])
    assert alike.verdict is Verdict.CERTIFIED
    assert NAME not in tried(alike)


def test_scores_that_are_nearly_symmetric_leave_the_exchange_open() -> None:
    q = np.array(X)
    k = q.copy()
    k[2, 1] = np.nextafter(k[2, 1], 1)
    result = worked(q=q, k=k, v=V)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert NAME in result.proofs[0][1].unseen


def test_only_the_proven_mistake_is_excused() -> None:
    q = [[0.0, 0.0], [60.0, 0.0]]  # weights of 1 and 0: no scale could be told, though the scores differ
    result = worked(q=q, k=q, v=V[:2])
    assert result.verdict is not Verdict.FAILED
    assert NAME not in tried(result)
    assert "scale off by sqrt 2" in tried(result)


def test_one_key_and_keys_that_are_alike_have_the_same_weights_at_any_scale() -> None:
    one = worked(q=[[1, 2], [3, 4]], k=[[0.3, 0.7]], v=[[2, 5, 6]])
    assert one.verdict is Verdict.CERTIFIED
    assert any("one key" in note for note in one.notes)
    alike = worked(q=[[1, 2]], k=[[0.1, 0.7]] * 3, v=[[2], [5], [6]])
    assert alike.verdict is Verdict.CERTIFIED
    assert any("at any scale" in note for note in alike.notes)
    differing = worked(q=[[1, 2]], k=[[0.1, 0.7]] * 2 + [[0.1, 0.8]], v=[[2], [5], [6]])
    assert tried(differing) == ["scale off by sqrt 2"]
    assert differing.notes == ()


def test_without_anything_to_bend_tanh_is_no_part_of_the_sum() -> None:
    weights = {"additive_wq": [[1, 0], [0, 1]], "additive_wk": [[2, 0], [0, 1]], "additive_v": [[1, -1]]}
    result = worked(Scoring.ADDITIVE, q=[[1, 2]], k=[[0.5, 1]] * 2, v=[[2], [5]], **weights)
    assert result.verdict is Verdict.CERTIFIED
    assert any("tanh" in note for note in result.notes)
    bent = worked(Scoring.ADDITIVE, q=[[1, 2]], k=[[0.5, 1], [1, 1]], v=[[2], [5]], **weights)
    assert tried(bent) == ["tanh left out"]


def test_agreement_without_proof_stands_in_the_foot_of_a_picture_and_not_in_its_title() -> None:
    q = np.array(X)
    k = q.copy()
    k[2, 1] = np.nextafter(k[2, 1], 1)
    heading, *lines = [text.get_text() for text in figure_of(worked(q=q, k=k, v=V)).texts]
    assert "inconclusive" not in heading
    assert any("inconclusive" in line for line in lines)
