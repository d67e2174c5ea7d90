"""From the model's own axes to `batch head query key`, and whether what was traced adds up to the scores.

Models fold batch and head into one axis, cut images into windows, put the head first or last. The places
that every cell of a product had tell the axes of its rows and columns whatever happened since; the head
is told by the shapes that the queries had before, or by the number of heads that the module states.

What was traced (`Logits`) is then held against the logits that the model gave to its softmax, in float64.
Where it misses by more than rounding, the difference is a remainder: it makes the sum right, and says that
the sum was not rebuilt from operands.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnscope.capture.arithmetic import epsilon_of
from attnscope.capture.trace.scores import FORBIDDEN, Places, places_of
from attnscope.reference import brought, exact

_CELLS_AT_ONCE = 1 << 22
_Slices = tuple[slice, slice]


@dataclass(frozen=True)
class Layout:
    """How the axes of scores become batch (perhaps several, folded), head, query and key, and back."""

    order: tuple[int, ...]
    lead: tuple[int, ...]
    batch: int
    heads: int

    def arrange(self, tensor: Tensor) -> Tensor:
        """`batch head query key` from a tensor in the model's axes."""
        ordered = tensor.permute(*self.order)
        return ordered.reshape(self.batch, self.heads, *ordered.shape[-2:])

    def spread(self, tensor: Tensor) -> Tensor:
        """The model's axes from `batch head query key`."""
        ordered = tensor.reshape(*self.lead, *tensor.shape[-2:])
        return ordered.permute(*(self.order.index(axis) for axis in range(len(self.order))))

    def places(self, queries: int, keys: int, device: torch.device) -> Places:
        """The places of every cell, counted in `batch head query key`, in the model's axes."""
        fresh = places_of(torch.Size((self.batch, self.heads)), queries, keys, device)
        return fresh.moved(self.spread)


def query_axis(places: Places, key_axis: int) -> tuple[int, bool] | None:
    """The axis of the queries, and whether rows and columns of the product have changed roles.

    None when the cells along `key_axis` are not the columns (or rows) of one product.
    """
    lead, row, column = (varying(each) for each in (places.lead, places.row, places.column))
    for queries, keys, exchanged in ((row, column, False), (column, row, True)):
        if not keys <= {key_axis} or len(queries) > 1 or queries & (lead | {key_axis}) or key_axis in lead:
            continue
        if queries:
            return queries.pop(), exchanged
        single = [axis for axis in range(places.lead.ndim) if places.lead.shape[axis] == 1]
        if single := [axis for axis in single if axis != key_axis]:
            return single[-1], exchanged
    return None


def varying(place: Tensor) -> set[int]:
    """The axes along which the numbers differ."""
    place = compact(place)
    return {
        axis for axis in range(place.ndim) if not torch.equal(place, _first(place, axis).expand_as(place))
    }


def compact(tensor: Tensor) -> Tensor:
    """`tensor` with length 1 along every axis where all entries are the same one in memory."""
    for axis, length in enumerate(tensor.shape):
        if length > 1 and tensor.stride(axis) == 0:
            tensor = _first(tensor, axis)
    return tensor


def in_order(tensor: Tensor, axis: int, order: Tensor) -> Tensor:
    """`tensor` with these entries of one axis; itself where they are all of them as they stand."""
    if torch.equal(order, torch.arange(tensor.shape[axis], device=order.device)):
        return tensor
    return tensor.index_select(axis, order)


def _first(tensor: Tensor, axis: int) -> Tensor:
    return tensor.narrow(axis, 0, 1)


def layout_of(
    shape: torch.Size, queries: int, keys: int, heads: int | None, shapes: Iterable[torch.Size]
) -> Layout:
    """The layout of scores of `shape` with these axes of queries and keys.

    `heads` is how many the module says it has, `shapes` what the queries `... query dim` have been before.
    """
    lead = [axis for axis in range(len(shape)) if axis not in (queries, keys)]
    if len(lead) == 1:
        batch, count = _unfolded(shape[lead[0]], shape[queries], heads, shapes)
    else:
        named = [axis for axis in lead if shape[axis] == heads]
        if lead and named and shape[lead[-1]] != heads:
            lead.sort(key=lambda axis: axis == named[-1])  # the head last, the others as they were
        count = shape[lead[-1]] if lead else 1
        batch = math.prod(shape[axis] for axis in lead[:-1])
    return Layout((*lead, queries, keys), tuple(shape[axis] for axis in lead), batch, count)


def _unfolded(folded: int, queries: int, heads: int | None, shapes: Iterable[torch.Size]) -> tuple[int, int]:
    """Batch and heads that are folded into one axis, batch first; one head where nothing tells."""
    for shape in shapes:
        if len(shape) == 4 and shape[0] * shape[1] == folded and shape[2] == queries:
            return shape[0], shape[1]
    if heads and folded % heads == 0:
        return folded // heads, heads
    return folded, 1


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
    """The parts with the remainder, if the parts do not add up to the model's `logits` within rounding."""
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
