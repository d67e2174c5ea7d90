"""The tracer's record of each tensor: its origin, and its role in an attention.

Where a tensor comes from (`Origin`) is kept as long as the tensor lives. Its role (scores, weights, the
answer, or a mixture of values) holds other tensors, large ones; it is kept until the watched module in which
it was made is done. A matrix between the weights and the values makes products that are no attention's
output, though they look it:

    w @ B @ v,  B @ w @ v    the weights of several keys (or queries, or heads) are mixed: still weights
    w @ (B @ v)              the values of several tokens are mixed: no longer one token's each

The first product of the weights is an output until what came out of it meets values in its turn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from attnscope.capture.trace.fused import TracedAttention, Weights
from attnscope.capture.trace.layout import varying
from attnscope.capture.trace.operations import (
    COPIES,
    MIXES,
    Multiplication,
    axes_mixed,
    product_shape,
    tensors_in,
)
from attnscope.capture.trace.scores import Origin, Part, Scores, first_origin, made, moved, version


@dataclass(frozen=True, eq=False)
class Answer:
    """Role: product of weights with another operand: an output, or weights that a matrix mixed.

    `columns` tells of every cell which column of the met operand it is of; `mixed` are the weights that it
    is in the second case, None where its shape leaves only the first.
    """

    attention: TracedAttention
    logits: object
    columns: Tensor
    mixed: Weights | None


@dataclass(frozen=True, eq=False)
class Doubt:
    """An attention whose output met another product; `instead` is the one with that product as output.

    It holds unless a softmax shows that the output was compared: its `root` is one of the operands then.
    """

    root: object
    attention: TracedAttention
    instead: TracedAttention | None
    logits: object


@dataclass(frozen=True, eq=False)
class Blend:
    """Role: a product with a fixed square matrix of the model, and the matrix row behind each cell."""

    rows: Tensor


def answer_of(
    attention: TracedAttention, weights: Weights, made: Multiplication, side: int, result: Tensor
) -> Answer:
    """`Answer` for the product that completed `attention`, with the weights as its operand `side`."""
    columns = _numbered(made, result, 1 - side)
    return Answer(attention, weights.logits, columns, mixed_weights(weights, made, side, result))


def mixed_weights(weights: Weights, made: Multiplication, side: int, result: Tensor) -> Weights | None:
    """`Weights` after a product with a square matrix; None where the product has another shape."""
    turned = made.right(weights.places.row).mT if side else made.left(weights.places.row)
    if turned.shape != (*product_shape(made)[2], *made.result(result).shape[-2:]):
        return None
    move = (lambda place: made.back(made.right(place).mT)) if side else lambda p: made.back(made.left(p))
    return replace(weights, places=weights.places.moved(move), changed=True)


def mixed_again(answer: Answer, mixed: Weights | None) -> Answer | None:
    """The answer after a further mixing of its weights; None if it can be weights no more."""
    return None if mixed is None else replace(answer, mixed=mixed, columns=mixed.places.column)


def contracts(columns: Tensor, made: Multiplication, side: int) -> bool:
    """Whether a product sums over the axis along which `columns` of its operand `side` differ."""
    operand = (made.left if side == 0 else made.right)(columns)
    return operand.ndim - 1 in varying(operand)


def after(answer: Answer, name: str, result: Tensor) -> Answer | None:
    """The answer after an element-wise step, or a layer that keeps its shape; None if it is lost."""
    if result.shape != answer.columns.shape or not result.is_floating_point():
        return None
    if answer.mixed is None or name in COPIES:
        return None if name in MIXES else answer
    return replace(answer, mixed=replace(answer.mixed, changed=True))


def mixed_by_einsum(weights: Weights, args: Sequence[Any], side: int, result: Tensor) -> Weights | None:
    """`Weights` after an einsum that is no product of two stacks of matrices, but mixes one axis."""
    if (found := axes_mixed(args, side)) is None:
        return None
    places = weights.places.moved(lambda place: place.permute(*found[0]))
    return replace(weights, places=places, changed=True) if places.row.shape == result.shape else None


def blend_of(made: Multiplication, result: Tensor, origins: tuple[Origin, Origin]) -> Blend | None:
    """`Blend` of a product of an activation with a square matrix of the model; None for others."""
    side = _fixed(origins)
    if side is None or len({*made.operands[side].shape[-2:]}) > 1:
        return None
    return Blend(_numbered(made, result, side))


def blend_by_einsum(args: Sequence[Any], result: Tensor, origins: Sequence[Origin]) -> Blend | None:
    """`Blend` of an einsum that is no product of two stacks of matrices."""
    side = _fixed(origins)
    if side is None or (found := axes_mixed(args, 1 - side)) is None:
        return None
    shape = [1] * result.ndim
    shape[found[1]] = -1
    number = torch.arange(result.shape[found[1]], device=result.device)
    return Blend(number.view(shape).expand(result.shape))


def is_blended(values: object, made: Multiplication, side: int) -> bool:
    """Whether the product sums over rows of a matrix that mixed the `values`, its operand `side`."""
    if isinstance(values, Scores):
        for product in [part.product for part in values.parts if part.product]:
            fixed = _fixed(product.origins)
            if fixed is not None and len({*(product.left, product.right)[fixed].shape[-2:]}) == 1:
                place = (product.places.row, product.places.column)[fixed]
                return contracts(place.expand(values.shape), made, side)
    return isinstance(values, Blend) and contracts(values.rows, made, side)


def _fixed(origins: Sequence[Origin]) -> int | None:
    """Index of the operand that came with the model, if the other one is an activation; else None."""
    if len(origins) != 2 or origins[0].activation == origins[1].activation:
        return None
    return int(origins[0].activation)


def _numbered(made: Multiplication, result: Tensor, side: int) -> Tensor:
    """For every cell of a product, the row of its operand `side` (0 is the left one) that it comes from."""
    product = made.result(result)
    number = torch.arange(product.shape[side - 2], device=result.device)
    return made.back((number if side else number[:, None]).expand(product.shape))


Role = Scores | Weights | Answer | Blend | None


@dataclass(frozen=True, eq=False)
class Record:
    """Origin and role of a tensor, valid as long as it has this `version`."""

    version: int
    origin: Origin
    role: Role = None


class Memory:
    """Records of tensors; a scope is open for every watched module that is running."""

    def __init__(self) -> None:
        self._origins = WeakIdKeyDictionary()
        self._scopes: list[dict[int, tuple[Tensor, Record]]] = []

    def open(self) -> None:
        """Open a scope for a watched module that begins."""
        self._scopes.append({})

    def close(self) -> None:
        """Close the innermost scope, and drop the roles recorded in it."""
        self._scopes.pop()

    def of(self, tensor: Tensor) -> Record:
        """The record of `tensor`; a fresh one if it is unknown or has been written over since."""
        now = version(tensor)
        for scope in reversed(self._scopes):
            if id(tensor) in scope and scope[id(tensor)][1].version == now:
                return scope[id(tensor)][1]
        record: Record | None = self._origins.get(tensor)  # type: ignore[no-untyped-call]
        return record if record and record.version == now else Record(now, first_origin(tensor))

    def keep(self, tensor: Tensor, origin: Origin, role: Role = None) -> None:
        """Record `tensor` in its current version."""
        now = version(tensor)
        self._origins[tensor] = Record(now, origin)
        if self._scopes:
            self._scopes[-1].pop(id(tensor), None)
            if role is not None:
                self._scopes[-1][id(tensor)] = tensor, Record(now, origin, role)


def is_matrix(operand: Tensor, origin: Origin) -> bool:
    """Whether an operand is a learned matrix that does not depend on the model's input."""
    return operand.ndim == 2 and origin.learned and not origin.given


def term_of(before: Mapping[int, Record]) -> Callable[[Any], Scores | Part | None]:
    """Lookup of an argument's scores, or of any other tensor as a `Part`; None for other values."""

    def term(value: Any) -> Scores | Part | None:
        if not isinstance(value, Tensor):
            return None
        record = before[id(value)]
        if isinstance(record.role, Scores):
            return record.role
        return Part(value, record.version, record.origin)

    return term


def role_moved(role: Role, move: Callable[[Tensor], Tensor]) -> Role:
    """The role of a tensor after a view, a transposition or a slice."""
    if isinstance(role, Scores):
        return moved(role, move)
    if isinstance(role, Weights):
        return replace(role, places=role.places.moved(move))
    if role is None or isinstance(role, Blend):
        return role and Blend(made(move, role.rows))
    mixed = role.mixed and replace(role.mixed, places=role.mixed.places.moved(move))
    return replace(role, columns=made(move, role.columns), mixed=mixed)


def of_einsum(args: Any, result: Tensor, before: dict[int, Record]) -> Role:
    """Role of the result of an einsum, no product of two stacks of matrices, that mixes weights or values."""
    sides = [before[id(operand)] for operand in tensors_in(args)]
    for side, role in enumerate(record.role for record in sides):
        if isinstance(role, Weights):
            return mixed_by_einsum(role, args, side, result)
        if isinstance(role, Answer) and role.mixed:
            return mixed_again(role, mixed_by_einsum(role.mixed, args, side, result))
    return blend_by_einsum(args, result, [record.origin for record in sides])


def weights_after(weights: Weights, name: str, result: Tensor) -> Weights | None:
    """`Weights` after an element-wise step; its meaning is found out when they meet the values."""
    if result.shape != weights.places.lead.shape or not result.is_floating_point():
        return None
    return weights if name in COPIES else replace(weights, changed=True)
