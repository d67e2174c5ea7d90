"""Runs as entries of one batch: what each of them has of a tensor, and the inputs of all of them.

Of a short text most of a run's time goes into Python code, or into reading weights. So runs that differ only
in what their hooks answer are made side by side, as entries of one batch. What part of a tensor is whose is
told by the shape that it has in one run alone; where that does not tell it, `Unlike` is raised.
"""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

import torch
from torch import Tensor

_ALIKE_FOR_ALL = (bool, int, float, str, NoneType)


class Unlike(Exception):
    """A tensor of a batch is not those of its runs side by side."""


class Parts(NamedTuple):
    """What each run has of a tensor; along no `axis` where it is the same tensor for all of them."""

    each: Sequence[Tensor]
    axis: int | None = None

    def joined(self, new: Sequence[Tensor | None]) -> Tensor | None:
        """The tensor with some of the parts replaced; None where none is, or nobody has one of its own."""
        if all(each is None for each in new):
            return None
        if len(self.each) == 1:
            return new[0]
        if self.axis is None:
            return None
        return torch.cat([a if b is None else b for a, b in zip(self.each, new, strict=True)], self.axis)


def parts_of(tensor: Tensor, count: int, like: torch.Size | None) -> Parts:
    """The parts of `count` runs, each of which has one of the shape `like`, or all the same one."""
    if count == 1 or tensor.shape == like:
        return Parts([tensor] * count)
    if like is None or len(like) != tensor.ndim:
        raise Unlike
    axes = [axis for axis, size in enumerate(like) if tensor.shape[axis] != size]
    if len(axes) != 1 or tensor.shape[axes[0]] != count * like[axes[0]]:
        raise Unlike
    return Parts(tensor.chunk(count, axes[0]), axes[0])


def own_parts(tensor: Tensor, count: int, like: torch.Size | None) -> Parts:
    """The same where each run has to have one of its own."""
    parts = parts_of(tensor, count, like)
    if count > 1 and parts.axis is None:
        raise Unlike
    return parts


def side_by_side(inputs: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The inputs of so many runs; `Unlike` where they cannot be one batch, as pictures beside a text."""
    tensors = {name: each for name, each in inputs.items() if isinstance(each, Tensor) and each.ndim}
    if len({len(each) for each in tensors.values()}) != 1 or any(each.ndim > 2 for each in tensors.values()):
        raise Unlike
    others = [each for name, each in inputs.items() if not isinstance(each, Tensor)]
    if not all(isinstance(each, _ALIKE_FOR_ALL) for each in others):
        raise Unlike
    return {**inputs, **{name: each.repeat(count, *[1] * (each.ndim - 1)) for name, each in tensors.items()}}
