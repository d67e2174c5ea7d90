"""What a kernel would answer in a muted run, computed only where somebody asks for it.

Its output is zeros whatever it says, and nearly no model looks at its weights: so these stand for themselves
until an operation touches them, and are computed then.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import NoneType
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from attnscope.capture.following.takeover import KernelInputs


class Unasked(Tensor):
    """Weights that the kernel is asked for as soon as they are used."""

    ask: Callable[[], Tensor]

    @classmethod
    def to_be_asked(cls, ask: Callable[[], Tensor]) -> "Unasked":
        made: Unasked = torch.empty(0).as_subclass(cls)
        made.ask = ask
        return made

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        real = tree_map_only(Unasked, lambda each: each.ask(), (args, dict(kwargs or {})))
        return function(*real[0], **real[1])


class Kernels:
    """Answers for kernels: zeros laid out like their output, which those of one shape have in common."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], tuple[Tensor, bool]] = {}

    def answer(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        """Zeros, and the weights if the kernel returns them."""
        vectors = (given.query, given.key, given.value)
        shape = type(given.module), given.kernel, *((each.shape, each.dtype) for each in vectors)
        if shape not in self.known:
            self.known[shape] = _by_two(given) or _by_all(given)
        zeros, weighs = self.known[shape]
        return zeros.clone(), Unasked.to_be_asked(lambda: _weights(given)) if weighs else None


def _by_two(given: KernelInputs) -> tuple[Tensor, bool] | None:
    """Zeros for the output of all entries of the batch, and whether there are weights, as the first two tell.

    None where these cannot be asked for alone, or do not tell how all are laid out.
    """
    if type(given.mask) not in (NoneType, Tensor):  # other masks cannot be cut to some entries
        return None
    with suppress(RuntimeError, ValueError, TypeError, LookupError):
        output, weights = given.some(slice(2)).answer()
        if output.is_contiguous() and len(output) == 2:
            return output.new_zeros(len(given.query), *output.shape[1:]), weights is not None
    return None


def _by_all(given: KernelInputs) -> tuple[Tensor, bool]:
    output, weights = given.answer()
    return torch.zeros_like(output), weights is not None


def _weights(given: KernelInputs) -> Tensor:
    weights = given.answer()[1]
    assert weights is not None, "it returned some for the same shapes"
    return weights
