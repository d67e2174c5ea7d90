"""Do the parts add up? What was traced is held against the logits that the model gave to its softmax.

The comparison is made in float64. Where it misses by more than rounding, the difference is a remainder:
it makes the sum right, and whoever reads it knows that the sum was not rebuilt.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnscope.capture.arithmetic import epsilon_of
from attnscope.capture.trace.layout import Layout
from attnscope.capture.trace.scores import FORBIDDEN
from attnscope.reference import brought, exact

_CELLS_AT_ONCE = 1 << 22
_Slices = tuple[slice, slice]


@dataclass(frozen=True, eq=False)
class Logits:
    """Operands of a softmax as `batch head query key`: those that `TracedAttention` hands on."""

    layout: Layout
    query: Tensor
    key: Tensor
    scale: float
    softcap: float | None
    terms: tuple[tuple[str, Tensor], ...]
    allowed: Tensor | None
    shifts: tuple[Tensor, ...] = ()  # the same for all keys of a query: no softmax feels them
    remainder: Tensor | None = None


def completed(parts: Logits, logits: Tensor) -> Logits:
    """The same with the remainder, if the parts do not add up to the model's `logits` within rounding."""
    off, masked = 0.0, True  # whether what counts as forbidden has no weight
    for where in _stretches(logits):
        difference = (exact(_part(logits, where)) - _sum(parts, where)).abs()
        if parts.allowed is not None:
            barred = ~_part(parts.allowed, where)
            difference = difference.masked_fill(brought(barred), 0)
            masked = masked and not (barred & (_part(logits, where) > FORBIDDEN / 10)).any()
        off = max(off, float(difference.amax().nan_to_num(torch.inf)))
    epsilon = epsilon_of(parts.query, parts.key, logits)
    if masked and off <= 2 * epsilon * (1 + _size(parts)):  # sums round by about eps * size
        return parts
    rest = torch.empty(logits.shape, dtype=torch.float32, device=logits.device)
    for where in _stretches(logits):
        rest[where] = (exact(_part(logits, where)) - _sum(parts, where)).float()
    readable = ~(logits <= FORBIDDEN)  # what is not a number is no mask: it must not pass for one
    allowed = readable if parts.allowed is None or not masked else parts.allowed & readable
    rest.masked_fill_(~allowed, 0)
    return replace(parts, remainder=rest, allowed=None if allowed.all() else allowed)


def _stretches(logits: Tensor) -> Iterator[_Slices]:
    """Slices of the batch and of the heads, so small that some copies of them fit into memory."""
    batch, heads, queries, keys = logits.shape
    entries = max(1, _CELLS_AT_ONCE // max(1, heads * queries * keys))
    some = heads if entries > 1 else max(1, _CELLS_AT_ONCE // max(1, queries * keys))
    for entry in range(0, batch, entries):
        for head in range(0, heads, some):
            yield slice(entry, entry + entries), slice(head, head + some)


def _part(tensor: Tensor, where: _Slices) -> Tensor:
    """The slices of a tensor whose axes of batch and head may have length 1 for all."""
    entries, heads = where
    tensor = tensor[entries] if tensor.shape[0] > 1 else tensor
    return tensor[:, heads] if tensor.shape[1] > 1 else tensor


def _sum(parts: Logits, where: _Slices) -> Tensor:
    """What the parts add up to, in float64."""
    total = exact(_part(parts.query, where)) @ exact(_part(parts.key, where)).mT * parts.scale
    if parts.softcap is not None:
        total = parts.softcap * torch.tanh(total / parts.softcap)
    for term in (*(term for _, term in parts.terms), *parts.shifts):
        total = total + exact(_part(term, where))
    return total


def _size(parts: Logits) -> float:
    """A bound of what makes up one logit: |q| |k| |scale| (Cauchy and Schwarz) and every term's largest."""
    longest = (float(exact(each).norm(dim=-1).amax()) for each in (parts.query, parts.key))
    terms = (*(term for _, term in parts.terms), *parts.shifts)
    return math.prod(longest) * abs(parts.scale) + sum(float(term.abs().amax()) for term in terms)
