"""The worked arithmetic held against somebody else's: torch's own kernel, or a loop in NumPy."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnscope.attention import AttentionCall
from attnscope.results import Certificate, Fault, Kind, Verdict
from attnscope.sdpa import Operands, Stages
from attnscope.tokens import Token, Tokens
from attnscope.verify import certify

TORCH = "torch.nn.functional.scaled_dot_product_attention, float64"
LOOP = "a loop over the queries in NumPy, float64"
_EPSILON = float(np.finfo(np.float64).eps)


def prove_dot(operands: Operands, causal: bool) -> Certificate:
    """The certificate of one head of dot products, torch's kernel in the place of a model's.

    The kernel makes its own causal mask. Asked with the identity in place of V it answers with its weights.
    """
    identity = torch.eye(operands.k.shape[1], dtype=operands.v.dtype)[None]
    output, weights = (
        scaled_dot_product_attention(operands.q, operands.k, v, is_causal=causal, scale=operands.scale)
        for v in (operands.v, identity)
    )
    call = AttentionCall(
        module="worked example",
        call=0,
        layer=0,
        kind=Kind.DECODER if causal else Kind.ENCODER,
        query_tokens=_places(operands.q.shape[1]),
        key_tokens=_places(operands.k.shape[1]),
        q=operands.q,
        k=operands.k,
        v=operands.v,
        scale=operands.scale,
        softcap=None,
        bias=None,
        allowed=operands.allowed,
        sinks=None,
        window=None,
        output=output,
        weights={0: weights[0]},
        epsilon=_EPSILON,
        precision="float64 on cpu",
    )
    return certify(call, 0)


def _places(count: int) -> Tokens:
    return Tokens((), tuple(Token(i, str(i), str(i), None, None) for i in range(count)))


@dataclass(frozen=True, eq=False)
class Additive:
    """The operands of additive attention, in NumPy: value matrices as given, `vector` without its row axis."""

    q: Float[np.ndarray, "query d_q"]
    k: Float[np.ndarray, "key d_k"]
    v: Float[np.ndarray, "key d_v"]
    query_matrix: Float[np.ndarray, "d_q d_a"]
    key_matrix: Float[np.ndarray, "d_k d_a"]
    vector: Float[np.ndarray, " d_a"]
    causal: bool


def prove_additive(given: Additive, stages: Stages) -> Certificate:
    """The certificate of additive attention: a loop over the queries in place of a model.

    Its tolerance is eps * (1 + S), S the largest sum of absolute products that make up one score or one
    of its arguments, weighted by how far these move the score (tanh has a slope of at most 1).
    """
    reach = _largest_sum(given)
    tolerance = 2 * _EPSILON * (1 + reach)
    weights, output = _looped(given, np.tanh)
    weight_error, output_error = _distances(given, stages, weights, output)
    faults = tuple(
        Fault(name, *errors, max(errors[0] / tolerance, errors[1] / (2 * tolerance)))
        for name, errors in _faults(given, stages)
    )
    unseen = [fault.name for fault in faults if not fault.power > 1]
    agrees = weight_error <= tolerance and output_error <= 2 * tolerance
    verdict = Verdict.FAILED if not agrees else Verdict.INCONCLUSIVE if unseen else Verdict.CERTIFIED
    reason = "" if verdict is not Verdict.FAILED else "the two ways of computing it disagree"
    if verdict is Verdict.INCONCLUSIVE:
        reason = f"would not have been seen: {', '.join(unseen)}"
    errors = (weight_error, tolerance, output_error, 2 * tolerance)
    return Certificate(verdict, *errors, "float64 on cpu", tuple(sorted(faults, key=_power)), reason)
