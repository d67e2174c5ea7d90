"""What the tracer remembers of each tensor: where it comes from, and its role in an attention.

Where a tensor comes from (`Origin`) is kept as long as the tensor lives. Its role (scores, weights, the
answer, or a mixture of values) holds other tensors, large ones; it is kept until the watched module in which
it was made is done.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from attnscope.capture.trace.mixed import (
    Answer,
    Blend,
    blend_by_einsum,
    mixed_again,
    mixed_by_einsum,
    moved_along,
)
from attnscope.capture.trace.operations import COPIES, tensors_in
from attnscope.capture.trace.result import Weights
from attnscope.capture.trace.scores import Origin, Part, Scores, first_origin, moved, version

Role = Scores | Weights | Answer | Blend | None


@dataclass(frozen=True, eq=False)
class Record:
    """Origin and role of a tensor, which hold as long as it has this `version`."""

    version: int
    origin: Origin
    role: Role = None


class Memory:
    """Records by tensor; a scope is open for every watched module that is running."""

    def __init__(self) -> None:
        self._origins = WeakIdKeyDictionary()
        self._scopes: list[dict[int, tuple[Tensor, Record]]] = []

    def open(self) -> None:
        """A watched module begins."""
        self._scopes.append({})

    def close(self) -> None:
        """The innermost one is done: what was known of its scores and weights goes."""
        self._scopes.pop()

    def of(self, tensor: Tensor) -> Record:
        """What is known of `tensor`; as of a fresh one if it has been written over since."""
        now = version(tensor)
        for scope in reversed(self._scopes):
            if id(tensor) in scope and scope[id(tensor)][1].version == now:
                return scope[id(tensor)][1]
        record: Record | None = self._origins.get(tensor)  # type: ignore[no-untyped-call]
        return record if record and record.version == now else Record(now, first_origin(tensor))

    def keep(self, tensor: Tensor, origin: Origin, role: Role = None) -> None:
        """Remember `tensor` as it is now."""
        now = version(tensor)
        self._origins[tensor] = Record(now, origin)
        if self._scopes:
            self._scopes[-1].pop(id(tensor), None)
            if role is not None:
                self._scopes[-1][id(tensor)] = tensor, Record(now, origin, role)


def is_matrix(operand: Tensor, origin: Origin) -> bool:
    """Whether an operand is a learned projection and no row of queries, keys or values."""
    return operand.ndim == 2 and origin.learned and not origin.given


def term_of(before: Mapping[int, Record]) -> Callable[[Any], Scores | Part | None]:
    """What is known of an argument when it is added to scores."""

    def term(value: Any) -> Scores | Part | None:
        if not isinstance(value, Tensor):
            return None
        record = before[id(value)]
        if isinstance(record.role, Scores):
            return record.role
        return Part(value, record.version, record.origin)

    return term


def role_moved(role: Role, move: Callable[[Tensor], Tensor]) -> Role:
    """The role of a tensor after a view, a transposition, a slice of it."""
    if isinstance(role, Scores):
        return moved(role, move)
    if isinstance(role, Weights):
        return replace(role, places=role.places.moved(move))
    return role and moved_along(role, move)


def of_einsum(args: Any, result: Tensor, before: dict[int, Record]) -> Role:
    """What an einsum makes that is no product of two stacks of matrices: weights or values, mixed."""
    sides = [before[id(operand)] for operand in tensors_in(args)]
    for side, role in enumerate(record.role for record in sides):
        if isinstance(role, Weights):
            return mixed_by_einsum(role, args, side, result)
        if isinstance(role, Answer) and role.mixed:
            return mixed_again(role, mixed_by_einsum(role.mixed, args, side, result))
    return blend_by_einsum(args, result, [record.origin for record in sides])


def weights_after(weights: Weights, name: str, result: Tensor) -> Weights | None:
    """Weights after an element-wise step; its meaning is found out when they meet the values."""
    if result.shape != weights.places.lead.shape or not result.is_floating_point():
        return None
    return weights if name in COPIES else replace(weights, changed=True)
