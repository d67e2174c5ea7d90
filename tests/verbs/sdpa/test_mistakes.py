"""Mistakes beside the right result, by hand; one that changes nothing is no fault and others are."""

import math

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.results import Verdict
from attnscope.results.steps import Given
from attnscope.verbs.sdpa.attention import work_out
from attnscope.verbs.sdpa.examples import example
from attnscope.verbs.sdpa.mistakes import mistaken
from attnscope.verbs.sdpa.result import Scoring, Worked, apart

Q = [[1.0, 0.5, 2.0], [0.0, -1.0, 1.5]]
K = [[1.0, 0.0, 0.5], [2.0, 1.0, -1.0], [0.3, 0.2, 0.1]]
V = [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]
q, k, v = (np.array(each) for each in (Q, K, V))


def worked(scoring: Scoring = Scoring.SCALED_DOT, causal: bool = False, **rows: object) -> Worked:
    given = {
        key: Given(np.array(value, np.float64)) for key, value in (rows or {"q": Q, "k": K, "v": V}).items()
    }
    return work_out(given, scoring=scoring, causal=causal)


def softmaxed(logits: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum(axis=axis, keepdims=True)


def wrong(name: str, result: Worked | None = None) -> Worked:
    return mistaken(result or worked(), name)


def values(result: Worked, key: str) -> np.ndarray:
    return result.step(f"wrong_{key}").matrix.values


EXPECTED = {
    "no-transpose": softmaxed(q @ k / math.sqrt(3)),
    "no-scale": softmaxed(q @ k.T),
    "scale-by-d": softmaxed(q @ k.T / 3),
    "softmax-axis": softmaxed(q @ k.T / math.sqrt(3), axis=0),
    "no-softmax": q @ k.T / math.sqrt(3),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_mistake_makes_what_it_makes_by_hand(name: str) -> None:
    result = wrong(name)
    assert values(result, "weights") == pytest.approx(EXPECTED[name])
    assert values(result, "output") == pytest.approx(EXPECTED[name] @ v)
    right = worked()
    assert result.step("weights").matrix.values == pytest.approx(right.step("weights").matrix.values)
    off = np.abs(EXPECTED[name] - right.step("weights").matrix.values)
    row, column = np.unravel_index(off.argmax(), off.shape)
    assert result.mistake.name == name
    assert f"q{row}" in result.mistake.differs[0]
    assert f"k{column}" in result.mistake.differs[0]
    assert result.verdict == right.verdict  # the proof is that of the right one


def test_queries_and_keys_exchanged_are_the_scores_transposed() -> None:
    keys = [[1.0, 0.0, 0.5], [2.0, 1.0, -1.0]]
    result = wrong("exchanged", worked(q=Q, k=keys, v=V[:2]))
    assert values(result, "scores") == pytest.approx(np.array(keys) @ q.T)
    assert values(result, "weights") == pytest.approx(softmaxed(np.array(keys) @ q.T / math.sqrt(3)))


def test_masks_that_come_too_late_or_with_zero() -> None:
    right = worked(causal=True, q=[*Q, [1.0, 1.0, 0.0]], k=K, v=V)
    scaled = right.step("scaled").matrix.values
    late = wrong("mask-after-softmax", right)
    assert values(late, "weights") == pytest.approx(np.tril(softmaxed(scaled)))
    assert values(late, "weights")[0].sum() < 1
    zero = wrong("mask-with-zero", right)
    assert values(zero, "weights") == pytest.approx(softmaxed(np.tril(scaled)))
    for name in ("mask-after-softmax", "mask-with-zero"):
        with pytest.raises(InputError, match=f"{name}: nothing is masked here"):
            wrong(name)


def test_what_cannot_even_be_multiplied_says_so_and_shows_no_numbers() -> None:
    result = wrong("no-transpose", worked(q=Q, k=[*K, K[0]], v=[*V, V[0]]))
    assert result.mistake.differs == (
        "it cannot be done: Q is 2 x d_k=3 and K is 4 x d_k=3, and d_k = 3 columns of Q meet 4 rows of K",
    )
    assert not [step for step in result.steps if step.wrong]
    one = wrong("exchanged", worked(q=Q[:1], k=K, v=V))
    assert one.mistake.differs[0].startswith("it cannot be done: K Qᵀ is 3 x 1")


def test_where_a_mistake_changes_nothing_that_is_said() -> None:
    flat = worked(q=[[2.0]], k=[[1.0], [3.0]], v=[[1.0], [2.0]])
    for name in ("no-scale", "scale-by-d"):
        assert wrong(name, flat).mistake.differs == ("nothing: here it makes the same numbers (√d_k = 1)",)
    symmetric = worked(q=Q[:1], k=[[1, 2, 0], [2, 0, 1], [0, 1, 3]], v=V)
    assert wrong("no-transpose", symmetric).mistake.differs[0].startswith("nothing: here it makes the same")


def test_a_mistake_that_an_example_has_no_place_for_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="no mistake 'pear': no-transpose, no-scale"):
        wrong("pear")
    with pytest.raises(InputError, match="no-scale: nothing is scaled here"):
        wrong("no-scale", worked(Scoring.DOT))
    with pytest.raises(InputError, match="no-transpose: there is no Q Kᵀ here"):
        wrong("no-transpose", worked(scores=[[1.0, 2.0, 3.0]]))
    with pytest.raises(InputError, match="no softmax"):
        wrong("softmax-axis", example("dictionary"))


def test_a_number_that_is_none_on_one_side_alone_is_infinitely_far() -> None:
    one = np.array([[0.5, np.nan, np.nan], [1.0, 2.0, 3.0]])
    other = np.array([[0.25, np.nan, 0.0], [np.nan, 2.0, 1.0]])
    assert apart(one, other).tolist() == [[0.25, 0.0, np.inf], [np.inf, 0.0, 2.0]]


NAME = "query and key exchanged"
X = [[0.1, 0.2, 0.3], [0.7, 0.5, 0.9], [0.4, 0.8, 0.6], [0.2, 0.2, 0.7]]
W = [[0.3, 0.1], [0.2, 0.9], [0.5, 0.4]]
VALUES = [[1, 2], [3, 4], [5, 6], [7, 9]]


def tried(result: Worked) -> list[str]:
    return [fault.name for fault in result.proofs[0][1].faults]


@pytest.mark.parametrize("causal", [False, True])
def test_where_x_has_one_matrix_for_queries_and_keys_their_exchange_is_no_fault(causal: bool) -> None:
    result = worked(causal=causal, x=X, wq=W, wk=W, wv=W)
    assert result.verdict is Verdict.CERTIFIED
    assert NAME not in tried(result)
    assert "scale off by sqrt 2" in tried(result)
    assert any("Q and K may be exchanged" in note for note in result.notes)


def test_only_scores_that_are_symmetric_as_typed_excuse_the_exchange_and_nothing_else() -> None:
    q = [[0.1], [0.3]]
    apart = worked(q=q, k=[[1], [2]], v=VALUES[:2])
    assert apart.verdict is Verdict.CERTIFIED
    assert NAME in tried(apart)
    assert 0.1 * 3 != 0.3 * 1  # in float64
    alike = worked(q=q, k=[[1], [3]], v=VALUES[:2])
    assert alike.verdict is Verdict.CERTIFIED
    assert NAME not in tried(alike)
    q = np.array(X)
    k = q.copy()
    k[2, 1] = np.nextafter(k[2, 1], 1)
    result = worked(q=q, k=k, v=VALUES)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert NAME in result.proofs[0][1].unseen
    q = [[0.0, 0.0], [60.0, 0.0]]  # weights of 1 and 0: no scale could be told, though the scores differ
    result = worked(q=q, k=q, v=VALUES[:2])
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
