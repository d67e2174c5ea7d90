"""Follows what heads write on their straight way to the answer, and lets gradients go no other way.

    head's output -> output projection -> hidden state -> + + + ... -> last norm -> output embeddings -> logit
                                              |   later attention, feed-forward: held as they are   |

No names of modules and no list of architectures: every torch function is looked at as it runs.

    HEAD      a head's output, and what matrices alone make of it
    STREAM    a sum in which it stands, or a norm of such a sum: what layers hand on
    BRANCH    what a matrix made of the stream: the way to the logits, or into a later part of the model
    ENDED     made of these by something that is no sum, no matrix and no norm

What is added to the stream is held as it is, a branch that comes back to it too: that is what a later layer
made of it. A norm is held by its divisor (its mean is linear, and goes along). Everything else ends the way.
Values are those of the model: only gradients are changed. Whoever uses them holds the sum of all
parts against the logit; what no rule knows ends a way, so it can be missed but not made up.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from attnscope.capture.trace.operations import SILENT, operation, overwrites, tensors_in

Arguments = tuple[Any, ...]
Options = Mapping[str, Any]


class Role(IntEnum):
    """What a tensor is on the way from a head to the answer."""

    HEAD = 1
    STREAM = 2
    BRANCH = 3
    ENDED = 4
    ENDED_HEAD = 5  # made of a head's output itself, before it stood in a sum


ENDED = (Role.ENDED, Role.ENDED_HEAD)


class DirectPath(TorchFunctionMode):
    """While open, gradients go from what was marked as HEAD by the straight way alone.

    `leaves` is all that was added on the way, each with a gradient of its own.
    """

    def __init__(self, rules: Mapping[str, "Rule"]) -> None:
        super().__init__()
        self.rules = rules
        self.roles: Any = WeakTensorKeyDictionary()  # type: ignore[no-untyped-call]
        self.causes: Any = WeakTensorKeyDictionary()  # type: ignore[no-untyped-call]
        self.norms: Any = WeakTensorKeyDictionary()  # type: ignore[no-untyped-call]
        self.leaves: list[Tensor] = []

    def mark(self, tensor: Tensor, role: Role) -> None:
        self.roles[tensor] = role

    def role(self, value: Any) -> Role | None:
        """What a tensor is; None for one that nothing of a head's output is in, and for what is no tensor."""
        return self.roles.get(value) if isinstance(value, Tensor) else None

    def norms_to(self, tensor: Tensor) -> int:
        """How many norms stand on the longest way to `tensor`."""
        return int(self.norms.get(tensor, 0))

    def cause(self, tensor: Tensor) -> str:
        """The operation that ended the way to `tensor`."""
        return str(self.causes.get(tensor, ""))

    def __torch_function__(
        self, function: Any, types: Any, args: Arguments = (), kwargs: Options | None = None
    ) -> Any:
        kwargs, name = kwargs or {}, operation(function)
        given = [each for each in tensors_in((args, kwargs)) if each in self.roles]
        if name in SILENT or not given:
            return function(*args, **kwargs)
        rule = self.rules.get(name)
        if rule is not None and any(self.roles[each] not in ENDED for each in given):
            found = rule(self, function, args, kwargs)
            if found is not NotImplemented:
                return found
        result = function(*self.held(args), **self.held(kwargs))
        self._end(name, given, [*tensors_in(result), *(args[:1] if overwrites(function) else ())])
        return result

    def _end(self, name: str, given: Sequence[Tensor], made: Sequence[Any]) -> None:
        of_head = any(self.roles[each] in (Role.HEAD, Role.ENDED_HEAD) for each in given)
        causes = [self.causes[each] for each in given if each in self.causes]
        for each in made:
            if isinstance(each, Tensor):
                self.roles[each] = Role.ENDED_HEAD if of_head else Role.ENDED
                self.causes[each] = causes[0] if causes else name

    def held(self, value: Any) -> Any:
        """`value` with every tensor of a head's making cut off from gradients."""
        if isinstance(value, Tensor):
            return value.detach() if value in self.roles else value
        if isinstance(value, dict):
            return {key: self.held(each) for key, each in value.items()}
        if type(value) in (tuple, list):
            return type(value)(self.held(each) for each in value)
        return value

    def leaf(self, value: Any) -> Any:
        """A part that is held, with a gradient of its own; what is no floating tensor as it is."""
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        with torch._C.DisableTorchFunction():
            self.leaves.append(value.detach().clone().requires_grad_())  # the model may write over it
        return self.leaves[-1]

    def marked(self, result: Any, role: Role, of: Sequence[Any], norm: bool = False) -> Any:
        """The result with its role and the norms on the way to what it is made `of`, a `norm` more."""
        norms = max((self.norms_to(each) for each in of if isinstance(each, Tensor)), default=0) + norm
        for each in tensors_in(result):
            self.mark(each, role)
            self.norms[each] = norms
        return result

    def plainly(self, value: Any) -> bool:
        """Whether it is the same whatever heads answer: a weight, a number, a mask."""
        return self.role(value) is None


# what a torch function makes of what stands on the way, NotImplemented where that ends it
Rule = Callable[[DirectPath, Any, Arguments, Options], Any]
