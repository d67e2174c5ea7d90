"""The worked arithmetic held against somebody else's: torch's own kernel, or a loop in NumPy."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnscope.arithmetic import Operands, Stages
from attnscope.attention import AttentionCall, Term
from attnscope.reference import EXACT
from attnscope.results import Certificate, Fault, Kind
from attnscope.tokens import Token, Tokens
from attnscope.verify import certify, conclusion

TORCH = "torch.nn.functional.scaled_dot_product_attention, float64"
LOOP = "a loop over the queries in NumPy, float64"
_PRECISION = "float64 on cpu"
_EPSILON = 4 * float(np.finfo(np.float64).eps)  # both sides of the comparison round, in different orders

Arrays = Mapping[str, Float[np.ndarray, "row column"]]
Terms = tuple[tuple[str, Float[Tensor, "1 query key"]], ...]


def prove_dot(operands: Operands, terms: Terms = ()) -> tuple[str, Certificate]:
    """The certificate of one head of dot products, and what stands in the place of a model there.

    It is torch's kernel, which makes a causal mask of its own; for what that has no place for, a soft cap or
    a sink, it is a loop. Asked with the identity in place of V it answers with its weights.
    """
    identity = torch.eye(operands.k.shape[1], dtype=operands.v.dtype)[None]
    whole = operands.softcap is None and operands.sinks is None
    answer = _kernel if whole else _looped_dot
    output, weights = (answer(operands.but(v=v)) for v in (operands.v, identity))
    call = AttentionCall(
        module="worked example",
        call=0,
        layer=0,
        kind=Kind.DECODER if _is_causal(operands) else Kind.ENCODER,
        query_tokens=_places(operands.q.shape[1]),
        key_tokens=_places(operands.k.shape[1]),
        q=operands.q,
        k=operands.k,
        v=operands.v,
        scale=operands.scale,
        softcap=operands.softcap,
        terms=tuple(Term(name, values) for name, values in terms),
        allowed=operands.allowed,
        sinks=operands.sinks,
        window=None,
        output=output,
        weights={0: weights[0]},
        epsilon=_EPSILON,
        precision=_PRECISION,
    )
    return TORCH if whole else LOOP, certify(call, 0)


def _is_causal(operands: Operands) -> bool:
    allowed = operands.allowed
    return allowed is not None and torch.equal(allowed, torch.ones_like(allowed).tril())


def _kernel(operands: Operands) -> Float[Tensor, "head query value_dim"]:
    """What torch's own kernel makes of the same."""
    causal = _is_causal(operands) and operands.bias is None
    mask = None
    if not causal and (operands.allowed is not None or operands.bias is not None):
        pairs = operands.q.shape[1], operands.k.shape[1]
        bias = torch.zeros(1, *pairs, dtype=EXACT) if operands.bias is None else operands.bias
        mask = bias if operands.allowed is None else bias.masked_fill(~operands.allowed, -torch.inf)
    return scaled_dot_product_attention(
        operands.q, operands.k, operands.v, attn_mask=mask, is_causal=causal, scale=operands.scale
    )


def _looped_dot(operands: Operands) -> Float[Tensor, "head query value_dim"]:
    """The output one query at a time in NumPy, without anything of `attnscope.arithmetic`."""
    q, k, v = (each[0].numpy() for each in (operands.q, operands.k, operands.v))
    output = np.full((len(q), v.shape[1]), np.nan)
    for i, query in enumerate(q):
        logits = k @ query * operands.scale
        if operands.softcap is not None:
            logits = operands.softcap * np.tanh(logits / operands.softcap)
        if operands.bias is not None:
            logits = logits + operands.bias[0, i].numpy()
        seen = slice(None) if operands.allowed is None else operands.allowed[0, i].numpy()
        sinks = [] if operands.sinks is None else [float(operands.sinks[0])]
        if not logits[seen].size:
            continue
        raised = np.exp(np.append(logits[seen], sinks) - np.append(logits[seen], sinks).max())
        output[i] = raised[: logits[seen].size] @ v[seen] / raised.sum()
    return torch.from_numpy(output)[None]


def _places(count: int) -> Tokens:
    return Tokens((), tuple(Token(i, str(i), str(i), None, None) for i in range(count)))


def prove_additive(stages: Stages, given: Arrays, causal: bool) -> Certificate:
    """The certificate of additive attention, `_looped` in the place of a model.

    The tolerance of a weight is 4 eps (1 + S): S bounds how far the rounding of one score and of the
    arguments of its tanh can reach, since tanh is nowhere steeper than 1.
    """
    tolerance = _EPSILON * (1 + _reach(given))
    weight_error, output_error = _distances(stages, given["v"], *_looped(given, causal))
    wrong = {"tanh left out": _looped(given, causal, bend=np.positive)}
    if causal and len(given["k"]) > 1:
        wrong["mask dropped"] = _looped(given, causal=False)
    faults = []
    for name, answer in wrong.items():
        errors = _distances(stages, given["v"], *answer)
        faults.append(Fault(name, *errors, max(errors[0] / tolerance, errors[1] / (2 * tolerance))))
    faults.sort(key=lambda fault: fault.power)
    agrees = weight_error <= tolerance and output_error <= 2 * tolerance
    verdict, reason = conclusion(agrees, weight_error, output_error, tuple(faults))
    against = (weight_error, tolerance, output_error, 2 * tolerance)
    return Certificate(verdict, *against, _PRECISION, tuple(faults), reason)


def _looped(
    given: Arrays, causal: bool, bend: Callable[..., Float[np.ndarray, "key d_a"]] = np.tanh
) -> tuple[Float[np.ndarray, "query key"], Float[np.ndarray, "query d_v"]]:
    """Weights and output one query at a time, without anything of `attnscope.arithmetic`."""
    weights = np.zeros((len(given["q"]), len(given["k"])))
    for i, query in enumerate(given["q"]):
        logits = (
            bend(query @ given["additive_wq"] + given["k"] @ given["additive_wk"]) @ given["additive_v"][0]
        )
        seen = slice(0, i + 1 if causal else None)
        raised = np.exp(logits[seen] - logits[seen].max())
        weights[i, seen] = raised / raised.sum()
    return weights, np.einsum("qk,kd->qd", weights, given["v"])


def _reach(given: Arrays) -> float:
    """S of the tolerance: the largest sum of absolute products behind one score, dimensionless."""
    query = np.abs(given["q"]) @ np.abs(given["additive_wq"])
    key = np.abs(given["k"]) @ np.abs(given["additive_wk"])
    return float(np.abs(given["additive_v"][0]) @ (1 + query.max(0) + key.max(0)))


def _distances(
    stages: Stages, v: Float[np.ndarray, "key d_v"], weights: np.ndarray, output: np.ndarray
) -> tuple[float, float]:
    """Largest distance of a weight, and of an output entry relative to the largest entry of V."""
    largest_value = max(float(np.abs(v).max()), float(np.finfo(np.float64).tiny))
    weights_off = np.abs(stages.weights[0].numpy() - weights)
    return float(weights_off.max()), float(np.abs(stages.output[0].numpy() - output).max()) / largest_value
