"""Counting the products of a run without weights, from the shapes of their factors."""

from typing import Any

import torch
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
        if function is torch.ops.aten._local_scalar_dense.default and args[0].dtype == torch.bool:
            return True
        result = function(*args, **kwargs)
        reckon = flop_registry.get(function._overloadpacket)
        if reckon is not None:
            self.flops += reckon(*args, **kwargs, out_val=result)
        return result
