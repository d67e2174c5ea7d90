"""Mistakes that change nothing in the sum at hand, proven: they are no faults of it and prove nothing.

A certificate is inconclusive where a mistake would not have been seen. Small arrays often make the same sum
of it, whatever the arithmetic: queries that are the keys, a single key. That is told here, in fractions of
the numbers as they were given, for those mistakes alone that were not seen.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Shaped

from attnscope.results import Certificate, Verdict
from attnscope.results.worked import Matrix
from attnscope.verify import conclusion

MOST_PRODUCTS = 200_000
EXCHANGED, SCALE, TANH = "query and key exchanged", "scale off by sqrt 2", "tanh left out"
_SYMMETRIC = "{} is symmetric: {}, the sum is the same"
_ANY_SCALE = "{}: the weights are the same at any scale, which they therefore say nothing of"

Exact = Shaped[np.ndarray, "row column"]
Allowed = Bool[np.ndarray, "query key"] | None


def excused(certificate: Certificate, reasons: Mapping[str, str]) -> tuple[Certificate, tuple[str, ...]]:
    """The certificate without those faults of `reasons` that it could not have seen, and their reasons."""
    names = [name for name in certificate.unseen if name in reasons]
    if certificate.verdict is not Verdict.INCONCLUSIVE or not names:
        return certificate, ()
    faults = tuple(fault for fault in certificate.faults if fault.name not in names)
    verdict, reason = conclusion(True, certificate.weight_error, certificate.output_error, faults)
    told = tuple(reasons[name] for name in names)
    return replace(certificate, verdict=verdict, reason=reason, faults=faults), told


def same_products(found: Mapping[str, Matrix], allowed: Allowed) -> dict[str, str]:
    """The mistakes that leave a softmax of Q K^T as it is, each with the reason; of huge arrays none."""
    q, k = (found[letter] for letter in "qk")
    products = len(q.values) * k.values.size + _projecting(found)
    same: dict[str, str] = {}
    if products > MOST_PRODUCTS:
        return same
    scores = _rows(found, "q") @ _rows(found, "k").T
    if q.values.shape == k.values.shape and (scores == scores.T).all():
        same[EXCHANGED] = _SYMMETRIC.format("Q Kᵀ", "Q and K may be exchanged")
    return same | same_scores(scores, allowed)


def same_scores(scores: Exact, allowed: Allowed) -> dict[str, str]:
    """The same where only the scale may be wrong: no row has two scores that differ."""
    seen = np.ones(scores.shape, bool) if allowed is None else allowed
    if any(len(set(row[there].tolist())) > 1 for row, there in zip(scores, seen, strict=True)):
        return {}
    why = "one key for every query" if seen.sum(-1).max() == 1 else "no query has scores that differ"
    return {SCALE: _ANY_SCALE.format(why)}


def same_without_tanh(found: Mapping[str, Matrix]) -> dict[str, str]:
    """Additive scores say nothing of their tanh where all keys are alike: all weights of a row are equal."""
    keys = found["k"].values
    alike = bool((keys == keys[0]).all())
    return {TANH: "all keys are alike: the weights are the same without tanh"} if alike else {}


def fractions(matrix: Matrix) -> Exact:
    """The numbers as they were written, 0.1 being a tenth."""
    cells = [[Fraction(repr(cell)) for cell in row] for row in matrix.values.tolist()]
    exact = np.empty(matrix.values.shape, dtype=object)
    exact[:] = cells
    return exact


def _projecting(found: Mapping[str, Matrix]) -> int:
    """How many products it takes to make Q and K."""
    return 0 if "x" not in found else len(found["x"].values) * 2 * found["wq"].values.size


def _rows(found: Mapping[str, Matrix], letter: str) -> Exact:
    """Q or K, made from X where they were not given."""
    if "x" not in found:
        return fractions(found[letter])
    rows: Exact = fractions(found["x"]) @ fractions(found[f"w{letter}"])
    bias = found.get(f"b{letter}")
    return rows if bias is None else rows + fractions(bias)
