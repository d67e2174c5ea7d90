"""Mistakes that change nothing in the example at hand, which its certificate therefore need not catch.

A certificate is inconclusive where a mistake would not have been seen. Small arrays often give the same
result with a mistake as without it: queries that are the keys, a single key. Whether they do is computed here
in fractions of the numbers as they were given, and only for mistakes that were not seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Shaped
from torch import Tensor

from attnscope.results import Certificate, Verdict
from attnscope.results.worked import Matrix
from attnscope.verify import conclusion
from attnscope.worked.scored import Beside

MOST_PRODUCTS = 200_000
EXCHANGED, SCALE, TANH = "query and key exchanged", "scale off by sqrt 2", "tanh left out"
_SYMMETRIC = "symmetric scores ({}): {} and {} may be exchanged, the sum is the same"
_ANY_SCALE = "{}: the weights are the same at any scale, which they therefore say nothing of"

Exact = Shaped[np.ndarray, "row column"]


def excused(
    certificate: Certificate, no_faults: Callable[[], Mapping[str, str]]
) -> tuple[Certificate, tuple[str, ...]]:
    """The certificate without those of `no_faults` that it could not have seen, and why they are none."""
    if certificate.verdict is not Verdict.INCONCLUSIVE:
        return certificate, ()
    reasons = no_faults()
    names = [name for name in certificate.unseen if name in reasons]
    faults = tuple(fault for fault in certificate.faults if fault.name not in names)
    verdict, reason = conclusion(True, certificate.weight_error, certificate.output_error, faults)
    why = tuple(reasons[name] for name in names)
    return replace(certificate, verdict=verdict, reason=reason, faults=faults), why


def no_faults(
    arrays: Mapping[str, Matrix], allowed: Bool[Tensor, "query key"] | None, beside: Beside
) -> dict[str, str]:
    """The mistakes that are none in this example, each with the reason; of huge arrays none is told."""
    if "additive_v" in arrays:
        return _without_tanh(arrays)
    if _products(arrays) > MOST_PRODUCTS:
        return {}
    scores, called = _scores(arrays)
    same = {}
    if _exchangeable(arrays) and (scores == scores.T).all():
        same[EXCHANGED] = called
    if beside.sink is None:
        same |= _at_any_scale(scores, allowed)
    return same


def _exchangeable(arrays: Mapping[str, Matrix]) -> bool:
    rows, columns = arrays["scores"].values.shape if "scores" in arrays else (0, 0)
    return rows == columns and ("scores" in arrays or arrays["q"].values.shape == arrays["k"].values.shape)


def _scores(arrays: Mapping[str, Matrix]) -> tuple[Exact, str]:
    if "scores" in arrays:
        given = arrays["scores"]
        finite = np.where(np.isfinite(given.values), given.values, 0.0)
        return fractions(replace(given, values=finite)), _SYMMETRIC.format("as given", "queries", "keys")
    return _rows(arrays, "q") @ _rows(arrays, "k").T, _SYMMETRIC.format("Q Kᵀ", "Q", "K")


def _at_any_scale(scores: Exact, allowed: Bool[Tensor, "query key"] | None) -> dict[str, str]:
    """No scale changes weights where no row has two scores that differ."""
    seen = np.ones(scores.shape, bool) if allowed is None else allowed.numpy()
    if any(len(set(row[there].tolist())) > 1 for row, there in zip(scores, seen, strict=True)):
        return {}
    why = "one key for every query" if seen.sum(-1).max() == 1 else "no query has scores that differ"
    return {SCALE: _ANY_SCALE.format(why)}


def _without_tanh(arrays: Mapping[str, Matrix]) -> dict[str, str]:
    """Additive scores say nothing of their tanh where all keys are alike: all weights of a row are equal."""
    keys = arrays["k"].values
    alike = bool((keys == keys[0]).all())
    return {TANH: "all keys are alike: the weights are the same without tanh"} if alike else {}


def fractions(matrix: Matrix) -> Exact:
    """The numbers as they were written, 0.1 being a tenth."""
    cells = [[Fraction(repr(cell)) for cell in row] for row in matrix.values.tolist()]
    exact = np.empty(matrix.values.shape, dtype=object)
    exact[:] = cells
    return exact


def _products(arrays: Mapping[str, Matrix]) -> int:
    if "scores" in arrays:
        return arrays["scores"].values.size
    q, k = (arrays[letter].values for letter in "qk")
    return len(q) * k.size + (2 * len(q) * arrays["wq"].values.size if "x" in arrays else 0)


def _rows(arrays: Mapping[str, Matrix], letter: str) -> Exact:
    if "x" not in arrays:
        return fractions(arrays[letter])
    rows: Exact = fractions(arrays["x"]) @ fractions(arrays[f"w{letter}"])
    bias = arrays.get(f"b{letter}")
    return rows if bias is None else rows + fractions(bias)
