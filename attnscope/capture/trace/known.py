"""What becomes of what is known of a tensor when something is done with it that is no product of its own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from attnscope.capture.trace.memory import Known, Record
from attnscope.capture.trace.mixed import Answer, blend_by_einsum, mixed_again, mixed_by_einsum, moved_along
from attnscope.capture.trace.operations import COPIES, tensors_in
from attnscope.capture.trace.origin import Origin
from attnscope.capture.trace.result import Weights
from attnscope.capture.trace.scores import Part, Scores, moved


def is_matrix(operand: Tensor, origin: Origin) -> bool:
    """Whether an operand is a learned projection and no row of queries, keys or values."""
    return operand.ndim == 2 and origin.learned and not origin.given


def term_of(before: Mapping[int, Record]) -> Callable[[Any], Scores | Part | None]:
    """What is known of an argument when it is added to scores."""

    def term(value: Any) -> Scores | Part | None:
        if not isinstance(value, Tensor):
            return None
        record = before[id(value)]
        if isinstance(record.known, Scores):
            return record.known
        return Part(value, record.version, record.origin)

    return term


def known_moved(known: Known, move: Callable[[Tensor], Tensor]) -> Known:
    """The same of a tensor after a view, a transposition, a slice."""
    if isinstance(known, Scores):
        return moved(known, move)
    if isinstance(known, Weights):
        return replace(known, places=known.places.moved(move))
    return known and moved_along(known, move)


def of_einsum(args: Any, result: Tensor, before: dict[int, Record]) -> Known:
    """What an einsum makes that is no product of two stacks of matrices: weights or values, mixed."""
    sides = [before[id(operand)] for operand in tensors_in(args)]
    for side, known in enumerate(record.known for record in sides):
        if isinstance(known, Weights):
            return mixed_by_einsum(known, args, side, result)
        if isinstance(known, Answer) and known.mixed:
            return mixed_again(known, mixed_by_einsum(known.mixed, args, side, result))
    return blend_by_einsum(args, result, [record.origin for record in sides])


def weights_after(weights: Weights, name: str, result: Tensor) -> Weights | None:
    """Weights after an element-wise step; its meaning is found out when they meet the values."""
    if result.shape != weights.places.lead.shape or not result.is_floating_point():
        return None
    return weights if name in COPIES else replace(weights, changed=True)
