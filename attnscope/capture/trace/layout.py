"""From the model's own axes to `batch head query key`: which axis of the scores is which.

Models fold batch and head into one axis, cut images into windows, put the head first or last. The places
that every cell of a product had tell the axes of its rows and columns whatever happened since; the head
is told by the shapes that the queries had before, or by the number of heads that the module states.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from attnscope.capture.trace.scores import Places, places_of


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
