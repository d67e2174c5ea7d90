"""Scaled dot-product or additive attention on arrays, every step of `attnscope.sdpa` named and proved."""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.errors import InputError
from attnscope.results import Certificate
from attnscope.results.worked import Axis, Given, Matrix, Scoring, Step, Worked
from attnscope.sdpa import Operands, Stages, additive_scores, attend, project, weigh
from attnscope.worked.cells import product_cell, quotient_cell, softmax_cell, tanh_cell
from attnscope.worked.proof import LOOP, TORCH, prove_additive, prove_dot
from attnscope.worked.same import excused, same_products, same_without_tanh
from attnscope.worked.shapes import named, squares

FORMULAS = {
    Scoring.DOT: "softmax(Q Kᵀ) V",
    Scoring.SCALED_DOT: "softmax(Q Kᵀ / √d_k) V",
    Scoring.ADDITIVE: "softmax(a · tanh(Q Aq + K Ak)) V",
}
TITLES = {
    Scoring.DOT: "dot-product attention",
    Scoring.SCALED_DOT: "scaled dot-product attention",
    Scoring.ADDITIVE: "additive attention",
}


def work_out(
    given: Mapping[str, Given],
    *,
    scoring: Scoring = Scoring.SCALED_DOT,
    causal: bool = False,
    names: Mapping[str, tuple[str, ...]] | None = None,
    name: str = "",
    notes: tuple[str, ...] = (),
) -> Worked:
    """Every step from `given` (keys as in `roles.ROLES`) to the output, in float64, and what proves it.

    Under a `causal` mask query i may look at keys 0 to i, also where there are more keys than queries:
    aligned at the top left, as torch does it. Raises `InputError` for arrays that do not fit together and
    for numbers that are too large to be multiplied.
    """
    matrices = named(given, names or {}, scoring)
    steps = [Step(key, matrix, meaning=matrix.reading) for key, matrix in matrices.items()]
    steps += _projected(matrices)
    found = {step.key: step.matrix for step in steps}
    queries, keys = (len(found[key].values) for key in "qk")
    allowed = torch.ones(queries, keys, dtype=torch.bool).tril() if causal else None
    if scoring is Scoring.ADDITIVE:
        made, stages, proof = _additive(found, allowed)
    else:
        made, stages, proof = _dot(found, allowed, scoring)
    _refuse_overflow(stages)
    against, certificate = proof
    certificate, same = excused(certificate, _same(found, allowed, scoring, certificate))
    steps += made + _answered(found, stages, allowed, scaled=scoring is Scoring.SCALED_DOT)
    if "wo" in found:
        steps.append(_back(steps[-1].matrix, found["wo"]))
    if causal and queries != keys:
        notes += (
            f"causal mask, {queries} x {keys} (queries x keys): query i may look at keys 0 to i, aligned at "
            "the top left as in torch",
        )
    return Worked(
        name=name,
        title=TITLES[scoring],
        formula=FORMULAS[scoring],
        steps=tuple(steps),
        scoring=scoring,
        causal=causal,
        notes=notes + same,
        warnings=squares(matrices),
        proofs=((against, certificate),),
    )


def tensor(matrix: Matrix) -> Float[Tensor, "row column"]:
    return torch.from_numpy(matrix.values).double()


def _projected(matrices: Mapping[str, Matrix]) -> list[Step]:
    """Q, K and V as X times their matrices; nothing where they were given themselves."""
    if "x" not in matrices:
        return []
    x, steps = matrices["x"], []
    for letter, word in (("q", "query"), ("k", "key"), ("v", "key")):
        weight, bias = matrices[f"w{letter}"], matrices.get(f"b{letter}")
        values = project(tensor(x), tensor(weight), None if bias is None else tensor(bias)[0]).numpy()
        rows = Axis(word, x.rows.names, x.rows.symbol)
        formula = f"X W{letter}" + (f" + b{letter}" if bias else "")
        matrix = Matrix(letter.upper(), values, rows, weight.columns)
        steps.append(Step(letter, matrix, formula, cell=product_cell(x, weight, bias)))
    return steps


def _same(
    found: Mapping[str, Matrix],
    allowed: Bool[Tensor, "query key"] | None,
    scoring: Scoring,
    certificate: Certificate,
) -> dict[str, str]:
    """The mistakes that are none here, with the reason; looked for only where one was not seen."""
    if not certificate.unseen:
        return {}
    if scoring is Scoring.ADDITIVE:
        return same_without_tanh(found)
    return same_products(found, None if allowed is None else allowed.numpy())


Made = tuple[list[Step], Stages, tuple[str, Certificate]]


def _dot(found: Mapping[str, Matrix], allowed: Bool[Tensor, "query key"] | None, scoring: Scoring) -> Made:
    """The scores of dot products, scaled by 1/sqrt(d_k) unless `scoring` says otherwise."""
    q, k, v = (found[key] for key in "qkv")
    size = len(q.columns.names)
    scaled = scoring is Scoring.SCALED_DOT
    operands = Operands(
        q=tensor(q)[None],
        k=tensor(k)[None],
        v=tensor(v)[None],
        scale=1 / math.sqrt(size) if scaled else 1.0,
        allowed=None if allowed is None else allowed[None],
    )
    stages = attend(operands)
    scores = _pairs("scores", stages.scores, found)
    meaning = "how well each key fits each query"
    steps = [Step("scores", scores, "Q Kᵀ", meaning, cell=product_cell(q, k, transposed=True))]
    if scaled:
        formula = f"scores / √d_k = scores / {math.sqrt(size):.4g}"
        cell = quotient_cell(scores, math.sqrt(size))
        steps.append(Step("scaled", _pairs("scaled", stages.scaled, found), formula, cell=cell))
    return steps, stages, (TORCH, prove_dot(operands, allowed is not None))


def _additive(found: Mapping[str, Matrix], allowed: Bool[Tensor, "query key"] | None) -> Made:
    """The scores of Bahdanau et al. (2015): a . tanh(q Aq + k Ak) for every query and key."""
    steps = []
    for letter in "qk":
        rows, weight = found[letter], found[f"additive_w{letter}"]
        symbol = f"{letter.upper()}A"
        matrix = Matrix(symbol, project(tensor(rows), tensor(weight)).numpy(), rows.rows, weight.columns)
        formula = f"{rows.symbol} {weight.symbol}"
        steps.append(Step(f"additive_{letter}", matrix, formula, cell=product_cell(rows, weight)))
    query, key = (step.matrix for step in steps)
    vector = found["additive_v"]
    raw = additive_scores(tensor(query)[None], tensor(key)[None], tensor(vector)[0])
    stages = weigh(raw, tensor(found["v"])[None], allowed=None if allowed is None else allowed[None])
    scores = _pairs("scores", raw, found)
    meaning = "for every query (row of QA) and key (row of KA)"
    steps.append(Step("scores", scores, "a · tanh(QA + KA)", meaning, cell=tanh_cell(query, key, vector)))
    arrays = {
        name: found[name].values for name in ("q", "k", "v", "additive_wq", "additive_wk", "additive_v")
    }
    return steps, stages, (LOOP, prove_additive(stages, arrays, allowed is not None))


def _answered(
    found: Mapping[str, Matrix], stages: Stages, allowed: Bool[Tensor, "query key"] | None, *, scaled: bool
) -> list[Step]:
    """From what enters the softmax to the output."""
    logits, weights = _pairs("masked", stages.masked, found), _pairs("weights", stages.weights, found)
    output = Matrix("output", stages.output[0].numpy(), logits.rows, found["v"].columns)
    shown = None if allowed is None else allowed.numpy()
    source = "scaled" if scaled else "scores"
    steps = []
    if shown is not None:
        formula = f"{source}, −∞ for later keys"
        steps.append(Step("masked", logits, formula, allowed=shown))
        source = "masked"
    softmax = Step(
        "weights",
        weights,
        f"softmax({source})",
        "every row sums to 1",
        weights=True,
        allowed=shown,
        cell=softmax_cell(logits),
    )
    mixed = Step(
        "output", output, "weights V", "the values mixed by weight", cell=product_cell(weights, found["v"])
    )
    return [*steps, softmax, mixed]


def _pairs(symbol: str, values: Float[Tensor, "1 query key"], found: Mapping[str, Matrix]) -> Matrix:
    return Matrix(symbol, values[0].numpy(), found["q"].rows, found["k"].rows)


def _back(output: Matrix, weight: Matrix) -> Step:
    """The output brought back to the width of X."""
    matrix = Matrix("Y", project(tensor(output), tensor(weight)).numpy(), output.rows, weight.columns)
    return Step("y", matrix, "output Wo", "back to the width of X", cell=product_cell(output, weight))


def _refuse_overflow(stages: Stages) -> None:
    if not all(bool(torch.isfinite(each).all()) for each in (stages.scores, stages.output)):
        raise InputError("the numbers are too large: products of them do not fit into float64")
