"""What is known of a tensor while it is on its way from a product to a softmax: a sum of traced parts.

    scores = cap * tanh(product) + part + part + ...,  some cells forbidden

Each function here answers one operation of the model on such a sum. Nothing is computed for the model
and nothing is guessed: an operation that is not understood ends the sum (`trace_rebuild` then finds out
by comparing with the model's own logits what is missing).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from attnscope.capture.trace_operations import KEEPS, Move, Multiplication, product_shape
from attnscope.capture.trace_origin import Origin

_OVERWRITTEN = -1  # no tensor's version
FORBIDDEN = -1e4  # at or below, a score has no weight in any dtype: e^-10000 is 0; old masks add exactly this


@dataclass(frozen=True, eq=False)
class Places:
    """For every cell of the scores its leading index, its row and its column in the product, as numbers."""

    lead: Tensor
    row: Tensor
    column: Tensor

    def moved(self, move: Move) -> "Places":
        """The same after the cells have moved."""
        return Places(made(move, self.lead), made(move, self.row), made(move, self.column))


def made(move: Move, tensor: Tensor) -> Tensor:
    """`tensor` moved; written out first where the same numbers in one place stand in the way."""
    try:
        return move(tensor)
    except RuntimeError:
        return move(tensor.contiguous())


def places_of(lead: torch.Size, rows: int, columns: int, device: torch.device) -> Places:
    """The places of a fresh product `*lead row column`; nothing of that size is stored."""
    shape = (*lead, rows, columns)
    index = torch.arange(lead.numel(), device=device).view(*lead, 1, 1)
    return Places(
        index.expand(shape),
        torch.arange(rows, device=device)[:, None].expand(shape),
        torch.arange(columns, device=device).expand(shape),
    )


@dataclass(frozen=True, eq=False)
class Product:
    """The operands `*lead row dim` and `*lead column dim` of one product, and where its cells are now."""

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
    """A sum of parts of this `shape`; cells where a `forbidden` mask is True take no part in the softmax.

    With a `cap` the products stand inside of cap * tanh(...), all other parts outside.
    """

    shape: torch.Size
    parts: tuple[Part, ...]
    forbidden: tuple[Tensor, ...] = ()
    cap: float | None = None


def version(tensor: Tensor) -> int:
    """How often the tensor has been written to; 0 where torch does not count."""
    return 0 if tensor.is_inference() else tensor._version


def product_scores(
    made: Multiplication, result: Tensor, origin: Origin, origins: tuple[Origin, Origin]
) -> Scores:
    """The scores that one product begins with."""
    left, right, lead = product_shape(made)
    places = places_of(lead, left.shape[-2], right.shape[-2], result.device).moved(made.back)
    product = Product(left, right, lead, places, origins)
    # baddbmm has already added and scaled: its result is not the bare product
    bare = version(result) if made.added is None and made.factor == 1 else _OVERWRITTEN
    return Scores(result.shape, (Part(result, bare, origin, made.factor, product=product),))


def moved(scores: Scores, move: Move) -> Scores:
    """The scores after a view, a transposition, a slice: the same move made on every part."""

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
    """The scores times a number or a tensor, or divided by it."""
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
    """The sum of two scores, of this `shape`; None where both are capped."""
    if scores.cap is not None and other.cap is not None:
        return None
    parts = [scores.parts, other.parts]
    for place, each in enumerate((other, scores)):
        if each.cap is not None:  # what is added after the cap is no product inside of it
            parts[place] = tuple(replace(part, product=None) for part in parts[place])
    forbidden = (*scores.forbidden, *other.forbidden)
    return Scores(
        shape, _joined((*parts[0], *parts[1])), forbidden, scores.cap if other.cap is None else other.cap
    )


def _joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts, a tensor that is added twice (as Swin v2 does) as one part."""
    joined: dict[object, Part] = {}
    for part in parts:
        tensor = part.tensor
        layout = (tensor.dtype, tensor.shape, tensor.stride())
        same = (tensor.data_ptr(), part.version, *layout, *map(id, part.factors))
        before = joined.get(same)
        joined[same] = replace(before, factor=before.factor + part.factor) if before else part
    return tuple(joined.values())


def forbidding(scores: Scores, mask: Tensor) -> Scores:
    """The scores with the cells where `mask` is True set so low that they get no weight."""
    return replace(scores, forbidden=(*scores.forbidden, mask))


def capped(scores: Scores) -> Scores:
    """tanh of the scores: only products can be told inside of it."""
    products = tuple(part for part in scores.parts if part.product is not None)
    return replace(scores, parts=products, cap=1.0)


def is_number(value: Any) -> bool:
    """Whether `value` is a number, also as a tensor of one element."""
    return isinstance(value, Real) or (isinstance(value, Tensor) and value.numel() == 1)


def forbids(value: Any) -> bool:
    """Whether cells that are set to `value` get no weight."""
    if isinstance(value, Tensor):
        return value.numel() > 0 and value.is_floating_point() and float(value.max()) <= FORBIDDEN
    return isinstance(value, Real) and float(value) <= FORBIDDEN


def followed(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: Tensor,
    term_of: Callable[[Any], "Scores | Part | None"],
) -> Scores | None:
    """The scores that operation `name` makes of `args`; only their products where it is not understood.

    `term_of` gives what is known of an argument: scores, any other tensor as a part, None of what is no
    tensor. Moves are not made here.
    """
    known = [term_of(each) for each in args]
    mine = next((each for each in known if isinstance(each, Scores)), None)
    if mine is None or not result.is_floating_point():
        return None
    understood = _understood(name, args, kwargs, result.shape, known, mine)
    if understood is not None or mine.shape != result.shape:
        return understood
    # heads mixed by a matrix, cells bent: the products are still in it, what else was added is not to be told
    products = tuple(part for part in mine.parts if part.product is not None)
    return replace(mine, parts=products) if products else None


def _understood(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shape: torch.Size,
    known: Sequence["Scores | Part | None"],
    mine: Scores,
) -> Scores | None:
    """The scores that an operation makes of scores, where its meaning is known."""
    if name in KEEPS:
        return mine if mine.shape == shape else None
    if name in ("add", "sub", "rsub") and len(args) > 1:
        return _sum(name, args, known, kwargs, shape)
    if name in ("mul", "div") and len(args) > 1 and (name == "mul" or known[0] is mine):
        return scaled(mine, args[1] if known[0] is mine else args[0], divide=name == "div")
    if name == "neg":
        return scaled(mine, -1.0)
    if name == "tanh":
        return capped(mine) if mine.cap is None else None
    if name == "masked_fill":
        rest = list(args[1:])
        mask, value = (kwargs[each] if each in kwargs else rest.pop(0) for each in ("mask", "value"))
        return forbidding(mine, mask) if forbids(value) else None
    if name == "where" and len(args) == 3:
        return _selected(args, known)
    return None


def _sum(
    name: str,
    args: Sequence[Any],
    known: Sequence["Scores | Part | None"],
    kwargs: Mapping[str, Any],
    shape: torch.Size,
) -> Scores | None:
    """a + alpha * b, a - alpha * b or b - a; numbers that are added become parts as well."""
    alpha = float(kwargs.get("alpha", 1)) * (1 if name == "add" else -1)
    signs = (-1.0, 1.0) if name == "rsub" else (1.0, alpha)
    total: Scores | None = None
    for value, term, sign in zip(args, known, signs, strict=False):
        if term is None and isinstance(value, Real):
            if value == 0:
                continue
            number = torch.tensor(float(value))
            term = Part(number, version(number), Origin())
        if isinstance(term, Part):
            term = Scores(term.tensor.shape, (term,))
        if term is None or (signed := term if sign == 1 else scaled(term, sign)) is None:
            return None
        total = signed if total is None else added(total, signed, shape)
        if total is None:
            return None
    return total


def _selected(args: Sequence[Any], known: Sequence["Scores | Part | None"]) -> Scores | None:
    """torch.where on scores: understood where the other choice is so low that it forbids."""
    order = (0, 1, 2) if getattr(args[0], "dtype", None) == torch.bool else (1, 0, 2)  # x.where(mask, y)
    condition, chosen, other = order
    first, second = known[chosen], known[other]
    if isinstance(first, Scores) and forbids(args[other]):
        return forbidding(first, ~args[condition])
    if isinstance(second, Scores) and forbids(args[chosen]):
        return forbidding(second, args[condition])
    return None


def written(scores: Scores, index: Any, value: Any) -> Scores | None:
    """The scores after `scores[index] = value`: understood where the value forbids."""
    if not forbids(value):
        return None
    mask = torch.zeros(scores.shape, dtype=torch.bool, device=scores.parts[0].tensor.device)
    mask[index] = True
    return forbidding(scores, mask)
