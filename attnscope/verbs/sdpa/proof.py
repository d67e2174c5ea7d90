"""Certifies worked attention against an independent computation: torch's own kernel, or a loop in NumPy.

A certificate is inconclusive where an injected mistake would go unnoticed. Small arrays often give the same
result with a mistake as without it: queries equal to the keys, a single key. Exact fractions of the given
numbers decide that here, only for mistakes that went unnoticed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnscope.arithmetic import Operands, Stages
from attnscope.attention import AttentionCall, Term
from attnscope.reference import EXACT
from attnscope.results import Certificate, Fault, Kind, Verdict
from attnscope.results.steps import Matrix
from attnscope.tokens import Token, Tokens
from attnscope.verbs.sdpa.given import ADDITIVE
from attnscope.verify import certify, conclusion

TORCH = "torch.nn.functional.scaled_dot_product_attention, float64"
LOOP = "a loop over the queries in NumPy, float64"
_PRECISION = "float64 on cpu"
_EPSILON = 4 * float(np.finfo(np.float64).eps)  # both sides of the comparison round, in different orders
MOST_PRODUCTS = 200_000  # most products computed in fractions
_SYMMETRIC = "symmetric scores ({}): {} and {} may be exchanged, the sum is the same"
_ANY_SCALE = "{}: the weights are the same at any scale, which they therefore say nothing of"

Allowed = Bool[Tensor, "query key"] | None
Arrays = Mapping[str, np.ndarray]
Row = Float[np.ndarray, " key"]
Output = Float[Tensor, "head query value_dim"]
Exact = Shaped[np.ndarray, "query key"]
Proof = tuple[str, Certificate]  # name of the independent computation, and the certificate
Terms = tuple[tuple[str, Float[Tensor, "1 query key"]], ...]


def prove_dot(operands: Operands, terms: Terms = ()) -> Proof:
    """Certify one head of dot-product attention; names the independent computation used.

    It is torch's kernel, which makes its own causal mask; for a soft cap or a sink, which the kernel lacks,
    it is a loop. With the identity in place of V the computation returns its weights.
    """
    identity = torch.eye(operands.k.shape[1], dtype=operands.v.dtype)[None]
    whole = operands.softcap is None and operands.sinks is None
    answer = _kernel if whole else _looped
    output, weights = (answer(operands.but(v=v)) for v in (operands.v, identity))
    query, key = (
        Tokens((), tuple(Token(i, str(i), str(i), None, None) for i in range(each.shape[1])))
        for each in (operands.q, operands.k)
    )
    call = AttentionCall(
        **{name: each for name, each in vars(operands).items() if name != "bias"},
        module="worked example",
        call=0,
        layer=0,
        kind=Kind.DECODER if _is_causal(operands) else Kind.ENCODER,
        query_tokens=query,
        key_tokens=key,
        terms=tuple(Term(name, values) for name, values in terms),
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


def _kernel(operands: Operands) -> Output:
    causal = _is_causal(operands) and operands.bias is None
    mask = None
    if not causal and (operands.allowed is not None or operands.bias is not None):
        pairs = operands.q.shape[1], operands.k.shape[1]
        bias = torch.zeros(1, *pairs, dtype=EXACT) if operands.bias is None else operands.bias
        mask = bias if operands.allowed is None else bias.masked_fill(~operands.allowed, -torch.inf)
    return scaled_dot_product_attention(
        operands.q, operands.k, operands.v, attn_mask=mask, is_causal=causal, scale=operands.scale
    )


def _looped(operands: Operands, raw: Callable[[int], Row] | None = None) -> Output:
    """Output of attention, query by query in NumPy, independent of `attnscope.arithmetic`.

    The logits of a query are `raw`, or else its scaled products with the keys.
    """
    q, k, v = (each[0].numpy() for each in (operands.q, operands.k, operands.v))
    output = np.full((len(q), v.shape[1]), np.nan)
    for i, query in enumerate(q):
        logits = k @ query * operands.scale if raw is None else raw(i)
        if operands.softcap is not None:
            logits = operands.softcap * np.tanh(logits / operands.softcap)
        if operands.bias is not None:
            logits = logits + operands.bias[0, i].numpy()
        seen = slice(None) if operands.allowed is None else operands.allowed[0, i].numpy()
        if not (count := logits[seen].size):
            continue
        every = np.append(logits[seen], [] if operands.sinks is None else [float(operands.sinks[0])])
        raised = np.exp(every - every.max())
        output[i] = raised[:count] @ v[seen] / raised.sum()
    return torch.from_numpy(output)[None]


def prove_additive(stages: Stages, arrays: Mapping[str, Matrix], operands: Operands) -> Proof:
    """Certify additive attention against a NumPy loop.

    The tolerance of a weight is 4 eps (1 + S): S bounds how far the rounding of one score and of the
    arguments of its tanh can reach, since tanh is nowhere steeper than 1: it is the largest sum of absolute
    products behind one score. That of the output is relative to the largest entry of V.
    """
    q, k, wq, wk, a = (arrays[key].values for key in ("q", "k", *ADDITIVE))
    query, key = (np.abs(rows) @ np.abs(matrix) for rows, matrix in ((q, wq), (k, wk)))
    tolerance = _EPSILON * (1 + float(np.abs(a[0]) @ (1 + query.max(0) + key.max(0))))
    v = operands.v[0].numpy()
    largest = max(float(np.abs(v).max()), float(np.finfo(np.float64).tiny))
    alone = operands.but(v=operands.k)  # the identity: the output is the weights

    def errors(operands: Operands, bend: Callable[[Row], Row] = np.tanh) -> tuple[float, float]:
        weights = _looped(operands, lambda i: bend(q[i] @ wq + k @ wk) @ a[0])[0].numpy()
        off = (
            stages.weights[0].numpy() - weights,
            stages.output[0].numpy() - np.einsum("qk,kd->qd", weights, v),
        )
        return float(np.abs(off[0]).max()), float(np.abs(off[1]).max()) / largest

    wrong = {"tanh left out": errors(alone, np.positive)}
    if operands.allowed is not None and len(k) > 1:
        wrong["mask dropped"] = errors(alone.but(allowed=None))
    tried = (
        Fault(name, *off, max(off[0] / tolerance, off[1] / (2 * tolerance))) for name, off in wrong.items()
    )
    faults = tuple(sorted(tried, key=lambda fault: fault.power))
    off = errors(alone)
    verdict, reason = conclusion(off[0] <= tolerance and off[1] <= 2 * tolerance, *off, faults)
    return LOOP, Certificate(verdict, off[0], tolerance, off[1], 2 * tolerance, _PRECISION, faults, reason)


def excused(
    certificate: Certificate, arrays: Mapping[str, Matrix], allowed: Allowed, scales: bool
) -> tuple[Certificate, tuple[str, ...]]:
    """Certificate without the injected mistakes that change nothing in this example, and the reasons.

    `scales` is True where the scale applies to all logits (no sink): a wrong scale may then change nothing.
    """
    if certificate.verdict is not Verdict.INCONCLUSIVE:
        return certificate, ()
    reasons = _no_faults(arrays, allowed, scales)
    why = {name: reasons[name] for name in certificate.unseen if name in reasons}
    faults = tuple(fault for fault in certificate.faults if fault.name not in why)
    verdict, reason = conclusion(True, certificate.weight_error, certificate.output_error, faults)
    return replace(certificate, verdict=verdict, reason=reason, faults=faults), tuple(why.values())


def _no_faults(arrays: Mapping[str, Matrix], allowed: Allowed, scales: bool) -> dict[str, str]:
    """Mistakes that change nothing in this example, with the reason; none for huge arrays."""
    values, same = {key: each.values for key, each in arrays.items()}, dict[str, str]()
    if "additive_v" in arrays:  # all weights of a row are equal
        alike = bool((values["k"] == values["k"][0]).all())
        return {"tanh left out": "all keys are alike: the weights are the same without tanh"} if alike else {}
    if (scores := _exact_scores(values)) is None:
        return {}
    given = "scores" in arrays
    symmetric = scores.shape[0] == scores.shape[1] and bool((scores == scores.T).all())
    if symmetric and (given or values["q"].shape == values["k"].shape):
        sides = ("as given", "queries", "keys") if given else ("Q Kᵀ", "Q", "K")
        same["query and key exchanged"] = _SYMMETRIC.format(*sides)
    seen = np.ones(scores.shape, bool) if allowed is None else allowed.numpy()
    if scales and all(len(set(row[at].tolist())) < 2 for row, at in zip(scores, seen, strict=True)):
        why = "one key for every query" if seen.sum(-1).max() == 1 else "no query has scores that differ"
        same["scale off by sqrt 2"] = _ANY_SCALE.format(why)
    return same


def _exact_scores(given: Arrays) -> Exact | None:
    """Exact scores as fractions of the written numbers (0.1 is a tenth); None for too many products."""
    if "scores" in given:
        own = given["scores"]
        return _FRACTIONS(np.where(np.isfinite(own), own, 0.0)) if own.size <= MOST_PRODUCTS else None
    inside = 2 * len(given["q"]) * given["wq"].size if "x" in given else 0
    if len(given["q"]) * given["k"].size + inside > MOST_PRODUCTS:
        return None
    if "x" in given:
        exact = {key: _FRACTIONS(given[key]) for key in ("x", "wq", "wk", "bq", "bk") if key in given}
        q, k = (exact["x"] @ exact[f"w{letter}"] + exact.get(f"b{letter}", 0) for letter in "qk")
    else:
        q, k = _FRACTIONS(given["q"]), _FRACTIONS(given["k"])
    scores: Exact = q @ k.T
    return scores


_FRACTIONS = np.vectorize(lambda cell: Fraction(repr(float(cell))), otypes=[object])
