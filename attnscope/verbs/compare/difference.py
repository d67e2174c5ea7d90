"""Compares two results, from files or in memory, without a model: runs head by head, or corpora.

The divergence of weights stands beside rounding, and beside the divergence of neighbouring heads.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from attnscope.analysis.controls import jensen_shannon
from attnscope.analysis.heads.view import head_in
from attnscope.errors import InputError, listed
from attnscope.results import HeadView, Overview, Result, load
from attnscope.results.heads import head_name
from attnscope.session import selection
from attnscope.session.question import Answer
from attnscope.session.wanted import Numbers
from attnscope.verbs.compare.corpora import corpora_apart
from attnscope.verbs.compare.corpora_result import CorpusDifference
from attnscope.verbs.compare.question import Runs
from attnscope.verbs.compare.result import Difference, Run
from attnscope.verbs.corpus.result import Corpus

Place = tuple[int, int]  # layer and head
Weights = Float[np.ndarray, "query key"]


def compare_runs(_: Any, __: Any, asked: Runs, ___: Any) -> Answer[Difference | CorpusDifference]:
    """Compares the heads of two stored results, or two corpora; opens no model."""
    files = asked.a, asked.b
    runs: Any = tuple(load(run) if isinstance(run, Path) else run for run in files)
    picked = asked.wanted.layer, asked.wanted.head, asked.layer_b, asked.head_b
    if not all(isinstance(run, Corpus) for run in runs):
        # by their whole paths where their names are the same
        names: Any = tuple(
            run.name if isinstance(run, Path) else letter for run, letter in zip(files, "AB", strict=True)
        )
        names = tuple(map(str, files)) if names[0] == names[1] and files[0] != files[1] else names
        found = compare_results(runs[0], runs[1], names, *picked)
        return Answer(found, beside=lambda: {"heads": runs})
    if any(number is not None for number in picked):
        raise InputError("two corpora are compared in all their heads: leave layers and heads out")
    return Answer(corpora_apart(*runs))


@dataclass(frozen=True, eq=False)
class Matrices:
    """A run, its weights by (layer, head) over the same tokens, and the tolerance of each (NaN for none)."""

    run: Run
    weights: dict[Place, Weights]
    tolerances: dict[Place, float]

    @property
    def places(self) -> tuple[list[int], list[int]]:
        """The layers and the heads of the run, ascending."""
        layers, heads = (sorted({place[i] for place in self.weights}) for i in (0, 1))
        return layers, heads

    @property
    def extent(self) -> str:
        """Layers and heads in words, for error messages."""
        return "layers {}, heads {}".format(*map(listed, self.places))


def matrices_in(result: Result, name: str) -> Matrices:
    """The weights of heads in a result; `name` is for errors, `InputError` where it holds none."""
    shown = result if isinstance(result, Overview | HeadView) else head_in(result)
    if shown is None:
        raise InputError(f"{name} holds no weights of heads: give what `attnscope heads -o FILE.npz` wrote")
    whole = shown.head if isinstance(shown, HeadView) else shown
    run = Run(name, whole.kind, shown.query_tokens, shown.key_tokens, whole.provenance, whole.verdict)
    weights: dict[Place, Weights] = {}
    tolerances = {}
    if not isinstance(whole, Overview):
        place, tolerance = (whole.layer, whole.head), whole.certificate.weight_tolerance
        weights[place] = np.asarray(shown.weights)
        tolerances[place] = tolerance if tolerance > 0 else math.nan
        return Matrices(run, weights, tolerances)
    for layer, row, proofs in zip(whole.layers, whole.dense_weights, whole.certificates, strict=True):
        for head, each, proof in zip(whole.heads, row, proofs, strict=True):
            weights[layer, head] = np.asarray(each, dtype=np.float64)
            tolerances[layer, head] = proof.weight_tolerance
    return Matrices(run, weights, tolerances)


@dataclass(frozen=True)
class Picked:
    """The heads to compare: layers and heads of `a`, one layer and head of `b`; None for all.

    Where both sides name one head these two are compared, else heads of the same layer and number.
    """

    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    layer_b: int | None = None
    head_b: int | None = None


def compare_results(a: Result, b: Result, names: tuple[str, str], *picked: Numbers) -> Difference:
    """Compares the heads of two results; `picked` are layers and heads of `a`, then of `b`."""
    sides = tuple(map(matrices_in, (a, b), names))
    numbers: list[Any] = []
    for i, wanted in enumerate(picked):
        side, what = sides[i // 2], ("layer", "head")[i % 2]
        there = side.places[i % 2]
        where = f"{side.run.name}: it has {what}s {', '.join(map(str, there))}"
        ranges = None if wanted is None else selection.parse(wanted, what)
        found = None if wanted is None else selection.choose(ranges, tuple(there), what, where)
        if i > 1 and found and len(found) != 1:
            raise InputError(f"--{what}-b is one {what}: give one number")
        numbers.append(found[0] if i > 1 and found else found)
    return difference(sides[0], sides[1], Picked(*numbers))


def difference(a: Matrices, b: Matrices, picked: Picked = Picked()) -> Difference:
    """Compares heads, `b` less `a`; `InputError` for unlike numbers of tokens, or no head in common."""
    for side in ("query", "key"):
        first, second = (len(getattr(each.run, f"{side}_tokens")) for each in (a, b))
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
        a=a.run,
        b=b.run,
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


def _pairs(a: Matrices, b: Matrices, picked: Picked) -> list[tuple[int, int, int, int]]:
    mine = [
        (layer, head)
        for layer, head in a.weights
        if (picked.layers is None or layer in picked.layers)
        and (picked.heads is None or head in picked.heads)
    ]
    if not mine:
        raise InputError(f"no such head in the first run: it has {a.extent}")
    named = picked.layer_b is not None or picked.head_b is not None
    if not named and len(a.weights) == len(b.weights) == 1:
        return [(*mine[0], *next(iter(b.weights)))]
    pairs = [
        (
            *(layer, head),
            layer if picked.layer_b is None else picked.layer_b,
            head if picked.head_b is None else picked.head_b,
        )
        for layer, head in mine
    ]
    lacking = [pair for pair in pairs if pair[2:] not in b.weights]
    if named and lacking:
        raise InputError(f"no {head_name(*lacking[0][2:])} in the second run: it has {b.extent}")
    if len(lacking) == len(pairs):
        raise InputError(f"no head is in both runs: the first has {a.extent}, the second {b.extent}")
    return [pair for pair in pairs if pair not in lacking]


def _rows(a: Weights, b: Weights) -> Float[np.ndarray, " query"]:
    return np.asarray(jensen_shannon(_with_rest(a), _with_rest(b)))


def _with_rest(weights: Weights) -> Float[np.ndarray, "query one_more"]:
    """Rows that sum to 1: the weight that no key gets, as with a sink, becomes one more key."""
    rest = np.maximum(1.0 - weights.sum(axis=1, keepdims=True), 0.0)
    return np.concatenate([weights, np.where(rest < 1e-9, 0.0, rest)], axis=1)


def _mean(values: Float[np.ndarray, " query"]) -> float:
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if numbers.size else math.nan


def _largest(a: Weights, b: Weights) -> float:
    """Largest difference of a weight; infinite where a row is NaN on one side only."""
    if (np.isnan(a) != np.isnan(b)).any():
        return math.inf
    off = np.abs(a - b)
    return float(np.nanmax(off)) if (~np.isnan(off)).any() else 0.0


def _neighbours(run: Matrices) -> float:
    """Control: the median divergence of two neighbouring heads of one layer."""
    pairs = [(one, other) for one, other in pairwise(sorted(run.weights)) if one[0] == other[0]]
    found = [_mean(_rows(run.weights[one], run.weights[other])) for one, other in pairs]
    known = [each for each in found if not math.isnan(each)]
    return float(np.median(known)) if known else math.nan
