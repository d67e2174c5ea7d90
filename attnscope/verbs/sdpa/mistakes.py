"""What people get wrong, beside the right result: the same arrays with one mistake, what differs, and why."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float

from attnscope.arithmetic import softmax
from attnscope.errors import InputError
from attnscope.results.steps import WRONG, Matrix, Step
from attnscope.verbs.sdpa.result import Mistake, Worked, apart

_SAME = 1e-12  # of the largest number: what two orders of adding up the same may differ by

Arrays = Mapping[str, Matrix]
Pairs = Float[np.ndarray, "query column"]


class Impossible(Exception):
    """The mistake does not even give numbers; says why."""


def mistaken(result: Worked, name: str) -> Worked:
    """`result` with the mistake `name` beside it; the proofs are those of what is right.

    Raises `InputError` for a mistake that there is not, and where the example has no place for it.
    """
    if name not in MISTAKES:
        raise InputError(f"no mistake '{name}': {', '.join(MISTAKES)}")
    (what, why, made_by), arrays = MISTAKES[name], {step.key: step.matrix for step in result.steps}
    if "weights" not in arrays:
        raise InputError(f"{name}: there is no softmax here that could go wrong")
    steps = list[Step]()
    try:
        steps = made_by(arrays)
        differs = _differences(arrays, {step.key: step.matrix for step in steps})
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    except Impossible as error:
        differs = [f"it cannot be done: {error}"]
    wrong = (
        replace(step, key=WRONG + step.key, matrix=replace(step.matrix, symbol=f"wrong {step.matrix.symbol}"))
        for step in steps
    )
    mistake = Mistake(name, what, why, tuple(differs))
    return replace(result, steps=(*result.steps, *wrong), mistake=mistake)


def _differences(right: Arrays, wrong: Arrays) -> list[str]:
    phrases = []
    for key in (key for key in ("weights", "output") if key in wrong):
        expected, actual = right[key].values, wrong[key].values
        off = apart(expected, actual)
        if not off.max() > _SAME * max(float(np.nanmax(np.abs(expected))), 1.0):
            continue
        row, column = (int(place) for place in np.unravel_index(off.argmax(), off.shape))
        far = f"up to {off.max():.4g} off" if np.isfinite(off.max()) else "no number"
        phrases.append(
            f"{key} {far}, at {right[key].rows.names[row]}, {right[key].columns.names[column]} "
            f"({actual[row, column]:.4g} where {expected[row, column]:.4g} is right)"
        )
        answered = ~np.isnan(expected).any(axis=1)
        other = int((expected[answered].argmax(1) != np.nan_to_num(actual[answered]).argmax(1)).sum())
        if key == "weights" and other:
            phrases.append(f"the strongest key is another one for {other} of {answered.sum()} queries")
    one = "q" in right and len(right["q"].columns.names) == 1 and "scaled" in right
    return phrases or ["nothing: here it makes the same numbers" + (" (√d_k = 1)" if one else "")]


def _logits(arrays: Arrays, *mask: str) -> Matrix:
    """What enters the softmax, before the mask unless that is named."""
    return next(arrays[key] for key in (*mask, "biased", "capped", "scaled", "scores") if key in arrays)


def _softmaxed(logits: Pairs) -> Pairs:
    return np.asarray(softmax(torch.from_numpy(np.ascontiguousarray(logits))[None])[0].numpy())


def _mixed(
    arrays: Arrays, weights: Pairs, formula: str, like: Matrix | None = None, *, sums: bool = True
) -> list[Step]:
    matrix = replace(like or arrays["weights"], symbol="weights", values=weights)
    steps = [Step("weights", matrix, formula, weights=sums)]
    if "v" in arrays:
        values = np.nan_to_num(weights) @ arrays["v"].values
        steps.append(Step("output", replace(arrays["output"], values=values), "wrong weights V"))
    return steps


def _scored(arrays: Arrays, scores: Matrix, formula: str) -> list[Step]:
    steps, logits, source = [Step("scores", scores, formula)], scores.values, "wrong scores"
    if "scaled" in arrays:
        logits, source = logits / math.sqrt(len(arrays["q"].columns.names)), "wrong scaled"
        steps.append(Step("scaled", replace(scores, symbol="scaled", values=logits), "wrong scores / √d_k"))
    return steps + _mixed(arrays, _softmaxed(_masked(arrays, logits)), f"softmax({source})", scores)


def _masked(arrays: Arrays, logits: Pairs) -> Pairs:
    """Where the right ones are masked too."""
    if {"capped", "biased"} & set(arrays):
        raise InputError("the scores are capped or have something added to them")
    return np.where(_hidden(arrays), -np.inf, logits) if "masked" in arrays else logits


def _products(arrays: Arrays) -> tuple[Matrix, Matrix]:
    if "q" not in arrays or "additive_q" in arrays:
        raise InputError("there is no Q Kᵀ here")
    return arrays["q"], arrays["k"]


def _no_transpose(arrays: Arrays) -> list[Step]:
    q, k = _products(arrays)
    size, keys = len(q.columns.names), len(k.values)
    if size != keys:
        raise Impossible(
            f"Q is {q.shape} and K is {k.shape}, and d_k = {size} columns of Q meet {keys} rows of K"
        )
    return _scored(arrays, Matrix("scores", q.values @ k.values, q.rows, k.columns), "Q K")


def _exchanged(arrays: Arrays) -> list[Step]:
    q, k = _products(arrays)
    if (queries := len(q.values)) != (keys := len(k.values)):
        raise Impossible(f"K Qᵀ is {keys} x {queries}: {queries} weights in a row, for {keys} keys")
    return _scored(arrays, Matrix("scores", k.values @ q.values.T, k.rows, q.rows), "K Qᵀ")


def _rescaled(arrays: Arrays, power: int) -> list[Step]:
    """Divided by so many times d_k."""
    if "scaled" not in arrays or "q" not in arrays:
        raise InputError("nothing is scaled here")
    logits = arrays["scores"].values / len(arrays["q"].columns.names) ** power
    return _mixed(arrays, _softmaxed(_masked(arrays, logits)), f"softmax(scores{' / d_k' * power})")


def _softmax_axis(arrays: Arrays) -> list[Step]:
    return _mixed(
        arrays, _softmaxed(_logits(arrays, "masked").values.T).T, "softmax over the queries of each key"
    )


def _no_softmax(arrays: Arrays) -> list[Step]:
    logits = _logits(arrays, "masked")
    weights = np.where(np.isneginf(logits.values), 0.0, logits.values)
    return _mixed(arrays, weights, f"{logits.symbol}, as they are", sums=False)


def _hidden(arrays: Arrays) -> np.ndarray:
    if "masked" not in arrays:
        raise InputError("nothing is masked here (--causal masks)")
    return np.isneginf(arrays["masked"].values)


def _mask_after(arrays: Arrays) -> list[Step]:
    hidden, before = _hidden(arrays), _logits(arrays)
    weights = np.where(hidden, 0.0, _softmaxed(before.values))
    return _mixed(arrays, weights, f"softmax({before.symbol}), then 0 for masked keys")


def _mask_with_zero(arrays: Arrays) -> list[Step]:
    hidden, before = _hidden(arrays), _logits(arrays)
    weights = _softmaxed(np.where(hidden, 0.0, before.values))
    return _mixed(arrays, weights, f"softmax({before.symbol}, 0 for masked keys)")


# what is done, why that is wrong, and the steps that it makes of the right ones
MISTAKES: dict[str, tuple[str, str, Callable[[Arrays], list[Step]]]] = {
    "no-transpose": (
        "K not transposed: Q K in place of Q Kᵀ",
        "a score is the product of a query with one key, a row of K; Q K takes a column of K, one dimension "
        "of all keys, and only where K happens to be square",
        _no_transpose,
    ),
    "no-scale": (
        "not divided by √d_k",
        "scores of long vectors spread as √d_k, and the softmax of widely spread scores sees one key only "
        "(--example why-scale)",
        partial(_rescaled, power=0),
    ),
    "scale-by-d": (
        "divided by d_k in place of √d_k",
        "the spread of a product of d_k terms grows as √d_k: divided by d_k the scores shrink the more the "
        "longer the vectors are, and all keys weigh nearly alike",
        partial(_rescaled, power=1),
    ),
    "softmax-axis": (
        "softmax along the wrong axis",
        "each query shares out its attention over the keys, so every row sums to 1; along the other axis "
        "every column does, and the queries compete for each key",
        _softmax_axis,
    ),
    "no-softmax": (
        "no softmax: scores used as weights",
        "weights are positive and sum to 1, so that the output is a mean of the values; scores are neither",
        _no_softmax,
    ),
    "exchanged": (
        "queries and keys exchanged: K Qᵀ in place of Q Kᵀ",
        "row i then asks with key i, so that the weights are those of other words: the scores are transposed "
        "before the softmax, which is taken by row",
        _exchanged,
    ),
    "mask-after-softmax": (
        "masked after the softmax",
        "masked keys have taken their share by then: what remains of a row no longer sums to 1",
        _mask_after,
    ),
    "mask-with-zero": (
        "masked scores set to 0 in place of −∞",
        "e⁰ is 1: a score of 0 takes its share of the weights as any other does, only e to the −∞ is 0",
        _mask_with_zero,
    ),
}
