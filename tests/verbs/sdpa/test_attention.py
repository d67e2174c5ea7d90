"""Worked attention against loops, against torch's own kernel, and against numbers that others published."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import attnscope as at
from attnscope.arithmetic import additive_scores, logits_over
from attnscope.errors import InputError
from attnscope.results import Verdict, Worked
from attnscope.results.steps import Given
from attnscope.verbs.sdpa import attention
from attnscope.verbs.sdpa.attention import work_out
from attnscope.verbs.sdpa.examples import example
from attnscope.verbs.sdpa.result import Scoring

QUERIES, KEYS, DIM, VALUE_DIM, OWN_DIM, HIDDEN = 4, 5, 3, 2, 6, 7


def arrays(seed: int = 0, **shapes: tuple[int, int]) -> dict[str, Given]:
    random = np.random.default_rng(seed)
    return {key: Given(random.normal(size=shape)) for key, shape in shapes.items()}


def dot_arrays() -> dict[str, Given]:
    return arrays(q=(QUERIES, DIM), k=(KEYS, DIM), v=(KEYS, VALUE_DIM))


def additive_arrays() -> dict[str, Given]:
    return arrays(
        q=(QUERIES, OWN_DIM),
        k=(KEYS, DIM),
        v=(KEYS, VALUE_DIM),
        additive_wq=(OWN_DIM, HIDDEN),
        additive_wk=(DIM, HIDDEN),
        additive_v=(1, HIDDEN),
    )


def values(result: Worked, key: str) -> np.ndarray:
    return result.step(key).matrix.values


def looped(scores: list[list[float]], v: np.ndarray, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weights and output from scores, one number at a time."""
    weights = np.zeros((len(scores), len(v)))
    output = np.zeros((len(scores), v.shape[1]))
    for i, row in enumerate(scores):
        seen = range(min(i + 1, len(row))) if causal else range(len(row))
        total = sum(math.exp(row[j]) for j in seen)
        for j in seen:
            weights[i, j] = math.exp(row[j]) / total
            for d in range(v.shape[1]):
                output[i, d] += weights[i, j] * v[j, d]
    return weights, output


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scoring", [Scoring.DOT, Scoring.SCALED_DOT])
def test_every_stage_of_dot_products_is_that_of_a_loop(scoring: Scoring, causal: bool) -> None:
    given = dot_arrays()
    q, k, v = (given[key].values for key in "qkv")
    scale = 1 / math.sqrt(DIM) if scoring is Scoring.SCALED_DOT else 1.0
    raw = [[sum(q[i, d] * k[j, d] for d in range(DIM)) for j in range(KEYS)] for i in range(QUERIES)]
    weights, output = looped([[score * scale for score in row] for row in raw], v, causal)
    result = work_out(given, scoring=scoring, causal=causal)
    assert values(result, "scores") == pytest.approx(np.array(raw))
    assert values(result, "weights") == pytest.approx(weights)
    assert values(result, "output") == pytest.approx(output)
    assert ("scaled" in [step.key for step in result.steps]) is (scoring is Scoring.SCALED_DOT)
    assert ("masked" in [step.key for step in result.steps]) is causal
    assert result.verdict is Verdict.CERTIFIED
    torchs = scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), is_causal=causal, scale=scale)
    keys = [step.key for step in result.steps if step.key not in ("v", "output")]
    for made in (np.ndarray.tolist, np.array, torch.tensor):
        public = at.sdpa(made(q), made(k), made(v), scoring=str(scoring), causal=causal)
        alone = at.sdpa(made(q), made(k), scoring=str(scoring), causal=causal)
        assert values(public, "output") == pytest.approx(torchs.numpy())
        assert (values(alone, "weights") == values(public, "weights")).all()
        assert values(alone, "weights") == pytest.approx(weights)
        assert [step.key for step in alone.steps] == keys
        assert (alone.verdict, alone.formula + " V") == (Verdict.CERTIFIED, public.formula)


@pytest.mark.parametrize("causal", [False, True])
def test_additive_scores_are_those_of_a_loop(causal: bool) -> None:
    given = additive_arrays()
    raw = {key: array.values for key, array in given.items()}
    scores = [[0.0] * KEYS for _ in range(QUERIES)]
    for i in range(QUERIES):
        for j in range(KEYS):
            for a in range(HIDDEN):
                argument = sum(raw["q"][i, d] * raw["additive_wq"][d, a] for d in range(OWN_DIM))
                argument += sum(raw["k"][j, d] * raw["additive_wk"][d, a] for d in range(DIM))
                scores[i][j] += raw["additive_v"][0, a] * math.tanh(argument)
    weights, output = looped(scores, raw["v"], causal)
    result = work_out(given, scoring=Scoring.ADDITIVE, causal=causal)
    assert values(result, "scores") == pytest.approx(np.array(scores))
    assert values(result, "weights") == pytest.approx(weights)
    assert values(result, "output") == pytest.approx(output)
    assert result.verdict is Verdict.CERTIFIED
    assert [step.key for step in result.steps[6:8]] == ["additive_q", "additive_k"]
    alone = work_out(
        {key: given[key] for key in given if key != "v"}, scoring=Scoring.ADDITIVE, causal=causal
    )
    assert (values(alone, "weights") == values(result, "weights")).all()
    assert (alone.verdict, alone.steps[-1].key) == (Verdict.CERTIFIED, "weights")


def test_rows_of_x_go_through_their_matrices_and_back() -> None:
    shapes = {"x": (4, 5), "wq": (5, 3), "wk": (5, 3), "wv": (5, 2), "bk": (1, 3), "wo": (2, 5)}
    given = arrays(**shapes)
    x, wq, wk, wv, bk, wo = (given[key].values for key in shapes)
    result = work_out(given)
    expected = scaled_dot_product_attention(
        *(torch.tensor(each[None]) for each in (x @ wq, x @ wk + bk, x @ wv))
    )
    assert values(result, "output") == pytest.approx(expected[0].numpy())
    assert values(result, "y") == pytest.approx(expected[0].numpy() @ wo)
    shown = {step.key: step.matrix.shape for step in result.steps}
    assert shown["x"] == "T=4 x d=5"
    assert shown["weights"] == "T=4 x T=4"
    assert shown["output"] == "T=4 x d_v=2"
    assert shown["y"] == "T=4 x d=5"
    assert result.step("k").formula == "X Wk + bk"
    assert result.step("q").formula == "X Wq"


def test_a_causal_mask_on_more_keys_than_queries_says_where_it_begins() -> None:
    assert any("top left" in note for note in work_out(dot_arrays(), causal=True).notes)
    assert work_out(arrays(q=(4, 3), k=(4, 3), v=(4, 2)), causal=True).notes == ()


def test_tensors_and_fruit_give_the_published_numbers_and_an_unknown_example_the_list() -> None:
    result = example("tensors")
    assert values(result, "scaled") == pytest.approx(np.array([[1.15470054, 0, 0.57735027]]), abs=5e-9)
    assert values(result, "weights") == pytest.approx(
        np.array([[0.53289684, 0.16794345, 0.29915971]]), abs=5e-9
    )
    assert values(result, "output") == pytest.approx(np.array([[2.53252575, 3.53252575]]), abs=5e-9)
    result = example("fruit")
    assert values(result, "scaled").round(2).tolist() == [[0.44, 0.37, 0.16]]
    assert values(result, "weights").round(3).tolist() == [[0.372, 0.347, 0.282]]
    assert any(note.startswith("illustrative") for note in result.notes)
    assert result.step("k").matrix.rows.names == ("apple", "banana", "chair")
    assert result.step("v").matrix.columns.names == ("price", "liking", "use")
    plain = example("tensors", Scoring.DOT)
    assert values(plain, "weights") != pytest.approx(values(example("tensors"), "weights"))
    assert values(plain, "weights")[0] == pytest.approx(np.exp([2, 0, 1]) / np.exp([2, 0, 1]).sum())
    with pytest.raises(InputError, match="leave out"):
        example("dictionary", Scoring.DOT)
    with pytest.raises(
        InputError, match=r"no example 'pear': dictionary, fruit, tensors.*theatre, why-scale"
    ):
        example("pear")


def test_products_that_went_wrong_a_mask_that_was_lost_and_wrong_additive_scores_fail(monkeypatch) -> None:
    place = "attnscope.verify.together.logits_over"
    monkeypatch.setattr(
        place, lambda scores, scale, *more, **to: logits_over(scores, scale * 1.001, *more, **to)
    )
    assert work_out(dot_arrays()).verdict is Verdict.FAILED
    monkeypatch.setattr(place, lambda *given, **to: logits_over(*given[:4], None, **to))
    assert work_out(dot_arrays(), causal=True).verdict is Verdict.FAILED
    monkeypatch.setattr(attention, "additive_scores", lambda *given: additive_scores(*given) * 1.001)
    assert work_out(additive_arrays(), scoring=Scoring.ADDITIVE).verdict is Verdict.FAILED


def test_additive_scores_too_small_to_bend_prove_no_tanh() -> None:
    given = {key: Given(array.values * 1e-9) for key, array in additive_arrays().items()}
    certificate = work_out(given, scoring=Scoring.ADDITIVE).proofs[0][1]
    assert certificate.verdict is Verdict.INCONCLUSIVE
    assert certificate.unseen == ("tanh left out",)


@pytest.mark.parametrize("seed", range(12))
def test_the_tolerance_leaves_room_for_rounding(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, m, d, e = (int(size) for size in random.integers(1, 60, 4))
    given = arrays(seed, q=(n, d), k=(m, d), v=(m, e))
    given["q"] = Given(given["q"].values * 10 ** random.uniform(-2, 2))
    certificate = work_out(given, causal=bool(seed % 2)).proofs[0][1]
    assert certificate.weight_error <= certificate.weight_tolerance / 2
    assert certificate.output_error <= certificate.output_tolerance / 2


def test_numbers_too_large_to_multiply_are_refused() -> None:
    with pytest.raises(InputError, match="too large"):
        at.sdpa(np.full((1, 2), 1e200), np.full((3, 2), 1e200))


def test_the_first_cell_is_spelled_out_with_the_numbers_it_is_made_of() -> None:
    result = example("fruit")
    assert result.step("scores").cell.terms == ((0.8, 0.9), (0.2, 0.1), (0.1, 0.2))
    for step in result.steps:
        if step.cell and step.cell.operation == "products":
            total = sum(math.prod(term) for term in step.cell.terms)
            assert total == pytest.approx(step.matrix.values[step.cell.row, step.cell.column])
    logits = [term[0] for term in result.step("weights").cell.terms]
    assert math.exp(logits[0]) / sum(map(math.exp, logits)) == pytest.approx(values(result, "weights")[0, 0])


def test_the_public_function_takes_flat_rows_and_tensors_of_any_kind() -> None:
    k = torch.tensor([[1, 2], [3, 4]], dtype=torch.bfloat16, requires_grad=True)
    for q in ((1, 2), np.array([1, 2], np.int8), [torch.tensor([1.0, 2.0])]):
        assert values(at.sdpa(q, k), "scores").tolist() == [[5, 11]]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((2, 3, 4)), "K is 2 x 3 x 4: two axes are needed"),
        ([[1, 2], [3]], "K is ragged: row 0 has 2 cells, row 1 has 1"),
        (torch.tensor([[1, math.nan]]), "K, row 0, column 1: 'nan' is no finite number"),
        ([[1, "2\n"]], "K, row 0, column 1: '2↵' is no finite number"),
        (torch.zeros(1, 2, device="meta"), "K holds no rows of numbers"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused_in_one_line(array: object, says: str) -> None:
    with pytest.raises(InputError) as refused:
        at.sdpa([[1, 2]], array)
    assert str(refused.value).startswith(says)
    with pytest.raises(InputError, match="no scoring 'additive': scaled-dot, dot"):
        at.sdpa([[1, 2]], [[1, 2]], scoring="additive")
