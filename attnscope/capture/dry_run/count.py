"""Counting the products of a run without weights, from the shapes of their factors."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry


class Count(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the floating-point operations of products, two for each multiplication with its addition.

    A question whose answer is yes or no is answered yes: of a text without padding that is mostly so.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is torch.ops.aten._local_scalar_dense.default and _is_question(args[0]):
            return True
        result = function(*args, **kwargs)
        reckon = flop_registry.get(function._overloadpacket)
        if reckon is not None:
            self.flops += reckon(*args, **kwargs, out_val=result)
        return result


def _is_question(tensor: Tensor) -> bool:
    """Whether it stands for yes or no and nothing tells which."""
    return tensor.is_meta and tensor.dtype == torch.bool
