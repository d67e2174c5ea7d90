"""Traced scores on their way from a product to a softmax: a sum of known parts.

    scores = cap * tanh(product) + part + part + ...,  some cells forbidden

Here such sums begin, move, are scaled and added; `steps` tells from an operation's name which.
`Origin` says where a tensor comes from, as far as what is added to scores is named by it: position embeddings
are learned and not given, activations are both, ALiBi slopes are not learned.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.trace.operations import (
    KEEPS,
    LOOKUPS,
    MIXES,
    MOVES,
    PRODUCTS,
    Move,
    Multiplication,
    product_shape,
    tensors_in,
)

_SHAPES_KEPT = 8

_OVERWRITTEN = -1  # no tensor's version
FORBIDDEN = -1e4  # at or below, a score has no weight in any dtype: e^-10000 is 0; old masks add exactly this


@dataclass(frozen=True, eq=False)
class Origin:
    """Flags that say what a tensor was made from: input, learned parameters, a table, products.

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
        """Whether the tensor was made from the input by learned parameters."""
        return self.given and self.learned


def first_origin(tensor: Tensor) -> Origin:
    """Origin of a tensor that existed before the tracer."""
    learned = isinstance(tensor, nn.Parameter)
    return Origin(given=not learned, learned=learned, shapes=(tensor.shape,))


def _by_a_number(args: Sequence[Any]) -> bool:
    return len(args) > 1 and (not isinstance(args[1], Tensor) or args[1].numel() == 1)


def origin_of(name: str, args: Sequence[Any], result: Tensor, operands: Sequence[Origin]) -> Origin:
    """Origin of the result of operation `name` on operands with these origins."""
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


@dataclass(frozen=True, eq=False)
class Places:
    """For every cell of the scores, its leading index, row and column in the product, as numbers."""

    lead: Tensor
    row: Tensor
    column: Tensor

    def moved(self, move: Move) -> "Places":
        """The places after the cells have been moved."""
        return Places(made(move, self.lead), made(move, self.row), made(move, self.column))


def made(move: Move, tensor: Tensor) -> Tensor:
    """`tensor` moved; copied into contiguous memory first where the move fails on expanded axes."""
    try:
        return move(tensor)
    except RuntimeError:
        return move(tensor.contiguous())


def places_of(lead: torch.Size, rows: int, columns: int, device: torch.device) -> Places:
    """Places of a fresh product `*lead row column`, as expanded tensors without memory of that size."""
    shape = (*lead, rows, columns)
    index = torch.arange(lead.numel(), device=device).view(*lead, 1, 1)
    return Places(
        index.expand(shape),
        torch.arange(rows, device=device)[:, None].expand(shape),
        torch.arange(columns, device=device).expand(shape),
    )


@dataclass(frozen=True, eq=False)
class Product:
    """Operands `*lead row dim` and `*lead column dim` of one product, and the current places of its cells."""

    left: Tensor
    right: Tensor
    lead: torch.Size
    places: Places
    origins: tuple[Origin, Origin]


@dataclass(frozen=True, eq=False)
class Part:
    """One summand: `tensor * factor * factors`, all broadcastable to the scores; perhaps itself a product.

    `version` tells whether the model has written over the tensor since.
    """

    tensor: Tensor
    version: int
    origin: Origin
    factor: float = 1.0
    factors: tuple[Tensor, ...] = ()
    product: Product | None = None

    @property
    def intact(self) -> bool:
        return version(self.tensor) == self.version


@dataclass(frozen=True, eq=False)
class Scores:
    """Role: a sum of parts of this `shape`; cells where a `forbidden` mask is True get no weight.

    With a `cap` the products stand inside of cap * tanh(...), all other parts outside.
    """

    shape: torch.Size
    parts: tuple[Part, ...]
    forbidden: tuple[Tensor, ...] = ()
    cap: float | None = None


def version(tensor: Tensor) -> int:
    """Number of writes to the tensor; 0 where torch does not count."""
    return 0 if tensor.is_inference() else tensor._version


def product_scores(
    made: Multiplication, result: Tensor, origin: Origin, origins: tuple[Origin, Origin]
) -> Scores:
    """Scores with one product as their only part."""
    left, right, lead = product_shape(made)
    places = places_of(lead, left.shape[-2], right.shape[-2], result.device).moved(made.back)
    product = Product(left, right, lead, places, origins)
    # baddbmm has already added and scaled: its result is not the bare product
    bare = version(result) if made.added is None and made.factor == 1 else _OVERWRITTEN
    return Scores(result.shape, (Part(result, bare, origin, made.factor, product=product),))


def moved(scores: Scores, move: Move) -> Scores:
    """The scores after a view, a transposition or a slice, with every part moved alike."""

    def along(tensor: Tensor) -> Tensor:
        return made(move, tensor.expand(scores.shape))

    def follow(part: Part) -> Part:
        product = part.product
        if product is not None:
            product = replace(product, places=product.places.moved(along))
        tensor, factors = along(part.tensor), tuple(along(factor) for factor in part.factors)
        now = version(tensor) if part.intact else _OVERWRITTEN
        return replace(part, tensor=tensor, version=now, factors=factors, product=product)

    shape = along(torch.empty(1, device=scores.parts[0].tensor.device)).shape
    parts = tuple(follow(part) for part in scores.parts)
    return replace(scores, shape=shape, parts=parts, forbidden=tuple(map(along, scores.forbidden)))


def scaled(scores: Scores, factor: float | int | Tensor, *, divide: bool = False) -> Scores | None:
    """The scores multiplied (or divided) by a number or tensor; None if capped or widened by a tensor."""
    if isinstance(factor, Tensor) and factor.numel() > 1:
        broadest = torch.broadcast_shapes(scores.shape, factor.shape)  # type: ignore[no-untyped-call]
        if scores.cap is not None or broadest != scores.shape:
            return None
        one = 1 / factor if divide else factor
        parts = tuple(replace(part, factors=(*part.factors, one)) for part in scores.parts)
        return replace(scores, parts=parts)
    number = 1 / float(factor) if divide else float(factor)
    capped = scores.cap is not None
    parts = tuple(
        part if capped and part.product is not None else replace(part, factor=part.factor * number)
        for part in scores.parts
    )
    return replace(scores, parts=parts, cap=scores.cap * number if scores.cap is not None else None)


def added(scores: Scores, other: Scores, shape: torch.Size) -> Scores | None:
    """The sum of two scores, in this `shape`; None where both are capped."""
    if scores.cap is not None and other.cap is not None:
        return None
    parts = [scores.parts, other.parts]
    for place, each in enumerate((other, scores)):
        if each.cap is not None:  # what is added after the cap is no product inside of it
            parts[place] = tuple(replace(part, product=None) for part in parts[place])
    forbidden = (*scores.forbidden, *other.forbidden)
    cap = scores.cap if other.cap is None else other.cap
    return Scores(shape, _joined((*parts[0], *parts[1])), forbidden, cap)


def _joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts, with a tensor that is added twice (as Swin v2 does) as one part."""
    joined: dict[object, Part] = {}
    for part in parts:
        tensor = part.tensor
        layout = (tensor.dtype, tensor.shape, tensor.stride())
        same = (tensor.data_ptr(), part.version, *layout, *map(id, part.factors))
        before = joined.get(same)
        joined[same] = replace(before, factor=before.factor + part.factor) if before else part
    return tuple(joined.values())


def forbidding(scores: Scores, mask: Tensor) -> Scores:
    """The scores with one more mask: cells where it is True get no weight."""
    return replace(scores, forbidden=(*scores.forbidden, mask))


def capped(scores: Scores) -> Scores:
    """tanh of the scores: only products stay known inside of it, and a mask has no force there."""
    products = tuple(part for part in scores.parts if part.product is not None)
    return replace(scores, parts=products, forbidden=(), cap=1.0)
