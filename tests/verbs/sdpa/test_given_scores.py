"""Scores that are typed in, masks, caps and sinks by hand; arrays that do not fit are named."""

import math

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.results import Verdict, Worked
from attnscope.results.steps import Given
from attnscope.verbs.sdpa.attention import work_out
from attnscope.verbs.sdpa.given import MOST_PAIRS
from attnscope.verbs.sdpa.result import Scoring

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
    result = work_out(given(scores=SCORES, v=V), scale=1 / math.sqrt(3))
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


Q, K = [[1.0, 0.5], [2.0, -1.0]], [[1.0, 0.0], [0.5, 2.0], [-1.0, 1.0]]


def test_a_mask_a_term_and_a_scale_of_its_own_are_steps_and_certified() -> None:
    allowed = np.array([[True, False, True], [False, True, True]])
    added = np.array([[0.5, 0.0, -1.0], [1.0, 2.0, 0.25]])
    result = work_out(given(q=Q, k=K, v=V), scale=0.3, added={"bias": added}, allowed=allowed)
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
    result = work_out(given(q=Q, k=K, v=V), softcap=1.5, sink=0.2)
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
    from attnscope.verbs.sdpa import proof

    genuine = proof._looped
    monkeypatch.setattr(proof, "_looped", lambda operands: genuine(operands) * 1.001)
    assert work_out(given(q=Q, k=K, v=V), sink=0.2).verdict is Verdict.FAILED


def ones(**shapes: tuple[int, int]) -> dict[str, Given]:
    return {key: Given(np.ones(shape)) for key, shape in shapes.items()}


PROJECTED = {"x": (4, 5), "wq": (5, 3), "wk": (5, 3), "wv": (5, 2)}
ADDITIVE = {
    "q": (2, 3),
    "k": (4, 2),
    "v": (4, 1),
    "additive_wq": (3, 5),
    "additive_wk": (2, 5),
    "additive_v": (1, 5),
}

MISFITS = [
    ({"q": (1, 2), "k": (3, 3), "v": (3, 1)}, "Q is 1 x d_k=2, K is 3 x d_k=3: d_k must agree"),
    ({"q": (1, 3), "k": (4, 3), "v": (2, 5)}, "K is 4 x d_k=3, V is 2 x d_v=5: keys must agree"),
    ({"q": (1, 3), "k": (4, 3), "v": (1, 4)}, "written '1; 2; 3'"),
    (PROJECTED | {"wk": (6, 3)}, "X is T=4 x d=5, Wk is d=6 x d_k=3: d must agree"),
    (PROJECTED | {"wk": (5, 4)}, "Wq is d=5 x d_k=3, Wk is d=5 x d_k=4: d_k must agree"),
    (PROJECTED | {"wo": (3, 5)}, "Wv is d=5 x d_v=2, Wo is d_v=3 x d=5: d_v must agree"),
    (PROJECTED | {"bv": (1, 3)}, "Wv is d=5 x d_v=2, bv is 1 x d_v=3: d_v must agree"),
    (PROJECTED | {"bv": (2, 1)}, "bv is 2 x d_v=1: it has one row"),
    (PROJECTED | {"q": (1, 3)}, "q beside x"),
    ({"q": (1, 2), "v": (3, 1)}, "no k: give q and k (and v), or x with wq, wk and wv"),
    ({"x": (1, 2)}, "no wq, wk, wv"),
    ({"q": (1, 2), "k": (3, 2), "v": (3, 1), "bq": (1, 2)}, "bq without x"),
    ({"q": (1, 2), "k": (3, 2), "wo": (3, 1)}, "wo without v"),
    ({"scores": (1, 2), "wo": (3, 1)}, "wo without v"),
    (ADDITIVE, "without additive scoring"),
]


OF_ADDITIVE = [
    (ADDITIVE | {"additive_wq": (4, 5)}, "Q is 2 x d_q=3, Aq is d_q=4 x d_a=5: d_q must agree"),
    (ADDITIVE | {"additive_wk": (2, 6)}, "Aq is d_q=3 x d_a=5, Ak is d_k=2 x d_a=6: d_a must agree"),
    (ADDITIVE | {"additive_v": (5, 1)}, "a is 5 x d_a=1"),
    ({"q": (1, 2), "k": (3, 2), "v": (3, 1)}, "additive_wq = Aq (d_q x d_a), additive_wk = Ak"),
]


@pytest.mark.parametrize(("shapes", "message"), [*MISFITS, *OF_ADDITIVE])
def test_arrays_that_do_not_fit_are_named_with_their_shapes(shapes: dict, message: str) -> None:
    additive = (shapes, message) in OF_ADDITIVE
    with pytest.raises(InputError) as refused:
        work_out(ones(**shapes), scoring=Scoring.ADDITIVE if additive else Scoring.SCALED_DOT)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_square_arrays_are_warned_about_and_others_are_not() -> None:
    (square,) = work_out(ones(q=(1, 3), k=(3, 3), v=(3, 2))).warnings
    assert square.startswith("K is square")
    assert square.endswith("rows = keys, columns = d_k")
    assert work_out(ones(q=(1, 3), k=(4, 3), v=(4, 2))).warnings == ()
    assert work_out(ones(q=(1, 1), k=(1, 1), v=(1, 1))).warnings == ()


def test_names_that_contradict_each_other_are_refused() -> None:
    arrays = ones(q=(1, 3), k=(2, 3), v=(2, 2))
    arrays["k"] = Given(arrays["k"].values, rows=("a", "b"))
    arrays["v"] = Given(arrays["v"].values, rows=("b", "a"))
    with pytest.raises(InputError, match="two names for the same keys: k has a, b, v has b, a"):
        work_out(arrays)
    assert work_out(arrays, names={"key_names": ("c", "d")}).step("k").matrix.rows.names == ("c", "d")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"key_names": ("a", "b")}, "2 names for 4 keys"),
        ({"query_names": ("a", "b")}, "2 names for 1 query"),
        ({"dims": ("a",)}, "1 names for d_k = 3"),
        ({"token_names": ("a",)}, "token_names: these arrays have no such axis"),
    ],
)
def test_names_that_do_not_fit_are_refused(names: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        work_out(ones(q=(1, 3), k=(4, 3), v=(4, 2)), names=names)


def test_more_pairs_than_can_be_shown_are_refused() -> None:
    side = int(MOST_PAIRS**0.5) + 1
    with pytest.raises(InputError, match="too many to show"):
        work_out(ones(q=(side, 1), k=(side, 1), v=(side, 1)))
