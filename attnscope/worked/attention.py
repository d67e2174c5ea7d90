"""Attention on arrays or of a head that was read, every step of `attnscope.arithmetic` named and proved."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnscope.arithmetic import Stages, project
from attnscope.errors import InputError
from attnscope.results import HeadAttention
from attnscope.results.given import given_array
from attnscope.results.worked import Axis, Check, Given, Matrix, Step, Worked, apart
from attnscope.vocabulary import Scoring
from attnscope.worked.same import excused, no_faults
from attnscope.worked.scored import (
    Allowed,
    Beside,
    Scored,
    additive_scored,
    dot_scored,
    given_scored,
    pairs,
    product_cell,
    softmax_cell,
    tensor,
)
from attnscope.worked.shapes import named, squares

FORMULAS = {
    Scoring.DOT: "softmax(Q Kᵀ)",
    Scoring.SCALED_DOT: "softmax(Q Kᵀ / √d_k)",
    Scoring.ADDITIVE: "softmax(a · tanh(Q Aq + K Ak))",
}
TITLES = {
    Scoring.DOT: "dot-product attention",
    Scoring.SCALED_DOT: "scaled dot-product attention",
    Scoring.ADDITIVE: "additive attention",
}
_PRODUCTS = (Scoring.SCALED_DOT, Scoring.DOT)
PLAIN = Beside()


def sdpa(Q: Any, K: Any, V: Any = None, *, scoring: str = "scaled-dot", causal: bool = False) -> Worked:
    """Scaled dot-product attention on arrays of your own, with every step, as `attnscope sdpa` shows it.

    `Q` (queries x d_k), `K` (keys x d_k) and `V` (keys x d_v) are nested lists or arrays of NumPy or torch,
    one vector a row; a flat one is one row. Without `V` there are weights and no output. `scoring` is
    `scaled-dot`, or `dot` for scores that are not divided by √d_k; if `causal`, query i looks at keys 0 to i
    only. The arithmetic is float64, whatever the arrays are, and is held against torch's own.

    Raises `InputError` for what is no array of two axes with finite numbers, and where axes do not fit.
    """
    if scoring not in _PRODUCTS:
        raise InputError(f"no scoring '{scoring}': {', '.join(_PRODUCTS)}")
    arrays = {"Q": Q, "K": K} | ({} if V is None else {"V": V})
    given = {name.lower(): given_array(array, name) for name, array in arrays.items()}
    return work_out(given, scoring=Scoring(scoring), causal=causal)


def work_out(
    given: Mapping[str, Given],
    *,
    scoring: Scoring = Scoring.SCALED_DOT,
    causal: bool = False,
    names: Mapping[str, tuple[str, ...]] | None = None,
    name: str = "",
    notes: tuple[str, ...] = (),
    beside: Beside = PLAIN,
) -> Worked:
    """Every step from `given` (keys as in `shapes`) to the output, in float64, and what proves it.

    Without V there are weights and no output. Scores that are given stand in the place of Q and K; -inf
    among them is a masked key. Under a `causal` mask query i may look at keys 0 to i, also where there are
    more keys than queries: aligned at the top left, as torch does it. Raises `InputError` for arrays that do
    not fit together and for numbers that are too large to be multiplied.
    """
    given_arrays = named(given, names or {}, scoring)
    steps = [
        Step(key, matrix, meaning=matrix.reading) for key, matrix in given_arrays.items() if key != "scores"
    ]
    steps += _projected(given_arrays)
    arrays = given_arrays | {step.key: step.matrix for step in steps}
    queries, keys = _counts(arrays)
    allowed = _allowed(arrays, beside, causal)
    scored = _scored(arrays, allowed, scoring, beside)
    _refuse_overflow(scored.stages)
    steps += scored.steps + _answered(arrays, scored, allowed, beside)
    if "wo" in arrays:
        steps.append(_back(steps[-1].matrix, arrays["wo"]))
    against, certificate = scored.proof
    certificate, same = excused(certificate, lambda: no_faults(arrays, allowed, beside))
    if causal and queries != keys:
        notes += (
            f"causal mask, {queries} x {keys} (queries x keys): query i may look at keys 0 to i, aligned at "
            "the top left as in torch",
        )
    title, formula = _called(arrays, scoring, beside)
    return Worked(
        name=name,
        title=title,
        formula=formula,
        steps=tuple(steps),
        scoring=None if "scores" in given else scoring,
        causal=causal,
        notes=notes + same,
        warnings=squares(given_arrays),
        proofs=((against, certificate),),
    )


def _called(arrays: Mapping[str, Matrix], scoring: Scoring, beside: Beside) -> tuple[str, str]:
    mixed = " V" if "v" in arrays else ""
    if "scores" not in arrays:
        return TITLES[scoring], FORMULAS[scoring] + mixed
    scaled = "" if beside.scale is None else " / √d_k"
    return "weights from scores", f"softmax(scores{scaled}){mixed}"


def _counts(arrays: Mapping[str, Matrix]) -> tuple[int, int]:
    rows, columns = arrays["scores"].values.shape if "scores" in arrays else (0, 0)
    return (rows, columns) if rows else (len(arrays["q"].values), len(arrays["k"].values))


def _allowed(arrays: Mapping[str, Matrix], beside: Beside, causal: bool) -> Allowed:
    """Where a query may look; None for everywhere. A score of -inf forbids its key."""
    allowed = beside.mask(*_counts(arrays), causal)
    if "scores" not in arrays or np.isfinite(arrays["scores"].values).all():
        return allowed
    finite = torch.from_numpy(np.isfinite(arrays["scores"].values))
    return finite if allowed is None else finite & allowed


def _scored(arrays: Mapping[str, Matrix], allowed: Allowed, scoring: Scoring, beside: Beside) -> Scored:
    if "scores" in arrays:
        return given_scored(arrays, allowed, beside)
    if scoring is Scoring.ADDITIVE:
        return additive_scored(arrays, allowed)
    return dot_scored(arrays, allowed, scoring, beside)


def _projected(matrices: Mapping[str, Matrix]) -> list[Step]:
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


def _answered(arrays: Mapping[str, Matrix], scored: Scored, allowed: Allowed, beside: Beside) -> list[Step]:
    scores, stages = scored.steps[-1].matrix, scored.stages
    logits, weights = pairs("", stages.masked, scores), pairs("weights", stages.weights, scores)
    sums = "every row sums to 1"
    sink = ""
    if beside.sink is not None:
        sink, sums = f", sink {beside.sink:.4g}", "every row sums to less than 1: the sink has the rest"
    steps = [
        Step(
            "weights",
            weights,
            f"softmax({scored.source}{sink})",
            sums,
            weights=True,
            allowed=None if allowed is None else allowed.numpy(),
            cell=softmax_cell(logits, beside.sink),
        )
    ]
    if "v" in arrays:
        values = arrays["v"]
        output = Matrix("output", stages.output[0].numpy(), weights.rows, values.columns)
        cell = product_cell(weights, values)
        steps.append(Step("output", output, "weights V", "the values mixed by weight", cell=cell))
    return steps


def _back(output: Matrix, weight: Matrix) -> Step:
    matrix = Matrix("Y", project(tensor(output), tensor(weight)).numpy(), output.rows, weight.columns)
    return Step("y", matrix, "output Wo", "back to the width of X", cell=product_cell(output, weight))


def _refuse_overflow(stages: Stages) -> None:
    """A query without any key has no answer, and that is no overflow."""
    answered = ~(stages.masked == -torch.inf).all(-1)
    if not all(bool(torch.isfinite(each[answered]).all()) for each in (stages.scores, stages.output)):
        raise InputError("the numbers are too large: products of them do not fit into float64")


def work_head(head: HeadAttention) -> Worked:
    """Every step of `head` from its own q, k, v, mask, scale and what was added to its scores.

    What comes out is held against the weights and the output that the head has, and its certificate against
    the model stands beside. Raises `InputError` for a head of which these were not kept.
    """
    if not all(np.isfinite(array).all() for array in (head.q, head.k, head.v)):
        raise InputError(f"{head.name}: the file does not hold its q, k and v: write it again")
    if head.sink is not None and head.sink_by_query:
        raise InputError(f"{head.name} has a sink of its own for every query, which the file does not hold")
    names = {"query_names": head.query_tokens.labels, "key_names": head.key_tokens.labels}
    given = {letter: Given(np.asarray(getattr(head, letter), np.float64)) for letter in "qkv"}
    worked = work_out(given, names=names, beside=beside_of(head))
    tolerances = worked.proofs[0][1]
    largest = float(np.abs(head.v).max())
    return replace(
        worked,
        title=f"{worked.title}, {called(head)}",
        notes=(*worked.notes, *head.notes),
        proofs=(*worked.proofs, ("the model's own weights and output", head.certificate)),
        checks=(
            _check(worked, "weights", head.weights, tolerances.weight_tolerance),
            _check(worked, "output", head.output, tolerances.output_tolerance * largest),
        ),
        provenance=head.provenance,
    )


def _check(worked: Worked, key: str, kept: np.ndarray, tolerance: float) -> Check:
    off = apart(worked.step(key).matrix.values, kept)
    return Check.of(f"{key} against those of the head", float(off.max()), tolerance)


def beside_of(head: HeadAttention) -> Beside:
    """What entered the softmax of `head` beside its products."""
    return Beside(
        scale=head.scale,
        softcap=head.softcap,
        added=head.terms,
        allowed=None if head.allowed.all() else head.allowed,
        sink=head.sink,
    )


def called(head: HeadAttention) -> str:
    """`L0 H11 of the bundled demo model`; of a folder on this machine its own name."""
    origin, place = head.provenance, Path(head.provenance.model)
    name = place.name if place.is_absolute() else origin.model
    return f"{head.name} of " + (f"the bundled {name} model" if origin.demo else name)
