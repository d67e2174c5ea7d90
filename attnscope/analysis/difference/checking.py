"""A stored run against one made anew: every number of every head, within the tolerance of its certificate.

A certificate's tolerance is what one layer's arithmetic may round. A stored number has been through all
layers up to its own, on a machine that may add in another order: each of them may round as much, so as many
tolerances are allowed. Scores are dimensionless logits, as the tolerance is; vectors are held against their
largest entry.
"""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from attnscope.results import Certificate, HeadAttention, HeadWeights, Overview
from attnscope.results.claims.checking import HeadCheck

_VECTORS = ("q", "k", "v", "output")
_EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
_UNCERTIFIED = 32  # epsilons that a weight without a certificate may be off

Off = tuple[str, float, float]  # stage, how far it is off, how far it may be


def checked_head(stored: HeadWeights, anew: HeadWeights, before: int = 0) -> HeadCheck:
    """One head; `before` are the layers of an encoder that the run went through before the head's own."""
    offs = list(_head(stored, anew, stored.layer + 1 + before))
    stage, off, allowed = max(offs, key=_times)
    return HeadCheck(stored.layer, stored.head, stage, off, allowed, anew.verdict)


def checked_heads(stored: Overview, anew: Overview, before: int = 0) -> list[HeadCheck]:
    """Every head of an overview, its weights and its measures."""
    found, keys = [], len(stored.key_tokens)
    for i, layer in enumerate(stored.layers):
        for j, head in enumerate(stored.heads):
            tolerance = _tolerance(stored.certificates[i][j], stored.provenance.dtype) * (layer + 1 + before)
            weights = _off(stored.dense_weights[i][j], anew.dense_weights[i][j])
            offs: list[Off] = [("weights", weights, tolerance), ("strongest", _strongest(stored, i, j), 0.0)]
            for name in stored.scores.keys() & anew.scores.keys():
                own, limits = stored.scores[name], stored.scores[name].limits
                off = _off(own.values[i : i + 1, j], anew.scores[name].values[i : i + 1, j])
                span = max(1.0, *(abs(each) for each in limits if math.isfinite(each)))
                offs.append((name, off, tolerance * keys * span))
            stage, off, allowed = max(offs, key=_times)
            found.append(HeadCheck(layer, head, stage, off, allowed, anew.certificates[i][j].verdict))
    return found


def _head(stored: HeadWeights, anew: HeadWeights, layers: int) -> Iterator[Off]:
    tolerance = _tolerance(stored.certificate, stored.provenance.dtype) * layers
    yield "weights", _off(stored.weights, anew.weights), tolerance
    yield "allowed", 0.0 if np.array_equal(stored.allowed, anew.allowed) else math.inf, 0.0
    if not isinstance(stored, HeadAttention) or not isinstance(anew, HeadAttention):
        return
    yield "scaled", _off(stored.scaled, anew.scaled), tolerance
    yield "scores", _off(stored.scores, anew.scores), tolerance / abs(stored.scale or 1.0)
    for name in _VECTORS:
        mine, other = getattr(stored, name), getattr(anew, name)
        largest = float(np.nanmax(np.abs(other))) if np.isfinite(other).any() else 0.0
        yield name, _off(mine, other), stored.certificate.output_tolerance * layers * largest


def _strongest(stored: Overview, i: int, j: int) -> float:
    """How far the strongest link that is told lies off the stored weight at its place."""
    query, key = stored.strongest[i, j].tolist()
    if query < 0:
        return 0.0
    return abs(float(stored.strongest_weight[i, j] - stored.dense_weights[i][j][query, key]))


def _tolerance(certificate: Certificate, dtype: str) -> float:
    own = certificate.weight_tolerance
    return own if own > 0 else _UNCERTIFIED * _EPSILON.get(dtype, float(np.finfo(np.float32).eps))


def _off(a: Float[np.ndarray, "..."], b: Float[np.ndarray, "..."]) -> float:
    """The largest difference; infinite where shapes are not the same, or only one of both has a number."""
    if a.shape != b.shape or (np.isfinite(a) != np.isfinite(b)).any():
        return math.inf
    there = np.isfinite(a)
    return float(np.abs(a[there] - b[there]).max()) if there.any() else 0.0


def _times(off: Off) -> float:
    """How many times what is allowed."""
    _, found, allowed = off
    return found / allowed if allowed > 0 else math.inf if found > 0 else 0.0
