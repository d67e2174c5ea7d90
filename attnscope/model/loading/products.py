"""The linear layers of a model by oneDNN: on some processors its product takes half the time of torch's own.

What it computes is the same up to rounding and no longer the user's model to the last bit: so whoever asks
for it says so, and can have the model's own layers back for as long as it takes to compare.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from attnscope.errors import InputError

ONEDNN = "linear layers by oneDNN"


@dataclass(frozen=True, eq=False)
class OneDNN:
    """Where a model has a linear layer that oneDNN does: its owner, its name there, its own, the other."""

    places: tuple[tuple[nn.Module, str, nn.Module, nn.Module], ...]

    @classmethod
    def put_into(cls, model: nn.Module, name: str) -> "OneDNN":
        """Change every linear layer of `model`; `InputError` in one line where there is none to change.

        Classes derived from torch's own do something else besides, and are left alone.
        """
        if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            raise InputError("--fast is oneDNN's product, and this torch was built without it")
        from torch.utils.mkldnn import to_mkldnn

        linear = [
            (owner, child, layer)
            for owner in model.modules()
            for child, layer in owner._modules.items()  # a shared layer as often as it is shared
            if type(layer) is nn.Linear
            and layer.weight.dtype is torch.float32
            and layer.weight.device.type == "cpu"
        ]
        if not linear:
            raise InputError(f"--fast: {name} has no torch.nn.Linear in float32 that oneDNN could do")
        made = {layer: to_mkldnn(layer) for _, _, layer in linear}  # type: ignore[no-untyped-call]
        found = cls(tuple((owner, child, layer, made[layer]) for owner, child, layer in linear))
        found._put(3)
        return found

    def _put(self, which: int) -> None:
        for place in self.places:
            setattr(place[0], place[1], place[which])

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """While open, the model has its own layers."""
        self._put(2)
        try:
            yield
        finally:
            self._put(3)
