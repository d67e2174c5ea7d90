"""A kernel's answer on its way through a module, operation by operation.

Tensors are marked: those that hold the answer (moved, cast, changed by plain numbers), those that are made of
it. Every operation is made exactly as the module asks for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from attnscope.capture.trace.layout import varying
from attnscope.capture.trace.operations import COPIES, FRESH, MOVES, SILENT, operation, overwrites, tensors_in
from attnscope.capture.trace.scores import made as moved

_UNUSED = "the module does not use what its kernel returned"
_REORDERED = "the module puts what its kernel returned in another order before it goes on"
_CHANGED = "the module changes what its kernel returned before it goes on"

_JOINS = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack"})
_PUTS = frozenset(
    {"setitem", "copy", "index_copy", "index_put", "scatter", "masked_scatter", "slice_scatter"}
)


@dataclass(eq=False)
class Trail:
    """One answer and what became of it: whether it went on, and whether the module's result is made of it."""

    output: Tensor
    copy: Tensor
    used: bool = False
    changed: str = ""  # by which operation
    reordered: bool = False
    reached: bool = False

    @property
    def reason(self) -> str:
        """Why the answer does not go on; empty where it does."""
        if not self.reached or not (self.used or self.changed or self.reordered):
            return _UNUSED
        if self.used:
            return ""
        return _REORDERED if self.reordered else f"{_CHANGED} ({self.changed})"

    def use(self, mark: "Mark") -> None:
        """Something goes on that is marked so."""
        if not mark.holds or self.used:
            return
        if mark.changed or not _same(self.output, self.copy):
            self.changed = mark.changed or "written over"
        elif not _in_order(mark.features):
            self.reordered = True
        else:
            self.used = True


@dataclass(frozen=True, eq=False)
class Mark:
    """How a tensor follows from an answer: it holds it, perhaps changed by an operation, or is made of it.

    `features` are the numbers of the answer's heads and dimensions, cell by cell, -1 where a cell is none
    of the answer's; None where that is not known.
    """

    holds: bool = False
    changed: str = ""
    features: Tensor | None = None


_MADE = Mark()
_Marks = dict[Trail, Mark]


@dataclass(frozen=True, eq=False)
class _Call:
    """One call of a function of torch, and how its tensors were marked before."""

    function: Callable[..., Any]
    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    operands: tuple[Tensor, ...]
    marks: tuple[_Marks, ...]
    plain: tuple[bool, ...]

    def held(self, trail: Trail) -> list[tuple[Tensor, Mark]]:
        """The operands that hold an answer."""
        pairs = zip(self.operands, self.marks, strict=True)
        return [(each, marks[trail]) for each, marks in pairs if trail in marks and marks[trail].holds]

    def only_moves(self, trail: Trail) -> bool:
        """Whether the call moves or casts one tensor, which holds the answer."""
        first = bool(self.args) and self.args[0] is self.operands[0]
        held = trail in self.marks[0] and self.marks[0][trail].holds
        return first and held and self.name in MOVES | COPIES and not any(self.marks[1:])

    def by_numbers(self, trail: Trail) -> bool:
        """Whether there is nothing beside the answer but plain numbers."""
        (holder, _), *_ = self.held(trail)
        others = zip(self.operands, self.marks, self.plain, strict=True)
        return all(plain and not marks for each, marks, plain in others if each is not holder)


class Steps(TorchFunctionMode):
    """Follows the answers of one module's kernels from one function of torch to the next."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        kept = [*module.buffers(), *tensors_in(vars(module))]
        self.own = {id(each): each for each in kept}  # constants of the module's
        self.marks = WeakIdKeyDictionary()
        self.plain = WeakIdKeyDictionary()  # of what was made here, whether it was of numbers alone
        self.stores: dict[int, _Marks] = {}  # by address: what was written into

    def begin(self, output: Tensor) -> Trail:
        """The trail of an answer that a kernel has just returned."""
        trail, width = Trail(output, output.clone()), output.shape[2:]
        numbers = torch.arange(width.numel(), dtype=torch.int32, device=output.device)
        self.marks[output] = {trail: Mark(True, features=numbers.view(width).expand(output.shape))}
        return trail

    def used(self, values: Any) -> None:
        """What `values` hold of the answers goes on."""
        for tensor in tensors_in(values):
            for trail, mark in self._marks_of(tensor).items():
                trail.use(mark)

    def made(self, values: Any, result: Any) -> None:
        """A part of the module made `result` of `values`, perhaps by operations that were not seen."""
        trails = dict.fromkeys(trail for each in tensors_in(values) for trail in self._marks_of(each))
        for tensor in tensors_in(result) if trails else ():
            self.marks[tensor] = {**dict.fromkeys(trails, _MADE), **self._marks_of(tensor)}

    def finish(self, result: Any) -> None:
        """The module is through, and this is what it returns."""
        self.used(result)
        for tensor in tensors_in(result):
            for trail in self._marks_of(tensor):
                trail.reached = True

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs, name = kwargs or {}, operation(function)
        if name in SILENT:
            return function(*args, **kwargs)
        operands = tuple(tensors_in((args, kwargs)))
        marks = tuple(self._marks_of(each) for each in operands)
        plain = tuple(self._is_plain(each) for each in operands)
        call = _Call(function, name, args, kwargs, operands, marks, plain)
        empty = name.startswith(FRESH)
        trails = () if empty else tuple(dict.fromkeys(trail for each in marks for trail in each))
        for trail in trails:
            self._before(trail, call)
        result = function(*args, **kwargs)
        target = args[0] if args and overwrites(function) else kwargs.get("out")
        pieces = [target] if isinstance(target, Tensor) else list(tensors_in(result))
        for number, piece in enumerate(pieces):
            mark = {trail: _after(trail, call, piece, number, result) for trail in trails}
            self._remember(piece, mark, empty or all(plain), written=piece is target)
        return result

    def _before(self, trail: Trail, call: _Call) -> None:
        """The answer goes on where a call takes it together with what is more than plain numbers."""
        held = call.held(trail)
        if not held or call.name in _JOINS | _PUTS or call.only_moves(trail) or call.by_numbers(trail):
            return
        for _, mark in held:
            trail.use(mark)

    def _remember(self, tensor: Tensor, marks: _Marks, plain: bool, written: bool) -> None:
        self.plain[tensor] = plain
        self.marks[tensor] = marks
        if written and (marks or _store(tensor) in self.stores):
            for other in list(self.marks):  # views of the same memory
                if other is not tensor and _store(other) == _store(tensor):
                    self.marks[other] = {t: replace(m, features=None) for t, m in marks.items()}
            self.stores[_store(tensor)] = dict.fromkeys(marks, _MADE)

    def _marks_of(self, tensor: Tensor) -> _Marks:
        known: _Marks | None = self.marks.get(tensor)  # type: ignore[no-untyped-call]
        return (self.stores.get(_store(tensor), {}) if self.stores else {}) if known is None else known

    def _is_plain(self, tensor: Tensor) -> bool:
        """Whether a tensor is neither learned nor made of what the model reads, but a constant."""
        if isinstance(tensor, nn.Parameter):
            return False
        known: bool | None = self.plain.get(tensor)  # type: ignore[no-untyped-call]
        return (tensor.numel() == 1 or id(tensor) in self.own) if known is None else known


def _after(trail: Trail, call: _Call, piece: Tensor, number: int, result: Any) -> Mark:
    """How a result follows from one answer."""
    held = call.held(trail)
    if not held:
        return _MADE
    if call.name in _PUTS:
        put = [mark for tensor, mark in held if tensor is not call.operands[0]]
        changed = next((mark.changed for _, mark in held if mark.changed), "" if put else call.name)
        return Mark(True, changed)
    if call.name in _JOINS:
        return replace(held[0][1], features=_joined(trail, call))
    if call.only_moves(trail) and call.name != "dropout":
        return replace(held[0][1], features=_moved(held[0][1].features, call, piece, number, result))
    if not call.by_numbers(trail):
        return _MADE
    before, mark = held[0]
    if piece is before:
        same = not overwrites(call.function)
    else:  # a bound that nothing exceeds, a factor of one
        same = piece.shape == before.shape and _same(piece, before.to(piece.dtype))
    if same:
        return mark
    return replace(mark, changed=mark.changed or call.name)


def _moved(features: Tensor | None, call: _Call, piece: Tensor, number: int, result: Any) -> Tensor | None:
    """The features after a view, a transposition, a slice."""
    if features is None or call.name in COPIES:
        return features
    pick = isinstance(result, tuple | list)

    def move(each: Tensor) -> Tensor:
        there = call.function(each.expand(each.shape), *call.args[1:], **call.kwargs)
        return there[number] if pick else there  # type: ignore[no-any-return]

    there = moved(move, features)
    return there if there.shape == piece.shape else None


def _joined(trail: Trail, call: _Call) -> Tensor | None:
    """The features of what was put behind each other or on top of each other."""
    pieces = []
    for each, marks in zip(call.operands, call.marks, strict=True):
        features = marks[trail].features if trail in marks else each.new_full((1,), -1, dtype=torch.int32)
        if features is None:
            return None
        pieces.append(features.expand(each.shape))
    axis = {name: value for name, value in call.kwargs.items() if name == "dim"}
    return call.function(pieces, *call.args[1:], **axis)  # type: ignore[no-any-return]


def _in_order(features: Tensor | None) -> bool:
    """Whether heads and dimensions stand in the answer's order, along whatever axes.

    Of a matrix only the columns tell: its rows may be tokens times groups of heads, which a model that
    routes its tokens to experts (JetMoE) sorts by expert.
    """
    if features is None:
        return True
    telling = varying(features) & ({1} if features.ndim == 2 else set(range(features.ndim)))
    for axis in telling:
        steps = features.shape[axis] - 1
        here, there = features.narrow(axis, 0, steps), features.narrow(axis, 1, steps)
        if ((here > there) & (here >= 0) & (there >= 0)).any():
            return False
    return True


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether they are the same numbers, kept or times 1; what is no number is like another that is none."""
    return torch.equal(one, other) or bool(torch.isclose(one, other, rtol=0, atol=0, equal_nan=True).all())


def _store(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
