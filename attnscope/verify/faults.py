"""The faults that are put in on purpose: the one list of them, each for one head of one call.

A fault gets the call, a head and what that head is computed from, and returns the same with one thing wrong;
None where it cannot apply. What a fault leaves as it was it hands on as the very same object: by that the
parts of the arithmetic that it cannot change are known.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.arithmetic import Operands
from attnscope.attention import AttentionCall
from attnscope.reference import exact
from attnscope.results import Kind

Made = Callable[[AttentionCall, int, Operands], Operands | None]


def applicable(call: AttentionCall, head: int) -> dict[str, Made]:
    """Every fault that may apply to a head, by name: those of the list, and each added thing left out."""
    return {**FAULTS, **_dropped_terms(call, head)}


def _scale_off(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    return operands.but(scale=operands.scale * math.sqrt(2))


def _mask_dropped(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    everywhere = call.allowed is None or bool(call.allowed_matrix(head).all())
    return None if everywhere else operands.but(allowed=None)


def _window_dropped(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    if call.window is None:
        return None
    allowed = call.allowed_matrix(head)
    rows = torch.arange(len(allowed), device=allowed.device)
    wider = allowed | hidden_by_window(call, allowed, rows, allowed.any(0))
    return None if torch.equal(wider, allowed) else operands.but(allowed=wider[None])


def hidden_by_window(
    call: AttentionCall,
    allowed: Bool[Tensor, "row key"],
    rows: Int[Tensor, " row"],
    read: Bool[Tensor, " key"],
) -> Bool[Tensor, "row key"]:
    """Pairs that only the window forbids: far enough apart, not in the future, and the key is no padding.

    `allowed` is of those queries of the call that stand at `rows`, `read` says which keys are no padding.
    """
    (_, queries, _), keys = call.q.shape, call.k.shape[1]
    distance = rows[:, None] + (keys - queries) - torch.arange(keys, device=rows.device)
    size = call.window or 0
    far = distance >= size if call.kind is Kind.DECODER else distance.abs() >= size
    return far & read & allowed.any(1)[:, None]


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

    Models that repeat their heads before they hand them over have several that are, as copies. Heads that
    were made twice and differ by rounding are not the same: then the fault is seen to have no power.
    """
    place, count = call.key_head(head), call.key_heads
    mine, others = shared[place], ((place + step) % count for step in range(1, count))
    other = next((each for each in others if not torch.equal(shared[each], mine)), None)
    return None if other is None else exact(shared[other : other + 1])


def _rotation_left_out(call: AttentionCall, head: int, operands: Operands) -> Operands | None:
    """Not applicable where the model rotates nothing, so that the two keys are the same."""
    if call.unrotated_k is None or torch.equal(call.unrotated_k, call.k):
        return None
    key_head = call.key_head(head)
    return operands.but(k=exact(call.unrotated_k[key_head : key_head + 1]))


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
