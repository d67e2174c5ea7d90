"""Scores that are typed in, masks of one's own, soft caps, terms and sinks, against softmaxes by hand."""

import math

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.results import Verdict, Worked
from attnscope.results.worked import Given
from attnscope.worked import work_out
from attnscope.worked.scored import Beside

SCORES = [[2.0, 0.0, 1.0], [0.5, -1.0, 3.0]]
V = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def given(**rows: object) -> dict[str, Given]:
    return {key: Given(np.array(value, np.float64)) for key, value in rows.items()}


def values(result: Worked, key: str) -> np.ndarray:
    return result.step(key).matrix.values


def softmaxed(rows: list[list[float]], extra: float | None = None) -> np.ndarray:
    """One number at a time."""
    out = []
    for row in rows:
        total = sum(math.exp(score) for score in row) + (0 if extra is None else math.exp(extra))
        out.append([math.exp(score) / total for score in row])
    return np.array(out)


def test_weights_come_from_scores_alone() -> None:
    result = work_out(given(scores=SCORES))
    assert [step.key for step in result.steps] == ["scores", "weights"]
    assert values(result, "weights") == pytest.approx(softmaxed(SCORES))
    assert result.verdict is Verdict.CERTIFIED
    assert result.formula == "softmax(scores)"


def test_with_values_there_is_an_output_and_with_the_size_of_the_vectors_a_scale() -> None:
    result = work_out(given(scores=SCORES, v=V), beside=Beside(scale=1 / math.sqrt(3)))
    expected = softmaxed([[score / math.sqrt(3) for score in row] for row in SCORES])
    assert [step.key for step in result.steps] == ["v", "scores", "scaled", "weights", "output"]
    assert values(result, "weights") == pytest.approx(expected)
    assert values(result, "output") == pytest.approx(expected @ np.array(V))
    assert result.formula == "softmax(scores / √d_k) V"
    assert result.step("scaled").formula == "scores / √d_k = scores / 1.732"
    assert result.verdict is Verdict.CERTIFIED


def test_minus_infinity_among_scores_is_a_masked_key() -> None:
    masked = [[2.0, -math.inf, -math.inf], [0.5, -1.0, -math.inf]]
    result = work_out(given(scores=masked, v=V))
    assert values(result, "weights")[0] == pytest.approx([1, 0, 0])
    assert values(result, "weights")[1] == pytest.approx([*softmaxed([[0.5, -1.0]])[0], 0])
    assert "masked" not in [step.key for step in result.steps]
    assert result.step("weights").allowed.tolist() == [[True, False, False], [True, True, False]]
    assert result.verdict is Verdict.CERTIFIED
    nothing = work_out(given(scores=[[2.0, 1.0], [-math.inf] * 2]))
    assert np.isnan(values(nothing, "weights")[1]).all()
    assert nothing.verdict is not Verdict.FAILED


def test_scores_stand_in_the_place_of_queries_and_keys() -> None:
    for spare in ("q", "x", "wq", "additive_v"):
        with pytest.raises(InputError, match=f"{spare} beside scores"):
            work_out(given(scores=SCORES, **{spare: [[1.0, 2.0]]}))
    with pytest.raises(InputError, match=r"V is 2 x d_v=2, scores is 2 x 3: keys must agree"):
        work_out(given(scores=SCORES, v=V[:2]))


def test_symmetric_scores_leave_no_fault_in_their_exchange() -> None:
    result = work_out(given(scores=[[1.0, 2.0], [2.0, 0.5]]))
    assert result.verdict is Verdict.CERTIFIED
    assert any("queries and keys may be exchanged" in note for note in result.notes)
    assert work_out(given(scores=[[1.0, 2.0], [2.5, 0.5]])).notes == ()


Q, K = [[1.0, 0.5], [2.0, -1.0]], [[1.0, 0.0], [0.5, 2.0], [-1.0, 1.0]]


def test_a_mask_a_term_and_a_scale_of_its_own_are_steps_and_certified() -> None:
    allowed = np.array([[True, False, True], [False, True, True]])
    added = np.array([[0.5, 0.0, -1.0], [1.0, 2.0, 0.25]])
    beside = Beside(scale=0.3, added={"bias": added}, allowed=allowed)
    result = work_out(given(q=Q, k=K, v=V), beside=beside)
    logits = 0.3 * np.array(Q) @ np.array(K).T + added
    expected = np.where(allowed, np.exp(logits), 0)
    assert values(result, "weights") == pytest.approx(expected / expected.sum(-1, keepdims=True))
    keys = ["q", "k", "v", "scores", "scaled", "term bias", "biased", "masked", "weights", "output"]
    assert [step.key for step in result.steps] == keys
    assert result.step("scaled").formula == "scores · 0.3"
    assert result.step("masked").formula == "biased, −∞ for masked keys"
    assert result.verdict is Verdict.CERTIFIED
    names = {fault.name for fault in result.proofs[0][1].faults}
    assert {"bias dropped", "mask dropped", "scale off by sqrt 2"} <= names


def test_a_soft_cap_and_a_sink_are_proved_by_a_loop() -> None:
    beside = Beside(softcap=1.5, sink=0.2)
    result = work_out(given(q=Q, k=K, v=V), beside=beside)
    scaled = np.array(Q) @ np.array(K).T / math.sqrt(2)
    expected = softmaxed((1.5 * np.tanh(scaled / 1.5)).tolist(), extra=0.2)
    assert values(result, "weights") == pytest.approx(expected)
    assert values(result, "weights").sum(-1).max() < 1
    against, certificate = result.proofs[0]
    assert against.startswith("a loop")
    assert certificate.verdict is Verdict.CERTIFIED
    assert {"soft cap dropped", "sink dropped"} <= {fault.name for fault in certificate.faults}
    cell = result.step("weights").cell
    logits = [term[0] for term in cell.terms]
    assert math.exp(logits[0]) / sum(map(math.exp, logits)) == pytest.approx(expected[0, 0])


def test_a_loop_that_disagrees_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.worked import proof

    genuine = proof._looped_dot
    monkeypatch.setattr(proof, "_looped_dot", lambda operands: genuine(operands) * 1.001)
    assert work_out(given(q=Q, k=K, v=V), beside=Beside(sink=0.2)).verdict is Verdict.FAILED


def test_the_first_pair_that_is_spelled_out_is_one_that_is_allowed() -> None:
    allowed = np.array([[False, True, True], [True, True, True]])
    cell = work_out(given(q=Q, k=K, v=V), beside=Beside(allowed=allowed)).step("weights").cell
    assert (cell.row, cell.column) == (0, 1)
    assert len(cell.terms) == 2
