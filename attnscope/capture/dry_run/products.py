"""The shapes of an attention that a model writes out itself: product, softmax, product.

Only lengths of axes are looked at. They are told whatever the layout, since the softmax runs over keys and
rows of it are queries; the heads are the axis before these, as the models hold them.
"""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

Shapes = tuple[int, int, int, int, int, int, int]  # blocks, heads, key heads, queries, keys, dim, value dim

_PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"}


class Products:
    """What one forward of one module has multiplied so far; `heads` is how many it says it has, 0 if none."""

    def __init__(self, heads: int = 0) -> None:
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
    return blocks, heads, key.shape[-3], queries, key.shape[-2], dim, value.shape[-1]


def _written(query: Tensor, key: Tensor, entered: Tensor, output: Tensor, told: int) -> Shapes:
    *lead, queries, keys = entered.shape
    attentions = math.prod(lead)
    together = len(lead) == 1 and told and attentions % told == 0  # blocks and heads on one axis
    heads = told if together or told in lead else lead[-1]
    dim = query.numel() // (attentions * queries)
    shared = key.numel() // (keys * dim)  # key heads times blocks
    value_dim = output.numel() // (attentions * queries)
    blocks = attentions // heads
    return blocks, heads, max(shared // blocks, 1), queries, keys, dim, value_dim


def tensors_of(args: Any, kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The tensors of a call, also those in a list of operands, in order."""
    given = [*args, *kwargs.values()]
    flat = [inner for each in given for inner in (each if isinstance(each, tuple | list) else (each,))]
    return [each for each in flat if isinstance(each, Tensor)]
