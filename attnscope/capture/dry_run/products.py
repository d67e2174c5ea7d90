"""Products of a run without weights: how many, and the shapes of an attention that a model writes out itself.

Only lengths of axes are looked at. They are told whatever the layout, since the softmax runs over keys and
rows of it are queries; the heads are the axis before these, as the models hold them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"}


@dataclass(frozen=True)
class Shapes:
    """The lengths of the axes of one attention.

    `blocks` is how many separate attentions (windows) stand on the batch axis.
    """

    blocks: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    dim: int
    value_dim: int


class Products:
    """What one forward of one module has multiplied so far; `heads` is how many it says it has."""

    def __init__(self, heads: int | None = None) -> None:
        self.heads = heads
        self.made: list[tuple[Tensor, Tensor, Tensor]] = []
        self.scores: tuple[Tensor, Tensor, Tensor] | None = None  # query, key, what entered the softmax

    def after(self, function: Any, args: Any, kwargs: Mapping[str, Any], result: Any) -> list[Shapes]:
        """Takes note of one call; the attention that it completes, if it does."""
        name = getattr(function, "__name__", "")
        if name == "scaled_dot_product_attention":
            named = dict(zip(("query", "key", "value"), args, strict=False)) | dict(kwargs)
            return [_fused(named["query"], named["key"], named["value"])]
        if name == "softmax":
            entered = args[0] if args else kwargs["input"]
            self.scores = self._behind(entered)
            self.made = []
        elif name in _PRODUCTS:
            left, right = tensors_of(args, kwargs)[-2:]
            if self.scores is not None and self.scores[2].numel() in (left.numel(), right.numel()):
                query, key, entered = self.scores
                self.scores = None
                return [_written(query, key, entered, result, self.heads)]
            self.made.append((left, right, result))
        return []

    def _behind(self, entered: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
        """The first product since the last softmax that is as large as the scores: queries by keys."""
        fitting = (
            (left, right)
            for left, right, made in self.made
            if entered.ndim > 2 and made.numel() == entered.numel()
        )
        query, key = next(fitting, (None, None))
        return None if query is None or key is None else (query, key, entered)


def _fused(query: Tensor, key: Tensor, value: Tensor) -> Shapes:
    blocks, heads, queries, dim = (1,) * (4 - query.ndim) + tuple(query.shape)
    return Shapes(blocks, heads, key.shape[-3], queries, key.shape[-2], dim, value.shape[-1])


def _written(query: Tensor, key: Tensor, entered: Tensor, output: Tensor, stated: int | None) -> Shapes:
    """The shapes by the sizes alone; `stated` is how many heads the module says it has."""
    *lead, queries, keys = entered.shape
    attentions = math.prod(lead)
    folded = len(lead) == 1 and stated and attentions % stated == 0  # blocks and heads on one axis
    heads = stated if stated and (folded or stated in lead) else lead[-1]
    dim = query.numel() // (attentions * queries)
    key_heads_and_blocks = key.numel() // (keys * dim)
    blocks = attentions // heads
    return Shapes(
        blocks=blocks,
        heads=heads,
        key_heads=max(key_heads_and_blocks // blocks, 1),
        queries=queries,
        keys=keys,
        dim=dim,
        value_dim=output.numel() // (attentions * queries),
    )


def tensors_of(args: Any, kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The tensors of a call, also those in a list of operands, in order."""
    given = [*args, *kwargs.values()]
    flat = [inner for each in given for inner in (each if isinstance(each, tuple | list) else (each,))]
    return [each for each in flat if isinstance(each, Tensor)]


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
    return tensor.is_meta and tensor.dtype == torch.bool
