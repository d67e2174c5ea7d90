"""AttentionCall -> Certificate: does our arithmetic agree with the model, and would we have noticed if not?

The recomputed weights are held against the weights that the model's own kernel made, the recomputed
output against what that kernel returned. Agreement alone proves nothing where a mistake would change
less than the tolerance, so every fault that could apply to this very call is put in on purpose; if one of
them would have passed, the verdict is `inconclusive`. Nothing here is compared with something that was
derived from it.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.errors import InputError
from attnscope.results import Certificate, Fault, Kind, Verdict
from attnscope.sdpa import Operands, Stages, attend

Made = Callable[[AttentionCall, int, Operands], Operands | None]


def certify(call: AttentionCall, head: int) -> Certificate:
    """The certificate of one head; `InputError` when the head's own weights were not captured.

    The tolerance of a weight is eps * (1 + S): eps is the machine epsilon of the kernel's arithmetic and
    S the largest sum of absolute products that make up one score. Such a score is rounded by about
    eps * S / 2, and the softmax turns an error of its logits into at most as large a one of a weight. The
    tolerance of the output, relative to the largest entry of V, is twice that and what adding up n terms
    may lose, n eps / 2 with n the most keys of a query (Higham 2002); kernels add in float32 at least.
    """
    if head not in call.weights:
        raise InputError(
            f"head {head} of layer {call.layer} was not captured: captured are {list(call.weights)}"
        )
    operands = call.operands(head)
    stages = attend(operands)
    tolerance = call.epsilon * (1 + _largest_score_sum(call, operands, stages))
    weight_error, output_error = _distance(call, head, stages)
    output_tolerance = 2 * tolerance + _summing(call, head)
    faults = _faults(call, head, operands, (tolerance, output_tolerance))
    agrees = weight_error <= tolerance and output_error <= output_tolerance  # False also when either is NaN
    verdict, reason = conclusion(agrees, weight_error, output_error, faults)
    if verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE) and (open_part := _not_rebuilt(call)):
        verdict, reason = Verdict.PARTIAL, open_part
    return Certificate(
        verdict=verdict,
        weight_error=weight_error,
        weight_tolerance=tolerance,
        output_error=output_error,
        output_tolerance=output_tolerance,
        precision=call.precision,
        faults=faults,
        reason=reason,
        positions=call.standing,
    )


def _not_rebuilt(call: AttentionCall) -> str:
    """What of the way from query and key to output was seen and not recomputed; nothing in most calls."""
    if call.remainder is not None:
        return "part of the score is known only as a remainder"
    if call.unread:
        return f"{call.unread} more softmax{'es' if call.unread > 1 else ''} of this layer could not be read"
    if call.reweighted is not None:
        return "the model changes the weights of its softmax before they meet the values"
    return call.reservation


def conclusion(
    agrees: bool, weight_error: float, output_error: float, faults: tuple[Fault, ...]
) -> tuple[Verdict, str]:
    """The verdict and the reason for it: agreement counts only where every fault would have been seen."""
    if math.isnan(weight_error + output_error):
        return Verdict.FAILED, "the model's own weights or output are not numbers"
    if not agrees:
        return Verdict.FAILED, "the recomputed attention is not the model's"
    unseen = [fault.name for fault in faults if not fault.power > 1]
    if unseen:
        return Verdict.INCONCLUSIVE, f"would not have been seen: {', '.join(unseen)}"
    return Verdict.CERTIFIED, ""


def _distance(call: AttentionCall, head: int, stages: Stages) -> tuple[float, float]:
    """Largest distance of weights, and of output relative to the largest value, from the model's own.

    Rows without any allowed key are left out: the reference has no answer there and says so.
    """
    answered = call.allowed_matrix(head).any(-1)
    largest_value = _values(call, head).abs().max().clamp_min(torch.finfo(torch.float64).tiny)
    weights_off = (stages.weights[0] - call.weights[head].double())[answered].abs()
    output = stages.output[0] if call.reweighted is None else _met(call, head)
    output_off = (output - call.output[head].double())[answered].abs() / largest_value
    return _largest(weights_off), _largest(output_off)


def _met(call: AttentionCall, head: int) -> Float[Tensor, "query value_dim"]:
    """The product of the values and the weights that met them, where these are not the softmax's."""
    assert call.reweighted is not None
    return call.reweighted[head].double() @ _values(call, head)


def _values(call: AttentionCall, head: int) -> Float[Tensor, "key value_dim"]:
    return call.v[call.key_head(head)].double()


def _largest(distances: Tensor) -> float:
    """Largest entry, NaN if any is NaN; 0 of nothing."""
    return float(distances.max()) if distances.numel() else 0.0


def _largest_score_sum(call: AttentionCall, operands: Operands, stages: Stages) -> float:
    """S of the tolerance: max over pairs of scale * sum |q_i k_i| + |bias|, dimensionless.

    Of the pairs that are allowed, those count whose weight is more than nothing: a score that lies, all its
    rounding included, 100 below the largest of its row has exp(-100) at most (masks of -1e9 are such).
    """
    sums = (operands.q.abs() @ operands.k.abs().transpose(-1, -2)) * abs(operands.scale)
    if operands.bias is not None:
        sums = sums + operands.bias.abs()
    logits = stages.masked
    highest = logits.amax(-1, keepdim=True)
    counts = (logits + call.epsilon * sums >= highest - 100) & (logits > -torch.inf)
    return _largest(sums[counts])


def _summing(call: AttentionCall, head: int) -> float:
    """How far a sum over the keys may be off, relative to the largest value: many alike are off one way."""
    keys = int(call.allowed_matrix(head).sum(-1).max())
    return keys * min(call.epsilon, torch.finfo(torch.float32).eps) / 2


def _faults(
    call: AttentionCall, head: int, operands: Operands, tolerances: tuple[float, float]
) -> tuple[Fault, ...]:
    """Every applicable fault applied to this call, hardest to see first."""
    tried = []
    for name, fault in {**FAULTS, **_dropped_terms(call, head)}.items():
        if (faulty := fault(call, head, operands)) is not None:
            weight_error, output_error = _distance(call, head, attend(faulty))
            power = max(weight_error / tolerances[0], output_error / tolerances[1])
            tried.append(Fault(name, weight_error, output_error, power))
    return tuple(sorted(tried, key=lambda fault: fault.power))


def _scale_off(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    return operands.but(scale=operands.scale * math.sqrt(2))


def _mask_dropped(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    return None if call.allowed_matrix(head).all() else operands.but(allowed=None)


def _window_dropped(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    if call.window is None:
        return None
    allowed = call.allowed_matrix(head)
    wider = allowed | _hidden_by_window(call, allowed)
    return None if torch.equal(wider, allowed) else operands.but(allowed=wider[None])


def _hidden_by_window(call: AttentionCall, allowed: Bool[Tensor, "query key"]) -> Bool[Tensor, "query key"]:
    """Pairs that only the window forbids: far enough apart, not in the future, and the key is no padding."""
    queries, keys = allowed.shape
    distance = torch.arange(queries)[:, None] + (keys - queries) - torch.arange(keys)[None, :]
    far = (
        distance >= (call.window or 0) if call.kind is Kind.DECODER else distance.abs() >= (call.window or 0)
    )
    return far & allowed.any(0) & allowed.any(1)[:, None]


def _soft_cap_dropped(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    return None if operands.softcap is None else operands.but(softcap=None)


def _dropped_terms(call: AttentionCall, head: int) -> dict[str, Made]:
    """One fault for each thing that is added; what is added twice (mask, mask 2) is left out at once."""
    by_name: dict[str, Tensor] = {}
    for name, added in call.added(head).items():
        plain = name.rstrip(" 0123456789")
        by_name[plain] = by_name[plain] + added if plain in by_name else added
    clashing = {name.removesuffix(" dropped") for name in FAULTS}
    return {
        f"{'added ' if name in clashing else ''}{name} dropped": _without(added)
        for name, added in by_name.items()
    }


def _without(added: Float[Tensor, "query key"]) -> Made:
    """The fault that leaves out one thing that is added to the scores; a constant along a row is no fault."""

    def drop(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
        if operands.bias is None:
            return None
        forbidden = ~call.allowed_matrix(head)
        highest = added.masked_fill(forbidden, -torch.inf).amax(-1)
        lowest = added.masked_fill(forbidden, torch.inf).amin(-1)
        tells = bool((highest > lowest).any()) or operands.sinks is not None
        return operands.but(bias=operands.bias - added) if tells else None

    return drop


def _sink_dropped(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    return None if operands.sinks is None else operands.but(sinks=None)


def _wrong_key_head(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    other = _neighbour(call.k, call, head)
    return None if other is None else operands.but(k=other)


def _wrong_value_head(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    other = _neighbour(call.v, call, head)
    return None if other is None else operands.but(v=other)


def _neighbour(shared: Tensor, call: AttentionCall, head: int) -> Tensor | None:
    """The entry of the next key/value head that is not the same, head axis of length 1; None without one.

    Models that repeat their heads before they hand them over have several that are.
    """
    mine = shared[call.key_head(head)]
    others = [(call.key_head(head) + step) % call.key_heads for step in range(1, call.key_heads)]
    other = next((each for each in others if not torch.equal(shared[each], mine)), None)
    return None if other is None else shared[other : other + 1].double()


def _rotation_left_out(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    """Not applicable where the model rotates nothing, so that the two keys are the same."""
    if call.unrotated_k is None or torch.equal(call.unrotated_k, call.k):
        return None
    key_head = call.key_head(head)
    return operands.but(k=call.unrotated_k[key_head : key_head + 1].double())


def _product_transposed(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    """Query and key exchanged; meaningless where the two axes differ in length."""
    return operands.but(q=operands.k, k=operands.q) if operands.q.shape == operands.k.shape else None


FAULTS: dict[str, Made] = {
    "scale off by sqrt 2": _scale_off,
    "mask dropped": _mask_dropped,
    "window dropped": _window_dropped,
    "soft cap dropped": _soft_cap_dropped,
    "sink dropped": _sink_dropped,
    "wrong key head": _wrong_key_head,
    "wrong value head": _wrong_value_head,
    "key rotation left out": _rotation_left_out,
    "query and key exchanged": _product_transposed,
}
