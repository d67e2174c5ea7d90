"""Common mistakes in attention: the arrays of an example with one mistake, the differences, and why."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float

from attnscope.arithmetic import softmax
from attnscope.errors import InputError
from attnscope.results.steps import WRONG, Matrix, Step
from attnscope.verbs.sdpa.result import Mistake, Worked, apart

_SAME = 1e-12  # of the largest number: most difference of two orders of summation

Arrays = Mapping[str, Matrix]
Pairs = Float[np.ndarray, "query column"]


class Impossible(Exception):
    """Raised where a mistake gives no numbers at all; the message says why."""


MISTAKES = {  # name: what is done, why it is wrong
    "no-transpose": (
        "K not transposed: Q K in place of Q Kᵀ",
        "a score is the product of a query with one key, a row of K; Q K takes a column of K, one dimension "
        "of all keys, and only where K happens to be square",
    ),
    "no-scale": (
        "not divided by √d_k",
        "scores of long vectors spread as √d_k, and the softmax of widely spread scores sees one key only "
        "(--example why-scale)",
    ),
    "scale-by-d": (
        "divided by d_k in place of √d_k",
        "the spread of a product of d_k terms grows as √d_k: divided by d_k the scores shrink the more the "
        "longer the vectors are, and all keys weigh nearly alike",
    ),
    "softmax-axis": (
        "softmax along the wrong axis",
        "each query shares out its attention over the keys, so every row sums to 1; along the other axis "
        "every column does, and the queries compete for each key",
    ),
    "no-softmax": (
        "no softmax: scores used as weights",
        "weights are positive and sum to 1, so that the output is a mean of the values; scores are neither",
    ),
    "exchanged": (
        "queries and keys exchanged: K Qᵀ in place of Q Kᵀ",
        "row i then asks with key i, so that the weights are those of other words: the scores are transposed "
        "before the softmax, which is taken by row",
    ),
    "mask-after-softmax": (
        "masked after the softmax",
        "masked keys have taken their share by then: what remains of a row no longer sums to 1",
    ),
    "mask-with-zero": (
        "masked scores set to 0 in place of −∞",
        "e⁰ is 1: a score of 0 takes its share of the weights as any other does, only e to the −∞ is 0",
    ),
}


def mistaken(result: Worked, name: str) -> Worked:
    """Add the steps of the mistake `name` to `result`; its proofs stay those of the right steps.

    Raises `InputError` for an unknown mistake, and where the example cannot have it.
    """
    if name not in MISTAKES:
        raise InputError(f"no mistake '{name}': {', '.join(MISTAKES)}")
    arrays, steps = {step.key: step.matrix for step in result.steps}, list[Step]()
    if "weights" not in arrays:
        raise InputError(f"{name}: there is no softmax here that could go wrong")
    try:
        steps = _made(name, arrays)
        differs = tuple(_differences(arrays, {step.key: step.matrix for step in steps}))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    except Impossible as error:
        differs = (f"it cannot be done: {error}",)
    one = "q" in arrays and len(arrays["q"].columns.names) == 1 and "scaled" in arrays
    differs = differs or ("nothing: here it makes the same numbers" + (" (√d_k = 1)" if one else ""),)
    wrong = (
        replace(step, key=WRONG + step.key, matrix=replace(step.matrix, symbol=f"wrong {step.matrix.symbol}"))
        for step in steps
    )
    return replace(result, steps=(*result.steps, *wrong), mistake=Mistake(name, *MISTAKES[name], differs))


def _made(name: str, arrays: Arrays) -> list[Step]:
    """Wrong steps: from other scores, or from other weights of the right scores."""
    if name in ("no-transpose", "exchanged"):
        scores, formula = _other_scores(name, arrays)
        steps, logits, source = [Step("scores", scores, formula)], scores.values, "wrong scores"
        if "scaled" in arrays:
            logits, source = logits / math.sqrt(len(arrays["q"].columns.names)), "wrong scaled"
            steps.append(
                Step("scaled", replace(scores, symbol="scaled", values=logits), "wrong scores / √d_k")
            )
        like, weights, formula = scores, _softmaxed(_masked(arrays, logits)), f"softmax({source})"
    else:
        steps, like, (weights, formula) = [], arrays["weights"], _other_weights(name, arrays)
    matrix = replace(like, symbol="weights", values=weights)
    steps.append(Step("weights", matrix, formula, weights=name != "no-softmax"))
    if "v" in arrays:
        values = np.nan_to_num(weights) @ arrays["v"].values
        steps.append(Step("output", replace(arrays["output"], values=values), "wrong weights V"))
    return steps


def _other_scores(name: str, arrays: Arrays) -> tuple[Matrix, str]:
    if "q" not in arrays or "additive_q" in arrays:
        raise InputError("there is no Q Kᵀ here")
    q, k = arrays["q"], arrays["k"]
    queries, keys, size = len(q.values), len(k.values), len(q.columns.names)
    if name == "no-transpose":
        if size != keys:
            raise Impossible(
                f"Q is {q.shape} and K is {k.shape}, and d_k = {size} columns of Q meet {keys} rows of K"
            )
        return Matrix("scores", q.values @ k.values, q.rows, k.columns), "Q K"
    if queries != keys:
        raise Impossible(f"K Qᵀ is {keys} x {queries}: {queries} weights in a row, for {keys} keys")
    return Matrix("scores", k.values @ q.values.T, k.rows, q.rows), "K Qᵀ"


def _other_weights(name: str, arrays: Arrays) -> tuple[Pairs, str]:
    if name in ("no-scale", "scale-by-d"):
        if "scaled" not in arrays or "q" not in arrays:
            raise InputError("nothing is scaled here")
        logits, by = arrays["scores"].values, name == "scale-by-d"
        logits = logits / len(arrays["q"].columns.names) ** by
        return _softmaxed(_masked(arrays, logits)), f"softmax(scores{' / d_k' * by})"
    usual = ("biased", "capped", "scaled", "scores")
    before, last = (
        next(arrays[key] for key in order if key in arrays) for order in (usual, ("masked", *usual))
    )
    if name == "softmax-axis":
        return _softmaxed(last.values.T).T, "softmax over the queries of each key"
    if name == "no-softmax":
        return np.where(np.isneginf(last.values), 0.0, last.values), f"{last.symbol}, as they are"
    if "masked" not in arrays:
        raise InputError("nothing is masked here (--causal masks)")
    hidden = np.isneginf(arrays["masked"].values)
    if name == "mask-after-softmax":
        weights = np.where(hidden, 0.0, _softmaxed(before.values))
        return weights, f"softmax({before.symbol}), then 0 for masked keys"
    weights = _softmaxed(np.where(hidden, 0.0, before.values))
    return weights, f"softmax({before.symbol}, 0 for masked keys)"


def _softmaxed(logits: Pairs) -> Pairs:
    return np.asarray(softmax(torch.from_numpy(np.ascontiguousarray(logits))[None])[0].numpy())


def _masked(arrays: Arrays, logits: Pairs) -> Pairs:
    """Mask `logits` where the right scores are masked."""
    if {"capped", "biased"} & set(arrays):
        raise InputError("the scores are capped or have something added to them")
    return np.where(np.isneginf(arrays["masked"].values), -np.inf, logits) if "masked" in arrays else logits


def _differences(right: Arrays, wrong: Arrays) -> Iterator[str]:
    for key in (key for key in ("weights", "output") if key in wrong):
        expected, actual = right[key].values, wrong[key].values
        off = apart(expected, actual)
        if not off.max() > _SAME * max(float(np.nanmax(np.abs(expected))), 1.0):
            continue
        row, column = (int(place) for place in np.unravel_index(off.argmax(), off.shape))
        far = f"up to {off.max():.4g} off" if np.isfinite(off.max()) else "no number"
        yield (
            f"{key} {far}, at {right[key].rows.names[row]}, {right[key].columns.names[column]} "
            f"({actual[row, column]:.4g} where {expected[row, column]:.4g} is right)"
        )
        answered = ~np.isnan(expected).any(axis=1)
        other = int((expected[answered].argmax(1) != np.nan_to_num(actual[answered]).argmax(1)).sum())
        if key == "weights" and other:
            yield f"the strongest key is another one for {other} of {answered.sum()} queries"
