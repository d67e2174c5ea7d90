"""The weights that a result holds, head by head, whatever kind of result it is."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.errors import InputError
from attnscope.results import (
    Dimensions,
    HeadTerms,
    HeadView,
    HeadWeights,
    Kind,
    Overview,
    Projection,
    Provenance,
    Report,
    Result,
    Verdict,
)
from attnscope.tokens import Tokens

Place = tuple[int, int]  # layer and head


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


def head_in(result: Result) -> HeadWeights | None:
    """The one head that a result is about; None where it is about several, or none."""
    if isinstance(result, Dimensions | HeadTerms | HeadView | Projection | Report):
        return result.head
    return result if isinstance(result, HeadWeights) else None


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
