"""Where a tensor comes from, as far as the tracer needs it to name what is added to scores.

Position embeddings are learned and not given, activations are both, ALiBi slopes are not learned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.trace.operations import KEEPS, LOOKUPS, MIXES, MOVES, PRODUCTS, tensors_in

_SHAPES_KEPT = 8


@dataclass(frozen=True, eq=False)
class Origin:
    """Whether a tensor depends on what the model was given, on what it learned, on a table, on products.

    `products` hold the roots of the operands of each product that it was made of by element-wise steps;
    `root` stays the same under moves and scalings, and `shapes` are those that it has had since, newest last.
    """

    given: bool = False
    learned: bool = False
    looked_up: bool = False
    products: frozenset[tuple[object, object]] = frozenset()
    root: object = field(default_factory=object)
    shapes: tuple[torch.Size, ...] = ()

    @property
    def activation(self) -> bool:
        """Whether it was made from the input by learned parameters."""
        return self.given and self.learned


def first_origin(tensor: Tensor) -> Origin:
    """The origin of a tensor that was there before the tracer looked."""
    learned = isinstance(tensor, nn.Parameter)
    return Origin(given=not learned, learned=learned, shapes=(tensor.shape,))


def _by_a_number(args: Sequence[Any]) -> bool:
    return len(args) > 1 and (not isinstance(args[1], Tensor) or args[1].numel() == 1)


def origin_of(name: str, args: Sequence[Any], result: Tensor, operands: Sequence[Origin]) -> Origin:
    """The origin of what the operation `name` made of operands with these origins."""
    shape = (result.shape,)
    table = name in LOOKUPS or (name == "getitem" and next(tensors_in(args[1:]), None) is not None)
    moves = (name in MOVES or name in KEEPS) and not table
    if operands and (moves or (name in ("mul", "div") and _by_a_number(args))):
        return replace(operands[0], shapes=(*operands[0].shapes[1 - _SHAPES_KEPT :], *shape))
    given = any(each.given for each in operands)
    learned = any(each.learned for each in operands)
    if name in PRODUCTS and len(operands) > 1:
        roots = operands[-2].root, operands[-1].root
        return Origin(given, learned, products=frozenset({roots}), shapes=shape)
    if name in MIXES or name in PRODUCTS:  # an activation of its own
        return Origin(given, learned, shapes=shape)
    looked_up = table or any(each.looked_up for each in operands)
    products: frozenset[tuple[object, object]] = frozenset().union(*(each.products for each in operands))
    return Origin(given, learned, looked_up, products, shapes=shape)
