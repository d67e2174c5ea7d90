"""The linear layers of a model by oneDNN: on some processors its product takes half the time of torch's own.

What it computes is the same up to rounding and no longer the user's model to the last bit: so whoever asks
for it says so, and can have the model's own layers back for as long as it takes to compare. The weights are
the model's own, in their place: nothing is copied. It is the product that torch's compiler puts in the place
of a linear layer; torch's own door to oneDNN, `to_mkldnn`, keeps a second copy of all weights and takes up to
twice as long.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

import torch
from torch import Tensor, nn

from attnscope.errors import InputError

ONEDNN = "linear layers by oneDNN"


@dataclass(frozen=True, eq=False)
class OneDNN:
    """The linear layers of a model that oneDNN does."""

    layers: tuple[nn.Linear, ...]

    @classmethod
    def put_into(cls, model: nn.Module, name: str) -> "OneDNN":
        """Change every linear layer of `model`; `InputError` in one line where there is none to change.

        Classes derived from torch's own do something else besides, and are left alone; so are layers with a
        `forward` of their own.
        """
        if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            raise InputError("--fast is oneDNN's product, and this torch was built without it")
        if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
            raise InputError(f"--fast is oneDNN's product, and torch {torch.__version__} has no door to it")
        found = cls(tuple(layer for layer in model.modules() if _is_plain(layer)))
        if not found.layers:
            raise InputError(f"--fast: {name} has no torch.nn.Linear in float32 that oneDNN could do")
        found._put()
        return found

    def _put(self) -> None:
        for layer in self.layers:
            layer.forward = partial(product, layer)  # type: ignore[method-assign]

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """While open, the model has its own layers."""
        for layer in self.layers:
            del layer.forward
        try:
            yield
        finally:
            self._put()


def _is_plain(layer: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether it is torch's own linear layer, of numbers that oneDNN reads: of a bias it takes no strides."""
    if type(layer) is not nn.Linear or "forward" in vars(layer):
        return False
    on_cpu = layer.weight.dtype is torch.float32 and layer.weight.device.type == "cpu"
    return on_cpu and (layer.bias is None or layer.bias.is_contiguous())


def product(layer: nn.Linear, given: Tensor) -> Tensor:
    """What a linear layer answers, by oneDNN."""
    answer: Tensor = torch.ops.mkldnn._linear_pointwise(given, layer.weight, layer.bias, "none", [], "")
    return answer
