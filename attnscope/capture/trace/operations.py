"""Reduce torch's many spellings of the operations of attention to one form each.

    x @ y, torch.matmul, bmm, baddbmm, einsum   ->  left `*lead row dim`, right `*lead column dim`
    x + y, x.add_(y), y.__radd__(x)             ->  "add"

Nothing here follows tensors; `tracer` does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Move = Callable[[Tensor], Tensor]

_MOVES = """view view_as reshape reshape_as transpose permute expand expand_as unsqueeze squeeze flatten
    unflatten movedim moveaxis swapaxes swapdims getitem select narrow mT T mH t chunk split unbind
    tensor_split repeat repeat_interleave tile roll flip index_select broadcast_to"""
_COPIES = "to float half double bfloat16 type type_as cuda cpu contiguous clone detach data dropout alias"
_BOUNDS = "clamp clip clamp_min clamp_max nan_to_num maximum minimum max min"

# an entry keeps its value, only its place changes: the same call moves anything of the same shape
MOVES = frozenset(_MOVES.split())
# an entry keeps its place and, but for rounding, its value
COPIES = frozenset(_COPIES.split())
BOUNDS = frozenset(_BOUNDS.split())
# an entry keeps place and value, unless that is out of bounds
KEEPS = COPIES | BOUNDS
PRODUCTS = frozenset({"matmul", "bmm", "mm", "einsum", "baddbmm", "addmm"})
LOOKUPS = frozenset({"embedding", "gather", "index_select", "take_along_dim", "index"})
# each row becomes an activation of its own
MIXES = frozenset({"linear", "conv1d", "conv2d", "conv3d", "layer_norm", "softmax"})
# a new tensor of the same shape, independent of the other's numbers
FRESH = ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "new_")
SILENT = frozenset({"shape", "size", "dim", "ndim", "dtype", "device", "numel", "is_floating_point", "grad"})

_SAME = {
    "iadd": "add",
    "radd": "add",
    "isub": "sub",
    "subtract": "sub",
    "imul": "mul",
    "rmul": "mul",
    "multiply": "mul",
    "truediv": "div",
    "itruediv": "div",
    "idiv": "div",
    "divide": "div",
    "true_divide": "div",
    "rmatmul": "matmul",
    "numpy_T": "T",
}


_IN_PLACE = frozenset({"iadd", "isub", "imul", "itruediv", "idiv", "ior", "iand", "ipow"})


def operation(function: Callable[..., Any]) -> str:
    """Plain name of a torch function, also of its in-place and reflected forms: `add` for `__iadd__`."""
    name = getattr(function, "__name__", "")
    if name == "__get__":  # a property of a tensor, as x.mT
        name = getattr(getattr(function, "__self__", None), "__name__", "")
    name = name.split(".")[0].strip("_")
    return _SAME.get(name, name)


def overwrites(function: Callable[..., Any]) -> bool:
    """Whether a call writes over its first argument, as add_, += and x[0] = 1 do."""
    name = getattr(function, "__name__", "").split(".")[0]
    if name.startswith("__"):
        return name == "__setitem__" or name.strip("_") in _IN_PLACE
    return name.endswith("_")


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors among arguments, also inside of lists and mappings."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from tensors_in(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from tensors_in(value)


@dataclass(frozen=True, eq=False)
class Multiplication:
    """One matrix product, with its operands in the model's own axes.

    `left` brings anything shaped like the left operand to `*lead row dim`, `right` anything shaped like
    the right one to `*lead column dim`; `result` brings the product to `*lead row column`, and `back`
    returns it from there. `added` is what the same call adds: a tensor and its factor.
    """

    operands: tuple[Tensor, Tensor]
    left: Move
    right: Move
    result: Move
    back: Move
    factor: float = 1.0
    added: tuple[Tensor, float] | None = None


def multiplication(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Multiplication | None:
    """The matrix product that a call makes; None when it is not one of two stacks of matrices."""
    if name == "einsum":
        return _einsum(args)
    if name in ("baddbmm", "addmm"):
        names = ("batch1", "batch2") if name == "baddbmm" else ("mat1", "mat2")
        given = list(args) + [kwargs[each] for each in ("input", *names) if each in kwargs]
        if len(given) != 3:
            return None
        beta, alpha = float(kwargs.get("beta", 1)), float(kwargs.get("alpha", 1))
        added = (given[0], beta) if beta else None
        return Multiplication((given[1], given[2]), _same, _mT, _same, _same, alpha, added)
    given = list(args) + [kwargs[each] for each in ("other", "mat2", "input") if each in kwargs]
    if len(given) != 2 or min(each.ndim for each in given) < 2:
        return None
    return Multiplication((given[0], given[1]), _same, _mT, _same, _same)


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _mT(tensor: Tensor) -> Tensor:
    return tensor.mT


def _einsum(args: Sequence[Any]) -> Multiplication | None:
    """`Multiplication` of a two-operand einsum with one row, column and contracted axis; else None."""
    operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    if not isinstance(args[0], str) or len(operands) != 2 or "..." in args[0] or "->" not in args[0]:
        return None
    inputs, out = args[0].replace(" ", "").split("->")
    first, second = inputs.split(",")
    lead = [axis for axis in out if axis in first and axis in second]
    rows = [axis for axis in out if axis in first and axis not in second]
    columns = [axis for axis in out if axis in second and axis not in first]
    contracted = [axis for axis in first if axis in second and axis not in out]
    if [len(rows), len(columns), len(contracted)] != [1, 1, 1]:
        return None
    if len(lead) + 2 != len(first) or len(lead) + 2 != len(second) or len(lead) + 2 != len(out):
        return None
    canonical = lead + rows + columns
    return Multiplication(
        (operands[0], operands[1]),
        left=_permuted([first.index(axis) for axis in lead + rows + contracted]),
        right=_permuted([second.index(axis) for axis in lead + columns + contracted]),
        result=_permuted([out.index(axis) for axis in canonical]),
        back=_permuted([canonical.index(axis) for axis in out]),
    )


def _permuted(order: Sequence[int]) -> Move:
    return lambda tensor: tensor.permute(*order)


def softmax_axis(args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """The axis, counted from 0, that a softmax call normalises; None when the call does not say."""
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    return axis % args[0].ndim if isinstance(axis, int) and args else None


def product_shape(multiplied: Multiplication) -> tuple[Tensor, Tensor, torch.Size]:
    """Operands as `*lead row dim` and `*lead column dim`, and the leading shape that both broadcast to."""
    left, right = multiplied.left(multiplied.operands[0]), multiplied.right(multiplied.operands[1])
    lead = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])  # type: ignore[no-untyped-call]
    return left, right, lead


def axes_mixed(args: Sequence[Any], side: int) -> tuple[list[int], int] | None:
    """For an einsum, the permutation of the axes of operand `side`, and the permuted axis that is mixed.

    None unless exactly one axis is, by an operand with as many rows as columns.
    """
    operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    if not isinstance(args[0], str) or len(operands) != 2 or "->" not in args[0]:
        return None
    (mine, other), out = _spelled_out(args[0].replace(" ", ""), operands)
    if side == 1:
        mine, other = other, mine
    gone, come = [axis for axis in mine if axis not in out], [axis for axis in out if axis not in mine]
    if len(gone) != 1 or len(come) != 1 or not {*gone, *come} <= set(other):
        return None
    rows, columns = (operands[1 - side].shape[other.index(axis)] for axis in (*gone, *come))
    before = [gone[0] if axis == come[0] else axis for axis in out]
    return ([mine.index(axis) for axis in before], out.index(come[0])) if rows == columns else None


def _spelled_out(equation: str, operands: Sequence[Tensor]) -> tuple[list[str], str]:
    """Axes of both operands and of the result of an einsum, with letters in place of "..."."""
    inputs, out = equation.split("->")
    named = inputs.split(",")
    hidden = [each.ndim + 3 - len(name) for each, name in zip(operands, named, strict=True) if "..." in name]
    letters = [chr(ord("α") + number) for number in range(max(hidden, default=0))]  # none that einsum knows
    spelled = []
    for each, name in zip(operands, named, strict=True):
        mine = letters[len(letters) - (each.ndim + 3 - len(name)) :]
        spelled.append(name.replace("...", "".join(mine)))
    return spelled, out.replace("...", "".join(letters))
