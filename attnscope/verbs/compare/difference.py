"""Two runs head by head: how far each query's weights lie apart, beside rounding and two other heads.

How alike two vectors are, and how far apart two rows of weights, head by head, stands at the end.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from attnscope.analysis.controls import jensen_shannon
from attnscope.analysis.heads.view import head_in
from attnscope.errors import InputError, listed
from attnscope.results import HeadView, HeadWeights, Kind, Overview, Provenance, Result, Verdict
from attnscope.tokens import Tokens
from attnscope.verbs.compare.difference_result import Difference, Run

Place = tuple[int, int]  # layer and head

Pair = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Matrices:
    """Weights by layer and head over the same tokens, with the tolerance of each (NaN for none)."""

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    weights: dict[Place, Float[np.ndarray, "query key"]]
    tolerances: dict[Place, float]
    provenance: Provenance
    verdict: Verdict


def matrices_in(result: Result, name: str) -> Matrices:
    """The weights in a result that was read from, or is called, `name`; `InputError` where it has none."""
    if isinstance(result, Overview):
        return _of_overview(result)
    if isinstance(result, HeadView):
        return _of_head(result, result.head)
    if (head := head_in(result)) is not None:
        return _of_head(head, head)
    raise InputError(f"{name} holds no weights of heads: give what `attnscope heads -o FILE.npz` wrote")


def _of_overview(result: Overview) -> Matrices:
    weights, tolerances = {}, {}
    for layer, row, proofs in zip(result.layers, result.dense_weights, result.certificates, strict=True):
        for head, each, proof in zip(result.heads, row, proofs, strict=True):
            weights[layer, head] = np.asarray(each, dtype=np.float64)
            tolerances[layer, head] = proof.weight_tolerance
    return Matrices(
        result.kind,
        result.query_tokens,
        result.key_tokens,
        weights,
        tolerances,
        result.provenance,
        result.verdict,
    )


def _of_head(shown: HeadWeights | HeadView, head: HeadWeights) -> Matrices:
    place = head.layer, head.head
    tolerance = head.certificate.weight_tolerance
    return Matrices(
        head.kind,
        shown.query_tokens,
        shown.key_tokens,
        {place: shown.weights},
        {place: tolerance if tolerance > 0 else math.nan},
        head.provenance,
        head.verdict,
    )


@dataclass(frozen=True)
class Picked:
    """Which heads of each side are held against each other: layers and heads, None for all there are.

    Where both sides name one head these two are compared, else heads of the same layer and number.
    """

    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    layer_b: int | None = None
    head_b: int | None = None


def difference(a: Matrices, b: Matrices, names: tuple[str, str], picked: Picked = Picked()) -> Difference:
    """What `b` gives more than `a`; `InputError` where they have not as many tokens, or no head in common."""
    for side in ("query", "key"):
        first, second = (len(getattr(each, f"{side}_tokens")) for each in (a, b))
        if first != second:
            raise InputError(
                f"the runs have {first} and {second} {side} tokens: weights are compared of as many tokens"
            )
    pairs = _pairs(a, b, picked)
    both = [(a.weights[i, j], b.weights[k, m]) for i, j, k, m in pairs]
    rows = np.array([_rows(*each) for each in both])
    divergences = np.array([_mean(each) for each in rows])
    shown = int(np.nan_to_num(divergences, nan=-1.0).argmax())
    return Difference(
        a=_run(a, names[0]),
        b=_run(b, names[1]),
        pairs=tuple(pairs),
        rows=rows,
        divergences=divergences,
        largest=np.array([_largest(*each) for each in both]),
        rounding=np.array([a.tolerances[i, j] + b.tolerances[k, m] for i, j, k, m in pairs]),
        unlike=_neighbours(a),
        shown=shown,
        before=both[shown][0],
        after=both[shown][1],
    )


def _pairs(a: Matrices, b: Matrices, picked: Picked) -> list[Pair]:
    mine = [place for place in a.weights if _is_picked(place, picked.layers, picked.heads)]
    if not mine:
        raise InputError(f"no such head in the first run: it has {_places(a)}")
    if picked.layer_b is None and picked.head_b is None:
        if len(a.weights) == len(b.weights) == 1:
            return [(*mine[0], *next(iter(b.weights)))]
        pairs = [(*place, *place) for place in mine if place in b.weights]
        if not pairs:
            raise InputError(f"no head is in both runs: the first has {_places(a)}, the second {_places(b)}")
        return pairs
    pairs = []
    for layer, head in mine:
        other = (
            layer if picked.layer_b is None else picked.layer_b,
            head if picked.head_b is None else picked.head_b,
        )
        if other not in b.weights:
            raise InputError(f"no L{other[0]} H{other[1]} in the second run: it has {_places(b)}")
        pairs.append((layer, head, *other))
    return pairs


def _is_picked(place: Place, layers: tuple[int, ...] | None, heads: tuple[int, ...] | None) -> bool:
    return (layers is None or place[0] in layers) and (heads is None or place[1] in heads)


def _places(run: Matrices) -> str:
    layers, heads = (sorted({place[i] for place in run.weights}) for i in (0, 1))
    return f"layers {listed(layers)}, heads {listed(heads)}"


def _run(side: Matrices, name: str) -> Run:
    return Run(name, side.kind, side.query_tokens, side.key_tokens, side.provenance, side.verdict)


def _rows(
    a: Float[np.ndarray, "query key"], b: Float[np.ndarray, "query key"]
) -> Float[np.ndarray, " query"]:
    return np.asarray(jensen_shannon(_with_rest(a), _with_rest(b)))


def _with_rest(weights: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query one_more"]:
    """Rows that sum to 1: what no key gets, as where a head has a sink, is one more key."""
    rest = np.maximum(1.0 - weights.sum(axis=1, keepdims=True), 0.0)
    return np.concatenate([weights, np.where(rest < 1e-9, 0.0, rest)], axis=1)


def _mean(values: Float[np.ndarray, " query"]) -> float:
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if numbers.size else math.nan


def _largest(a: Float[np.ndarray, "query key"], b: Float[np.ndarray, "query key"]) -> float:
    """Largest difference of a weight; infinite where only one of both has a row."""
    if (np.isnan(a) != np.isnan(b)).any():
        return math.inf
    off = np.abs(a - b)
    return float(np.nanmax(off)) if (~np.isnan(off)).any() else 0.0


def _neighbours(run: Matrices) -> float:
    """The median divergence of two heads of one layer whose numbers follow each other."""
    found = []
    for layer in dict.fromkeys(layer for layer, _ in run.weights):
        heads = sorted(head for each, head in run.weights if each == layer)
        for first, second in pairwise(heads):
            found.append(_mean(_rows(run.weights[layer, first], run.weights[layer, second])))
    known = [each for each in found if not math.isnan(each)]
    return float(np.median(known)) if known else math.nan
