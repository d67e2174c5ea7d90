"""From queries and keys, or from given scores, to what enters the softmax: its steps and its proof.

The first cell of a step is taken apart into the numbers that it is made of.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.arithmetic import Operands, Stages, additive_scores, attend, project, weigh
from attnscope.reference import EXACT, exact
from attnscope.results import Certificate
from attnscope.results.worked import Cell, Matrix, Step
from attnscope.vocabulary import Scoring
from attnscope.worked.proof import LOOP, prove_additive, prove_dot

Pairs = Float[np.ndarray, "query key"]


@dataclass(frozen=True, eq=False)
class Beside:
    """What enters a softmax beside the products of Q and K.

    `scale` is None where the scoring says it; `allowed` is False where a key is masked (None: nowhere).

    `added` are terms by name, added to the scores once these are scaled and capped; `sink` is the logit of
    one more key without a value.
    """

    scale: float | None = None
    softcap: float | None = None
    added: Mapping[str, Pairs] = field(default_factory=dict)
    allowed: Bool[np.ndarray, "query key"] | None = None
    sink: float | None = None

    def factor(self, scoring: Scoring, size: int) -> float:
        """What the scores of vectors of `size` are multiplied by."""
        if self.scale is not None:
            return self.scale
        return 1 / math.sqrt(size) if scoring is Scoring.SCALED_DOT else 1.0

    def mask(self, queries: int, keys: int, causal: bool) -> Bool[Tensor, "query key"] | None:
        """Where a query may look, with the causal mask where there is one; None for everywhere."""
        if self.allowed is None and not causal:
            return None
        seen = np.ones((queries, keys), dtype=bool) if self.allowed is None else self.allowed
        return torch.from_numpy(np.tril(seen) if causal else seen)


def product_cell(
    left: Matrix, right: Matrix, bias: Matrix | None = None, *, transposed: bool = False
) -> Cell:
    """A row of `left` times a column of `right`, or times a row of it where it is `transposed`."""
    factors = right.values[0] if transposed else right.values[:, 0]
    terms = _floats(zip(left.values[0], factors, strict=True))
    return Cell(0, 0, "products", terms if bias is None else (*terms, (float(bias.values[0, 0]),)))


def quotient_cell(scores: Matrix, divisor: float) -> Cell:
    return Cell(0, 0, "quotient", ((float(scores.values[0, 0]), divisor),))


def tanh_cell(query: Matrix, key: Matrix, vector: Matrix) -> Cell:
    """The products of `vector` with the tanh of a row of `query` plus a row of `key`."""
    arguments = query.values[0] + key.values[0]
    return Cell(0, 0, "tanh", _floats(zip(vector.values[0], arguments, strict=True)))


def softmax_cell(logits: Matrix, sink: float | None = None) -> Cell | None:
    """The first pair that is allowed, its logit before those of the other keys that its query may look at.

    A sink is one more of them. None where no query has a key.
    """
    seen = np.argwhere(np.isfinite(logits.values))
    if not len(seen):
        return None
    row, column = seen[0].tolist()
    own = logits.values[row]
    others = np.delete(own, column)
    every = [own[column], *others[np.isfinite(others)], *([] if sink is None else [sink])]
    return Cell(row, column, "softmax", _floats((logit,) for logit in every))


def _floats(terms: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(number) for number in term) for term in terms)


Arrays = Mapping[str, Matrix]
Allowed = Bool[Tensor, "query key"] | None


@dataclass(frozen=True, eq=False)
class Scored:
    """The steps to the softmax, all stages, the name of what enters it, and what proves it."""

    steps: list[Step]
    stages: Stages
    source: str
    proof: tuple[str, Certificate]


def tensor(matrix: Matrix) -> Float[Tensor, "row column"]:
    return exact(torch.from_numpy(matrix.values))


def values(arrays: Arrays, keys: int) -> Float[Tensor, "1 key value_dim"]:
    """V, or the identity in its place where there is none: the output is then the weights."""
    return (tensor(arrays["v"]) if "v" in arrays else torch.eye(keys, dtype=EXACT))[None]


def pairs(symbol: str, values: Float[Tensor, "1 query key"], like: Matrix) -> Matrix:
    """A matrix of all pairs of query and key, named as `like` is."""
    return replace(like, symbol=symbol, values=values[0].numpy())


def dot_scored(arrays: Arrays, allowed: Allowed, scoring: Scoring, beside: Beside) -> Scored:
    """The scores of dot products, scaled by 1/sqrt(d_k) unless it is said otherwise."""
    q, k = arrays["q"], arrays["k"]
    operands = Operands(tensor(q)[None], tensor(k)[None], values(arrays, len(k.values)), 1.0)
    scores = Matrix("scores", (operands.q @ operands.k.mT)[0].numpy(), q.rows, k.rows)
    meaning = "how well each key fits each query"
    first = Step("scores", scores, "Q Kᵀ", meaning, cell=product_cell(q, k, transposed=True))
    size = len(q.columns.names)
    scale = beside.factor(scoring, size)
    shown = scoring is Scoring.SCALED_DOT or scale != 1
    return _to_the_softmax([first], operands.but(scale=scale), allowed, beside, size if shown else None)


def given_scored(arrays: Arrays, allowed: Allowed, beside: Beside) -> Scored:
    """Scores as they were given: those of queries that are their rows with keys that are the axes."""
    scores = arrays["scores"]
    rows = np.where(np.isfinite(scores.values), scores.values, 0.0)
    identity = torch.eye(rows.shape[1], dtype=EXACT)
    v = values(arrays, rows.shape[1])
    operands = Operands(torch.from_numpy(rows)[None], identity[None], v, beside.scale or 1.0)
    size = None if beside.scale is None else round(beside.scale**-2)
    masked = None if np.isfinite(scores.values).all() else np.isfinite(scores.values)
    first = Step("scores", scores, meaning=scores.reading, allowed=masked)
    return _to_the_softmax([first], operands, allowed, beside, size)


def _to_the_softmax(
    steps: list[Step], operands: Operands, allowed: Allowed, beside: Beside, size: int | None
) -> Scored:
    """Scale (of vectors of `size`, None for no step), cap, added terms and mask, each where there is one."""
    scores = steps[0].matrix
    terms = {name: torch.from_numpy(values)[None] for name, values in beside.added.items()}
    operands = operands.but(
        softcap=beside.softcap,
        bias=sum(terms.values()) if terms else None,
        allowed=None if allowed is None else allowed[None],
        sinks=None if beside.sink is None else torch.tensor([beside.sink], dtype=EXACT),
    )
    stages, source = attend(operands), "scores"
    if size is not None:
        steps.append(_scaled(scores, stages, operands.scale, size))
        source = "scaled"
    if beside.softcap is not None:
        formula = f"{beside.softcap:.4g} · tanh({source} / {beside.softcap:.4g})"
        steps.append(Step("capped", pairs("capped", stages.capped, scores), formula))
        source = "capped"
    if terms:
        steps += [Step(f"term {name}", pairs(name, values, scores)) for name, values in terms.items()]
        formula = " + ".join((source, *terms))
        steps.append(Step("biased", pairs("biased", stages.biased, scores), formula))
        source = "biased"
    proof = prove_dot(operands, tuple(terms.items()))
    return _masked(Scored(steps, stages, source, proof), scores, allowed)


def _scaled(scores: Matrix, stages: Stages, scale: float, size: int) -> Step:
    usual = math.isclose(scale, 1 / math.sqrt(size))
    formula = f"scores / √d_k = scores / {math.sqrt(size):.4g}" if usual else f"scores · {scale:.4g}"
    cell = quotient_cell(scores, math.sqrt(size)) if usual else None
    return Step("scaled", pairs("scaled", stages.scaled, scores), formula, cell=cell)


def _masked(scored: Scored, scores: Matrix, allowed: Allowed) -> Scored:
    if allowed is None or bool((scores.values == -np.inf)[~allowed.numpy()].all()):
        return scored
    later = bool(torch.equal(allowed, torch.ones_like(allowed).tril()))
    formula = f"{scored.source}, −∞ for {'later' if later else 'masked'} keys"
    matrix = pairs("masked", scored.stages.masked, scores)
    return replace(
        scored,
        steps=[*scored.steps, Step("masked", matrix, formula, allowed=allowed.numpy())],
        source="masked",
    )


def additive_scored(arrays: Arrays, allowed: Allowed) -> Scored:
    """The scores of Bahdanau et al. (2015): a . tanh(q Aq + k Ak) for every query and key."""
    steps = []
    for letter in "qk":
        rows, weight = arrays[letter], arrays[f"additive_w{letter}"]
        symbol = f"{letter.upper()}A"
        matrix = Matrix(symbol, project(tensor(rows), tensor(weight)).numpy(), rows.rows, weight.columns)
        formula = f"{rows.symbol} {weight.symbol}"
        steps.append(Step(f"additive_{letter}", matrix, formula, cell=product_cell(rows, weight)))
    query, key = (step.matrix for step in steps)
    vector = arrays["additive_v"]
    raw = additive_scores(tensor(query)[None], tensor(key)[None], tensor(vector)[0])
    v = values(arrays, len(key.values))
    stages = weigh(raw, v, allowed=None if allowed is None else allowed[None])
    scores = Matrix("scores", raw[0].numpy(), query.rows, key.rows)
    meaning = "for every query (row of QA) and key (row of KA)"
    steps.append(Step("scores", scores, "a · tanh(QA + KA)", meaning, cell=tanh_cell(query, key, vector)))
    own = {name: arrays[name].values for name in ("q", "k", "additive_wq", "additive_wk", "additive_v")}
    proof = LOOP, prove_additive(stages, own | {"v": v[0].numpy()}, allowed is not None)
    return _masked(Scored(steps, stages, "scores", proof), scores, allowed)
