"""Computes attention on arrays or of a stored head, with every step named and the result certified."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.arithmetic import Operands, Stages, additive_scores, attend, project
from attnscope.errors import InputError
from attnscope.reference import EXACT, exact
from attnscope.results.steps import Axis, Cell, Given, Matrix, Step
from attnscope.verbs.sdpa.given import given_array, named
from attnscope.verbs.sdpa.proof import Allowed, excused, prove_additive, prove_dot
from attnscope.verbs.sdpa.result import Worked
from attnscope.vocabulary import Scoring

FORMULAS = {
    Scoring.DOT: ("dot-product attention", "softmax(Q Kᵀ)"),
    Scoring.SCALED_DOT: ("scaled dot-product attention", "softmax(Q Kᵀ / √d_k)"),
    Scoring.ADDITIVE: ("additive attention", "softmax(a · tanh(Q Aq + K Ak))"),
}
_PRODUCTS = (Scoring.SCALED_DOT, Scoring.DOT)
Arrays = Mapping[str, Matrix]


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
    scale: float | None = None,
    softcap: float | None = None,
    added: Mapping[str, Float[np.ndarray, "query key"]] | None = None,
    allowed: Bool[np.ndarray, "query key"] | None = None,
    sink: float | None = None,
) -> Worked:
    """Compute attention on `given` arrays (keys as in `verbs.sdpa.given`) in float64, by certified steps.

    Besides the products the softmax takes a `scale` (None: as `scoring` says), then a `softcap`, then named
    terms `added` to the scores, a mask `allowed` (None: all keys), and a `sink`: the logit of one more key
    without a value.

    Without V there are weights and no output. Given scores replace Q and K; -inf among them is a masked key.
    Under a `causal` mask query i sees keys 0 to i, even with more keys than queries: aligned at the top left,
    as in torch. Raises `InputError` for arrays that do not fit together and for numbers too large to
    multiply.
    """
    start = named(given, names or {}, scoring)
    steps = [Step(key, each, meaning=each.reading) for key, each in start.items() if key != "scores"]
    steps += [_projected(start, letter) for letter in "qkv" if "x" in start]
    arrays = start | {step.key: step.matrix for step in steps}
    own = "scores" in arrays
    additive, usual = scoring is Scoring.ADDITIVE and not own, 1.0
    steps += _to_scores(arrays, additive)
    scores = steps[-1].matrix
    queries, keys = scores.values.shape
    finite = np.isfinite(scores.values)
    masks = [] if allowed is None else [allowed]
    masks += [np.tri(queries, keys, dtype=bool)] if causal else []
    masks += [] if not own or finite.all() else [finite]
    seen = torch.from_numpy(np.logical_and.reduce(masks)) if masks else None
    terms = {name: torch.from_numpy(values)[None] for name, values in (added or {}).items()}
    # scores that are not dot products enter as queries, with the identity as keys; without a V the identity
    # stands for it, and the output is then the weights
    axes = torch.eye(keys, dtype=EXACT)
    if own or additive:
        q, k = torch.from_numpy(np.where(np.isneginf(scores.values), 0.0, scores.values)), axes
        size = round(scale**-2) if own and scale else 0
    else:
        q, k, size = _tensor(arrays["q"]), _tensor(arrays["k"]), len(arrays["q"].columns.names)
        usual = 1 / math.sqrt(size) if scoring is Scoring.SCALED_DOT else 1.0
        size = size if scoring is Scoring.SCALED_DOT or scale not in (None, 1) else 0
    operands = Operands(
        q[None],
        k[None],
        (_tensor(arrays["v"]) if "v" in arrays else axes)[None],
        usual if scale is None else scale,
        softcap=softcap,
        bias=reduce(torch.add, terms.values()) if terms else None,
        allowed=None if seen is None else seen[None],
        sinks=None if sink is None else torch.tensor([sink], dtype=EXACT),
    )
    stages = attend(operands)
    answered = ~(stages.masked == -torch.inf).all(-1)  # a query without keys gives NaN, but no overflow
    if not all(bool(torch.isfinite(each[answered]).all()) for each in (stages.scores, stages.output)):
        raise InputError("the numbers are too large: products of them do not fit into float64")
    steps += _to_the_softmax(scores, stages, operands, terms, size)
    steps += _answered(arrays, scores, stages, seen, sink, steps[-1].key)
    if additive:
        against, certificate = prove_additive(stages, arrays, operands)
    else:
        against, certificate = prove_dot(operands, tuple(terms.items()))
    certificate, same = excused(certificate, arrays, seen, sink is None)
    if causal and queries != keys:
        notes += (
            f"causal mask, {queries} x {keys} (queries x keys): query i may look at keys 0 to i, aligned at "
            "the top left as in torch",
        )
    scaled = "" if scale is None else " / √d_k"
    title, formula = ("weights from scores", f"softmax(scores{scaled})") if own else FORMULAS[scoring]
    return Worked(
        name=name,
        title=title,
        formula=formula + (" V" if "v" in arrays else ""),
        steps=tuple(steps),
        scoring=None if own else scoring,
        causal=causal,
        notes=notes + same,
        warnings=tuple(  # a square array may be meant transposed
            f"{each.symbol} is square and cannot be told from its transpose: read as {each.reading}"
            for each in start.values()
            if each.values.shape[0] == each.values.shape[1] > 1
        ),
        proofs=((against, certificate),),
    )


def _tensor(matrix: Matrix) -> Float[Tensor, "row column"]:
    return exact(torch.from_numpy(matrix.values))


def _pairs(symbol: str, values: Float[Tensor, "1 query key"], like: Matrix) -> Matrix:
    """A query-by-key matrix with the axes of `like`."""
    return replace(like, symbol=symbol, values=values[0].numpy())


Operation = Literal["products", "tanh", "quotient", "softmax"]


def _cell(operation: Operation, terms: Iterable[Iterable[float]], row: int = 0, column: int = 0) -> Cell:
    return Cell(row, column, operation, tuple(tuple(map(float, term)) for term in terms))


def _product(
    key: str,
    symbol: str,
    left: Matrix,
    right: Matrix,
    formula: str,
    meaning: str = "",
    bias: Matrix | None = None,
) -> Step:
    """Step `left @ right + bias`, with the sum of its first cell spelled out."""
    offset = None if bias is None else _tensor(bias)[0]
    values = project(_tensor(left), _tensor(right), offset).numpy()
    terms: list[tuple[float, ...]] = [*zip(left.values[0], right.values[:, 0], strict=True)]
    terms += [] if bias is None else [(bias.values[0, 0],)]
    matrix = Matrix(symbol, values, left.rows, right.columns)
    return Step(key, matrix, formula, meaning, cell=_cell("products", terms))


def _projected(given: Arrays, letter: str) -> Step:
    x, weight, bias = given["x"], given[f"w{letter}"], given.get(f"b{letter}")
    formula = f"X W{letter}" + (f" + b{letter}" if bias else "")
    rows = Axis("query" if letter == "q" else "key", x.rows.names, x.rows.symbol)
    return _product(letter, letter.upper(), replace(x, rows=rows), weight, formula, bias=bias)


def _to_scores(arrays: Arrays, additive: bool) -> list[Step]:
    """Steps up to the scores: as given, dot products, or a . tanh(q Aq + k Ak) (Bahdanau et al. 2015)."""
    if "scores" in arrays:
        given, finite = arrays["scores"], np.isfinite(arrays["scores"].values)
        return [Step("scores", given, meaning=given.reading, allowed=None if finite.all() else finite)]
    q, k = arrays["q"], arrays["k"]
    if not additive:
        scores = Matrix("scores", (_tensor(q)[None] @ _tensor(k)[None].mT)[0].numpy(), q.rows, k.rows)
        cell = _cell("products", zip(q.values[0], k.values[0], strict=True))
        return [Step("scores", scores, "Q Kᵀ", "how well each key fits each query", cell=cell)]
    steps = []
    for letter, rows in (("q", q), ("k", k)):
        weight, symbol = arrays[f"additive_w{letter}"], f"{letter.upper()}A"
        steps.append(_product(f"additive_{letter}", symbol, rows, weight, f"{rows.symbol} {weight.symbol}"))
    query, key, vector = steps[0].matrix, steps[1].matrix, arrays["additive_v"]
    raw = additive_scores(_tensor(query)[None], _tensor(key)[None], _tensor(vector)[0])
    scores = Matrix("scores", raw[0].numpy(), query.rows, key.rows)
    meaning = "for every query (row of QA) and key (row of KA)"
    cell = _cell("tanh", zip(vector.values[0], query.values[0] + key.values[0], strict=True))
    return [*steps, Step("scores", scores, "a · tanh(QA + KA)", meaning, cell=cell)]


def _to_the_softmax(
    scores: Matrix, stages: Stages, operands: Operands, terms: Mapping[str, Tensor], size: int
) -> Iterator[Step]:
    """Steps between scores and softmax: scale (by `size`, 0: none), soft cap, added terms, mask."""
    source, allowed, cap = "scores", operands.allowed, operands.softcap
    if size:
        root = math.sqrt(size)
        usual = math.isclose(operands.scale, 1 / root)
        formula = f"scores / √d_k = scores / {root:.4g}" if usual else f"scores · {operands.scale:.4g}"
        cell = _cell("quotient", [(scores.values[0, 0], root)]) if usual else None
        yield Step("scaled", _pairs("scaled", stages.scaled, scores), formula, cell=cell)
        source = "scaled"
    if cap is not None:
        formula = f"{cap:.4g} · tanh({source} / {cap:.4g})"
        yield Step("capped", _pairs("capped", stages.capped, scores), formula)
        source = "capped"
    if terms:
        yield from (Step(f"term {name}", _pairs(name, values, scores)) for name, values in terms.items())
        yield Step("biased", _pairs("biased", stages.biased, scores), " + ".join((source, *terms)))
        source = "biased"
    if allowed is not None and not bool((scores.values == -np.inf)[~allowed[0].numpy()].all()):
        hidden = "later" if torch.equal(allowed, torch.ones_like(allowed).tril()) else "masked"
        matrix, formula = _pairs("masked", stages.masked, scores), f"{source}, −∞ for {hidden} keys"
        yield Step("masked", matrix, formula, allowed=allowed[0].numpy())


def _answered(
    arrays: Arrays, scores: Matrix, stages: Stages, allowed: Allowed, sink: float | None, source: str
) -> list[Step]:
    """Steps from the softmax on: weights, output with a V, and its projection by Wo.

    The spelled-out cell is the first visible pair: its logit, those of the other keys, and the sink.
    """
    logits, cell = stages.masked[0].numpy(), None
    if len(seen := np.argwhere(np.isfinite(logits))):
        row, column = seen[0].tolist()
        others = np.delete(logits[row], column)
        every = [logits[row, column], *others[np.isfinite(others)], *([] if sink is None else [sink])]
        cell = _cell("softmax", ((logit,) for logit in every), row, column)
    weights = Step(
        "weights",
        _pairs("weights", stages.weights, scores),
        f"softmax({source}{'' if sink is None else f', sink {sink:.4g}'})",
        "every row sums to " + ("1" if sink is None else "less than 1: the sink has the rest"),
        weights=True,
        allowed=None if allowed is None else allowed.numpy(),
        cell=cell,
    )
    if "v" not in arrays:
        return [weights]
    output = _product(
        "output", "output", weights.matrix, arrays["v"], "weights V", "the values mixed by weight"
    )
    output = replace(output, matrix=replace(output.matrix, values=stages.output[0].numpy()))
    if "wo" not in arrays:
        return [weights, output]
    return [
        weights,
        output,
        _product("y", "Y", output.matrix, arrays["wo"], "output Wo", "back to the width of X"),
    ]
