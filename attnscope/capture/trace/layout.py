"""Bring traced scores from the model's axes to `batch head query key`, and split them into operands.

Models fold batch and head into one axis, cut images into windows, put the head first or last. The places
that every cell of a product had tell the axes of its rows and columns whatever happened since; the head
is told by the shapes that the queries had before, or by the number of heads that the module states.

The traced sum that a softmax was given (`Logits`) becomes q, k, scale, cap, terms and mask, and is compared
with the logits that the model gave to its softmax, in float64. Where it misses by more than rounding, the
difference is a remainder: it makes the sum right, and says that the sum was not rebuilt from operands, so
that nothing read off the logits passes for one.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from attnscope.capture.arithmetic import epsilon_of
from attnscope.capture.trace.scores import FORBIDDEN, Origin, Part, Places, Product, Scores, places_of
from attnscope.reference import brought, exact

_CELLS_AT_ONCE = 1 << 22
_Slices = tuple[slice, slice]


@dataclass(frozen=True)
class Layout:
    """Order of axes that turns scores into batch (perhaps several, folded), head, query, key, and back."""

    order: tuple[int, ...]
    lead: tuple[int, ...]
    batch: int
    heads: int

    def arrange(self, tensor: Tensor) -> Tensor:
        """The tensor as `batch head query key`, from the model's axes."""
        ordered = tensor.permute(*self.order)
        return ordered.reshape(self.batch, self.heads, *ordered.shape[-2:])

    def spread(self, tensor: Tensor) -> Tensor:
        """The tensor in the model's axes, from `batch head query key`."""
        ordered = tensor.reshape(*self.lead, *tensor.shape[-2:])
        return ordered.permute(*(self.order.index(axis) for axis in range(len(self.order))))

    def places(self, queries: int, keys: int, device: torch.device) -> Places:
        """Places of every cell, counted in `batch head query key`, in the model's axes."""
        fresh = places_of(torch.Size((self.batch, self.heads)), queries, keys, device)
        return fresh.moved(self.spread)


def query_axis(places: Places, key_axis: int) -> tuple[int, bool] | None:
    """Axis of the queries, and whether rows and columns of the product are exchanged.

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
    """The axes along which the tensor's numbers differ."""
    place = compact(place)
    return {
        axis for axis in range(place.ndim) if not torch.equal(place, _first(place, axis).expand_as(place))
    }


def compact(tensor: Tensor) -> Tensor:
    """`tensor` with every expanded axis (stride 0) cut to length 1."""
    for axis, length in enumerate(tensor.shape):
        if length > 1 and tensor.stride(axis) == 0:
            tensor = _first(tensor, axis)
    return tensor


def in_order(tensor: Tensor, axis: int, order: Tensor) -> Tensor:
    """`tensor` with the entries of one axis in this order; itself where that changes nothing."""
    if torch.equal(order, torch.arange(tensor.shape[axis], device=order.device)):
        return tensor
    return tensor.index_select(axis, order)


def _first(tensor: Tensor, axis: int) -> Tensor:
    return tensor.narrow(axis, 0, 1)


def layout_of(
    shape: torch.Size, queries: int, keys: int, heads: int | None, shapes: Iterable[torch.Size]
) -> Layout:
    """Layout of scores of `shape` with these axes of queries and keys.

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
    """Sizes of batch and head that are folded into one axis, batch first; one head where unknown."""
    for shape in shapes:
        if len(shape) == 4 and shape[0] * shape[1] == folded and shape[2] == queries:
            return shape[0], shape[1]
    if heads and folded % heads == 0:
        return folded // heads, heads
    return folded, 1


@dataclass(frozen=True, eq=False)
class Logits:
    """Operands, terms and mask of a softmax as `batch head query key`, for a `TracedAttention`."""

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
    """`parts`, with the difference to the model's `logits` as remainder where it is more than rounding."""
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
    """Slices of the batch and of the heads, small enough for several copies to fit into memory."""
    batch, heads, queries, keys = logits.shape
    entries = max(1, _CELLS_AT_ONCE // max(1, heads * queries * keys))
    some = heads if entries > 1 else max(1, _CELLS_AT_ONCE // max(1, queries * keys))
    for entry in range(0, batch, entries):
        for head in range(0, heads, some):
            yield slice(entry, entry + entries), slice(head, head + some)


def _part(tensor: Tensor, where: _Slices) -> Tensor:
    """These slices of a tensor; its batch or head axis may have length 1, which stands for all."""
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
    """Upper bound of the size of one logit: |q| |k| |scale| (Cauchy-Schwarz) plus every term's largest."""
    longest = (float(exact(each).norm(dim=-1).amax()) for each in (parts.query, parts.key))
    terms = (*(term for _, term in parts.terms), *parts.shifts)
    return math.prod(longest) * abs(parts.scale) + sum(float(term.abs().amax()) for term in terms)


@torch.no_grad()
def rebuilt(scores: Scores, logits: Tensor | None, key_axis: int, heads: int | None) -> Logits | None:
    """Operands of the softmax's `logits`; None when no product of the sum runs along `key_axis`.

    `heads` is the count that the module states. Without `logits`, as in a fused kernel, nothing is compared.
    """
    placed = [(part, *roles) for part in scores.parts if (roles := _placed(part, scores, key_axis))]
    if not placed:
        return None
    # content meets content; a product with position embeddings is a term
    main, queries, exchanged = max(placed, key=lambda each: _made_from_activations(each[0]))
    product = cast(Product, main.product)
    mine = product.origins[exchanged]
    layout = layout_of(scores.shape, queries, key_axis, heads, mine.shapes)
    query, key = _operands(product, exchanged, layout, scores.shape)
    for factor in main.factors:
        query, key = _scaled_operands(query, key, _arranged(factor, layout, scores.shape, query.device))
    roots = mine.root, product.origins[not exchanged].root
    terms, shifts, allowed = _terms_and_allowed(scores, main, layout, roots)
    cap = scores.cap
    scale = main.factor * (1 if cap is None else cap)
    parts = Logits(layout, query, key, scale, cap, terms, allowed, shifts)
    return parts if logits is None else completed(parts, layout.arrange(logits))


def _placed(part: Part, scores: Scores, key_axis: int) -> tuple[int, bool] | None:
    """Query axis of a part and whether its roles are exchanged; None if it is no product along `key_axis`."""
    if part.product is None:
        return None
    return query_axis(part.product.places.moved(lambda place: place.expand(scores.shape)), key_axis)


def _made_from_activations(part: Part) -> int:
    return 0 if part.product is None else sum(origin.activation for origin in part.product.origins)


def _operands(product: Product, exchanged: bool, layout: Layout, shape: torch.Size) -> tuple[Tensor, Tensor]:
    """Query and key as `batch head token dim`, in the order of heads, queries and keys in the scores."""
    left, right, places = product.left, product.right, product.places
    row, column = places.row, places.column
    if exchanged:
        left, right, row, column = right, left, column, row
    lead = layout.arrange(places.lead.expand(shape))[:, :, 0, 0]
    queried = layout.arrange(row.expand(shape))[0, 0, :, 0]
    keyed = layout.arrange(column.expand(shape))[0, 0, 0]
    return (
        _picked(left.expand(*product.lead, *left.shape[-2:]), lead, queried),
        _picked(right.expand(*product.lead, *right.shape[-2:]), lead, keyed),
    )


def _picked(operand: Tensor, lead: Tensor, rows: Tensor) -> Tensor:
    """Rows of `*lead row dim` in this order of leading indices and rows, as `batch head row dim`."""
    flat = operand.reshape(-1, *operand.shape[-2:])
    flat = in_order(in_order(flat, 0, lead.flatten()), 1, rows)
    return flat.reshape(*lead.shape, *flat.shape[-2:])


def _arranged(tensor: Tensor, layout: Layout, shape: torch.Size, device: torch.device) -> Tensor:
    """The tensor as `batch head query key`, with length 1 along every axis where it is only expanded.

    A mask that was made for all layers is brought to the device on which this one works.
    """
    return compact(layout.arrange(tensor.expand(shape))).to(device)


def _scaled_operands(query: Tensor, key: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """Query and key with a factor multiplied in: into the key if it differs by key, else into the query.

    One that differs by both is a mask of zeros and ones, as in the first GPT, and stays with the cells.
    """
    if factor.shape[-1] == 1:
        return query * factor, key
    if factor.shape[-2] == 1:
        return query, key * factor.mT
    return query, key


def _terms_and_allowed(
    scores: Scores, main: Part, layout: Layout, roots: tuple[object, object]
) -> tuple[tuple[tuple[str, Tensor], ...], tuple[Tensor, ...], Tensor | None]:
    """Other parts by name, shifts of whole rows, and the mask of allowed pairs (None: all).

    Forbidden is what a mask covers, and what a part at or below `FORBIDDEN` is added to.
    """
    product = cast(Product, main.product)
    device = product.left.device
    barred = [_arranged(mask, layout, scores.shape, device) for mask in scores.forbidden]
    terms: list[tuple[str, Tensor]] = []
    shifts: list[Tensor] = []
    for part in scores.parts:
        if part is main or not part.intact:
            continue
        term = _arranged(part.tensor, layout, scores.shape, device)
        if not term.is_floating_point():  # whole numbers and truth values are added as they are
            term = term.to(product.left.dtype)
        if part.factor != 1:
            term = term * part.factor
        for factor in part.factors:
            term = term * _arranged(factor, layout, scores.shape, device)
        low = term <= FORBIDDEN
        if low.any():
            barred.append(low)
            term = term.masked_fill(low, 0)
        if term.shape[-1] == 1:
            shifts.append(term)
        elif term.any():
            terms.append((_name(part.origin, term, roots), term))
    allowed = None
    for each in barred:
        allowed = ~each if allowed is None else allowed & ~each
    return _distinct(terms), tuple(shifts), None if allowed is None or allowed.all() else allowed


def _name(origin: Origin, term: Tensor, roots: tuple[object, object]) -> str:
    """Name of a term, by its origin: a gathered product with the query or the key is DeBERTa's kind."""
    operands = {root for pair in origin.products for root in pair}
    if operands and origin.looked_up:
        if roots[0] in operands:
            return "content to position"
        if roots[1] in operands:
            return "position to content"
    if operands or (origin.learned and (origin.looked_up or not origin.given)):
        return "relative position"
    if origin.learned:
        return "bias"
    values = torch.unique(term)  # type: ignore[no-untyped-call]
    if len(values) <= 2:
        return "mask"
    return "alibi" if _is_straight(term) else "bias"


def _is_straight(term: Tensor) -> bool:
    """Whether values along the keys lie mostly on straight lines, as a bias that grows with distance does."""
    bends = term.diff(n=2, dim=-1).abs()
    return bool(exact(bends <= 1e-3 * (term.max() - term.min())).mean() > 0.5)


def _distinct(terms: list[tuple[str, Tensor]]) -> tuple[tuple[str, Tensor], ...]:
    seen: Counter[str] = Counter()
    named = []
    for name, term in terms:
        seen[name] += 1
        named.append((name if seen[name] == 1 else f"{name} {seen[name]}", term))
    return tuple(named)
