"""Follow heads' outputs on the direct path to the answer, and let gradients take no other way.

    head's output -> output projection -> hidden state -> + + + ... -> last norm -> output embeddings -> logit
                                              |   later attention, feed-forward: held as they are   |

No names of modules and no list of architectures: every torch function is looked at as it runs.

    HEAD      a head's output, and what matrices alone make of it
    STREAM    a sum in which it stands, or a norm of such a sum: what layers hand on
    BRANCH    what a matrix made of the stream: the way to the logits, or into a later part of the model
    ENDED     made of these by something that is no sum, no matrix and no norm

    moves, copies, means            keep what a tensor is
    sums, side by side              later parts that come back are held as they are
    times a weight, through a matrix  linear
    times or over one number for each position   a norm: that number is held (its mean goes along)
    times a gate                    of what the layer read: held, where a head's own output is gated

Everything else ends the way. Values are those of the model: only gradients are changed. Callers compare the
sum of all parts with the logit; what no rule knows ends a way, so it can be missed but not made up.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from attnscope.capture.trace.operations import COPIES, MOVES, SILENT, operation, overwrites, tensors_in

Arguments = tuple[Any, ...]
Options = Mapping[str, Any]
_LINEAR = (MOVES | COPIES | {"mean", "sum", "neg", "negative"}) - {"detach", "data"}


class Role(IntEnum):
    """Role of a tensor on the way from a head to the answer."""

    HEAD = 1
    STREAM = 2
    BRANCH = 3
    ENDED = 4
    ENDED_HEAD = 5  # made of a head's output itself, before it stood in a sum


ENDED = (Role.ENDED, Role.ENDED_HEAD)


class DirectPath(TorchFunctionMode):
    """Torch function mode: gradients reach tensors marked HEAD by the direct path alone.

    `leaves` are all tensors that were added on the way, each with a gradient of its own.
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
        """Role of a tensor; None where no head's output is in it, and for other values."""
        return self.roles.get(value) if isinstance(value, Tensor) else None

    def norms_to(self, tensor: Tensor) -> int:
        """Number of norms on the longest way to `tensor`."""
        return int(self.norms.get(tensor, 0))

    def cause(self, tensor: Tensor) -> str:
        """Name of the operation that ended the way to `tensor`; empty if none did."""
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
        """`value` with every tensor that has a role detached from gradients."""
        if isinstance(value, Tensor):
            return value.detach() if value in self.roles else value
        if isinstance(value, dict):
            return {key: self.held(each) for key, each in value.items()}
        if type(value) in (tuple, list):
            return type(value)(self.held(each) for each in value)
        return value

    def leaf(self, value: Any) -> Any:
        """A detached copy of a tensor with a gradient of its own; other values unchanged."""
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        with torch._C.DisableTorchFunction():
            self.leaves.append(value.detach().clone().requires_grad_())  # the model may write over it
        return self.leaves[-1]

    def marked(self, result: Any, role: Role, of: Sequence[Any], norm: bool = False) -> Any:
        """Mark `result` with its role and number of norms: the most among `of`, one more for a `norm`."""
        norms = max((self.norms_to(each) for each in of if isinstance(each, Tensor)), default=0) + norm
        for each in tensors_in(result):
            self.mark(each, role)
            self.norms[each] = norms
        return result

    def plainly(self, value: Any) -> bool:
        """Whether a value is independent of heads' outputs: a weight, a number, a mask."""
        return self.role(value) is None


# applies a torch function to tensors on the way; NotImplemented where it ends the way
Rule = Callable[[DirectPath, Any, Arguments, Options], Any]


def _moved(path: DirectPath, function: Any, args: Arguments, kwargs: Options) -> Any:
    """Rule for moves, copies, means and sums along an axis of one tensor, which keeps its role."""
    role = path.role(args[0]) if args else None
    if role is None or role in ENDED or overwrites(function):
        return NotImplemented
    made = function(args[0], *path.held(args[1:]), **path.held(dict(kwargs)))
    return path.marked(made, role, args[:1])


def _added(path: DirectPath, function: Any, args: Arguments, kwargs: Options) -> Any:
    if len(args) != 2:
        return NotImplemented
    parts, role = _summed(path, args)
    if overwrites(function):
        return _written(path, args[0], operation(function), parts, kwargs, role)
    return path.marked(function(*parts, **kwargs), role, parts)


def _joined(path: DirectPath, function: Any, args: Arguments, kwargs: Options) -> Any:
    """Rule for concatenation: pieces off the way are detached, with a gradient of their own."""
    parts, role = _summed(path, args[0])
    return path.marked(function(parts, *args[1:], **kwargs), role, parts)


def _summed(path: DirectPath, parts: Sequence[Any]) -> tuple[list[Any], Role]:
    roles = {path.role(each) for each in parts}
    on = {Role.HEAD, Role.STREAM} if roles & {Role.HEAD, Role.STREAM} else {Role.BRANCH}
    kept = [each if path.role(each) in on else path.leaf(each) for each in parts]
    if Role.STREAM in on and not roles & {Role.STREAM}:
        others = [each for each in parts if path.role(each) is not Role.HEAD]
        return kept, Role.HEAD if all(_is_weight(each) for each in others) else Role.STREAM
    return kept, Role.STREAM if Role.STREAM in on else Role.BRANCH


def _is_weight(value: Any) -> bool:
    return isinstance(value, nn.Parameter) or not isinstance(value, Tensor)


def _multiplied(path: DirectPath, function: Any, args: Arguments, kwargs: Options) -> Any:
    """Rule for products with a fixed tensor, with one number for each position (a norm), or with a gate."""
    if len(args) != 2:
        return NotImplemented
    name = operation(function)
    order = (0,) if name == "div" else (0, 1)
    for place in order:
        mine, other = args[place], args[1 - place]
        role = path.role(mine)
        if role is None or role in ENDED or not _scales(path, mine, other, role):
            continue
        held = path.held(other)
        norm = not path.plainly(other) and role is not Role.BRANCH and _by_position(mine, other)
        parts = [mine, held] if place == 0 else [held, mine]
        if overwrites(function):
            return _written(path, args[0], name, parts, kwargs, role, norm)
        return path.marked(function(*parts, **kwargs), role, [mine], norm)
    return NotImplemented


def _scales(path: DirectPath, mine: Tensor, other: Any, role: Role) -> bool:
    if path.plainly(other):
        return True
    theirs = path.role(other)
    if theirs in ENDED and _by_position(mine, other):
        return True
    # a gate of what the layer read, which the head's output is not in
    return role is Role.HEAD and theirs in (Role.BRANCH, Role.ENDED)


def _by_position(mine: Tensor, other: Tensor) -> bool:
    return other.shape[-1:] == (1,) and mine.shape[-1:] != (1,)


def _through_matrix(path: DirectPath, function: Any, args: Arguments, kwargs: Options) -> Any:
    """Rule for `linear`, and for products with a matrix that does not depend on heads' outputs."""
    name = operation(function)
    adds = {"linear": 2, "addmm": 0, "baddbmm": 0}.get(name)
    parts, named = list(args), dict(kwargs)
    if name == "einsum" and len(parts) == 2 and isinstance(parts[1], list | tuple):
        parts = [parts[0], *parts[1]]
    places = [i for i, each in enumerate(parts) if isinstance(each, Tensor) and i != adds]
    mine = [i for i in places if not path.plainly(parts[i])]
    if len(mine) != 1 or len(places) != 2 or path.role(parts[mine[0]]) in ENDED:
        return NotImplemented
    if any(isinstance(each, Tensor) and not path.plainly(each) for each in named.values()):
        return NotImplemented
    if adds is not None and len(parts) > adds:
        parts[adds] = path.leaf(path.held(parts[adds]))
    elif "bias" in named:
        named["bias"] = path.leaf(named["bias"])
    role = path.role(parts[mine[0]])
    made = function(*parts, **named)
    return path.marked(made, Role.HEAD if role is Role.HEAD else Role.BRANCH, [parts[mine[0]]])


def _normed(path: DirectPath, function: Any, args: Arguments, kwargs: Options) -> Any:
    """Rule for fused LayerNorm and RMSNorm: the model's own value, its gradient with the divisor held."""
    given, shape, *rest = args
    role = path.role(given)
    if role is None or role in ENDED:
        return NotImplemented
    centred = operation(function) == "layer_norm"
    weight = rest[0] if rest else kwargs.get("weight")
    bias = (rest[1] if len(rest) > 1 else kwargs.get("bias")) if centred else None
    eps = rest[1 + centred] if len(rest) > 1 + centred else kwargs.get("eps", 1e-5 if centred else None)
    axes = tuple(range(-len(tuple(shape)), 0))
    made = function(given.detach(), *args[1:], **kwargs)
    with torch._C.DisableTorchFunction():
        wide = given.float() if given.dtype in (torch.float16, torch.bfloat16) else given
        linear = wide - wide.mean(axes, keepdim=True) if centred else wide
        smallest = torch.finfo(given.dtype).eps if eps is None else eps
        linear = linear * (linear.detach().square().mean(axes, keepdim=True) + smallest).rsqrt()
        linear = linear if weight is None else linear * weight.detach()
        linear = linear if bias is None else linear + path.leaf(bias)
        linear = linear.to(made.dtype)
        return path.marked(made.detach() + (linear - linear.detach()), role, [given], True)


def _put(path: DirectPath, function: Any, args: Arguments, kwargs: Options) -> Any:
    """Rule for a write into another tensor, as a tracer puts a head's output in its place."""
    into, value = args[0], args[-1]
    role = path.role(value)
    if role is None or role in ENDED:
        return NotImplemented
    function(into, *path.held(args[1:-1]), value, **kwargs)
    path.mark(into, role)
    return None


def _written(
    path: DirectPath,
    into: Tensor,
    name: str,
    parts: Sequence[Any],
    kwargs: Options,
    role: Role,
    norm: bool = False,
) -> Tensor:
    """In-place sum or product: returns a new tensor, and copies its numbers into the old one."""
    do: dict[str, Callable[..., Tensor]] = {
        "add": torch.add,
        "sub": torch.sub,
        "mul": torch.mul,
        "div": torch.div,
    }
    made = do[name](*parts, **kwargs).to(into.dtype)
    with torch._C.DisableTorchFunction():
        into.data.copy_(made.detach())
    path.mark(into, Role.ENDED)
    path.causes[into] = f"{name} in place"
    return path.marked(made, role, parts, norm)  # type: ignore[no-any-return]


RULES: dict[str, Rule] = {
    **dict.fromkeys(_LINEAR, _moved),
    "add": _added,
    "sub": _added,
    "cat": _joined,
    "concat": _joined,
    "concatenate": _joined,
    "stack": _joined,
    "mul": _multiplied,
    "div": _multiplied,
    "linear": _through_matrix,
    "matmul": _through_matrix,
    "mm": _through_matrix,
    "addmm": _through_matrix,
    "einsum": _through_matrix,
    "layer_norm": _normed,
    "rms_norm": _normed,
    "setitem": _put,
}
