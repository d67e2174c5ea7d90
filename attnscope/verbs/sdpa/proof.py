"""The worked arithmetic held against somebody else's: torch's own kernel, or a loop in NumPy.

A certificate is inconclusive where a mistake would not have been seen. Small arrays often give the same
result with a mistake as without it: queries that are the keys, a single key. Whether they do is computed here
in fractions of the numbers as they were given, and only for mistakes that were not seen.
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
from attnscope.verify import certify, conclusion

TORCH = "torch.nn.functional.scaled_dot_product_attention, float64"
LOOP = "a loop over the queries in NumPy, float64"
_PRECISION = "float64 on cpu"
_EPSILON = 4 * float(np.finfo(np.float64).eps)  # both sides of the comparison round, in different orders
MOST_PRODUCTS = 200_000  # of fractions
_SYMMETRIC = "symmetric scores ({}): {} and {} may be exchanged, the sum is the same"
_ANY_SCALE = "{}: the weights are the same at any scale, which they therefore say nothing of"

Allowed = Bool[Tensor, "query key"] | None
Arrays = Mapping[str, Float[np.ndarray, "row column"]]
Exact = Shaped[np.ndarray, "row column"]
Proof = tuple[str, Certificate]  # what is the other way to the numbers, and what it shows
Terms = tuple[tuple[str, Float[Tensor, "1 query key"]], ...]


def prove_dot(operands: Operands, terms: Terms = ()) -> Proof:
    """The certificate of one head of dot products, and what stands in the place of a model there.

    It is torch's kernel, which makes a causal mask of its own; for what that has no place for, a soft cap or
    a sink, it is a loop. Asked with the identity in place of V it answers with its weights.
    """
    identity = torch.eye(operands.k.shape[1], dtype=operands.v.dtype)[None]
    whole = operands.softcap is None and operands.sinks is None
    answer = _kernel if whole else _looped_dot
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
        if not (count := logits[seen].size):
            continue
        every = np.append(logits[seen], [] if operands.sinks is None else [float(operands.sinks[0])])
        raised = np.exp(every - every.max())
        output[i] = raised[:count] @ v[seen] / raised.sum()
    return torch.from_numpy(output)[None]


def prove_additive(
    stages: Stages, arrays: Mapping[str, Matrix], v: Float[Tensor, "key value_dim"], causal: bool
) -> Proof:
    """The certificate of additive attention, a loop in the place of a model.

    The tolerance of a weight is 4 eps (1 + S): S bounds how far the rounding of one score and of the
    arguments of its tanh can reach, since tanh is nowhere steeper than 1: it is the largest sum of absolute
    products behind one score. That of the output is relative to the largest entry of V.
    """
    given = {key: each.values for key, each in arrays.items()} | {"v": v.numpy()}
    query, key = (np.abs(given[each]) @ np.abs(given[f"additive_w{each}"]) for each in "qk")
    reach = float(np.abs(given["additive_v"][0]) @ (1 + query.max(0) + key.max(0)))
    tolerance = _EPSILON * (1 + reach)
    largest = max(float(np.abs(given["v"]).max()), float(np.finfo(np.float64).tiny))

    def errors(
        causal: bool, bend: Callable[..., Float[np.ndarray, "key d_a"]] = np.tanh
    ) -> tuple[float, float]:
        weights = _looped(given, causal, bend)
        output = np.einsum("qk,kd->qd", weights, given["v"])
        off = np.abs(stages.weights[0].numpy() - weights), np.abs(stages.output[0].numpy() - output)
        return float(off[0].max()), float(off[1].max()) / largest

    wrong = {"tanh left out": errors(causal, np.positive)}
    if causal and len(given["k"]) > 1:
        wrong["mask dropped"] = errors(causal=False)
    tried = [
        Fault(name, *off, max(off[0] / tolerance, off[1] / (2 * tolerance))) for name, off in wrong.items()
    ]
    faults = tuple(sorted(tried, key=lambda fault: fault.power))
    off = errors(causal)
    verdict, reason = conclusion(off[0] <= tolerance and off[1] <= 2 * tolerance, *off, faults)
    return LOOP, Certificate(verdict, off[0], tolerance, off[1], 2 * tolerance, _PRECISION, faults, reason)


def _looped(
    given: Arrays, causal: bool, bend: Callable[..., Float[np.ndarray, "key d_a"]]
) -> Float[np.ndarray, "query key"]:
    """Weights one query at a time, without anything of `attnscope.arithmetic`."""
    weights = np.zeros((len(given["q"]), len(given["k"])))
    for i, query in enumerate(given["q"]):
        hidden = bend(query @ given["additive_wq"] + given["k"] @ given["additive_wk"])
        seen = slice(0, i + 1 if causal else None)
        logits = (hidden @ given["additive_v"][0])[seen]
        raised = np.exp(logits - logits.max())
        weights[i, seen] = raised / raised.sum()
    return weights


def excused(
    certificate: Certificate, arrays: Mapping[str, Matrix], allowed: Allowed, scales: bool
) -> tuple[Certificate, tuple[str, ...]]:
    """The certificate without those mistakes that are none in this example, and why they are none.

    It could not have seen them. Where a scale `scales` all logits, the sink's among them, none may change it.
    """
    if certificate.verdict is not Verdict.INCONCLUSIVE:
        return certificate, ()
    reasons = _no_faults(arrays, allowed, scales)
    why = {name: reasons[name] for name in certificate.unseen if name in reasons}
    faults = tuple(fault for fault in certificate.faults if fault.name not in why)
    verdict, reason = conclusion(True, certificate.weight_error, certificate.output_error, faults)
    return replace(certificate, verdict=verdict, reason=reason, faults=faults), tuple(why.values())


def _no_faults(arrays: Mapping[str, Matrix], allowed: Allowed, scales: bool) -> dict[str, str]:
    """The mistakes that are none in this example, each with the reason; of huge arrays none is told."""
    if "additive_v" in arrays:  # all weights of a row are equal
        keys = arrays["k"].values
        alike = bool((keys == keys[0]).all())
        return {"tanh left out": "all keys are alike: the weights are the same without tanh"} if alike else {}
    if (scores := _exact_scores(arrays)) is None:
        return {}
    given = "scores" in arrays
    same = {}
    square = scores.shape[0] == scores.shape[1]
    if (
        square
        and (given or arrays["q"].values.shape == arrays["k"].values.shape)
        and (scores == scores.T).all()
    ):
        sides = ("as given", "queries", "keys") if given else ("Q Kᵀ", "Q", "K")
        same["query and key exchanged"] = _SYMMETRIC.format(*sides)
    seen = np.ones(scores.shape, bool) if allowed is None else allowed.numpy()
    if scales and all(len(set(row[at].tolist())) < 2 for row, at in zip(scores, seen, strict=True)):
        why = "one key for every query" if seen.sum(-1).max() == 1 else "no query has scores that differ"
        same["scale off by sqrt 2"] = _ANY_SCALE.format(why)
    return same


def _exact_scores(arrays: Mapping[str, Matrix]) -> Exact | None:
    """The scores as they follow from the numbers as written; None where that takes too many products."""
    if "scores" in arrays:
        own = arrays["scores"].values
        return _fractions(np.where(np.isfinite(own), own, 0.0)) if own.size <= MOST_PRODUCTS else None
    q, k = (arrays[letter].values for letter in "qk")
    inside = 2 * len(q) * arrays["wq"].values.size if "x" in arrays else 0
    if len(q) * k.size + inside > MOST_PRODUCTS:
        return None
    needed = ("x", "wq", "wk", "bq", "bk") if "x" in arrays else ("q", "k")
    given = {key: _fractions(arrays[key].values) for key in needed if key in arrays}
    if "x" in given:
        given |= {letter: given["x"] @ given[f"w{letter}"] + given.get(f"b{letter}", 0) for letter in "qk"}
    scores: Exact = given["q"] @ given["k"].T
    return scores


def _fractions(values: Float[np.ndarray, "row column"]) -> Exact:
    """The numbers as they were written, 0.1 being a tenth."""
    exact = np.empty(values.shape, dtype=object)
    exact[:] = [[Fraction(repr(cell)) for cell in row] for row in values.tolist()]
    return exact
