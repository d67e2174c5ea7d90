"""Arrays in documents: by name in an npz or as nested lists in JSON, checked by their annotations.

An axis name has one length within an object of a file and the objects inside it.
"""

from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import Shaped

from attnscope.errors import Damaged
from attnscope.results.base.presented import Arrays, Value
from attnscope.results.stored.strict import Missing
from attnscope.tokens import Tokens

Sizes = dict[str, int]  # of axes by their names
Hint = Any  # a type as an annotation gives it
IN_NPZ = "npz"  # {"npz": name} stands in a document where an npz has the array of that name
_NUMBERS = {
    "f": (np.float64, "float64", "numbers"),
    "i": (np.int64, "int64", "whole numbers"),
    "b": (np.bool_, "bool", "true and false"),
}


def array_of(hint: Hint) -> Hint | None:
    """The array annotation in a type (an array, or tuples of arrays); None without one."""
    origin: Any = get_origin(hint)
    if origin is tuple and get_args(hint):
        return array_of(get_args(hint)[0])
    return hint if hasattr(hint, "dim_str") else None


def parted(value: Value, arrays: Arrays, path: tuple[str, ...] = ()) -> Value:
    """Replaces the arrays in `value` by names, and puts them into `arrays`.

    Names are made of the keys that lead to an array; one that occurs several times is stored once.
    """
    if isinstance(value, np.ndarray):
        again = next((name for name, each in arrays.items() if each is value), None)
        if again is None:
            again = " ".join(path)
            if again in arrays:
                raise ValueError(f"two arrays are called '{again}'")
            arrays[again] = value
        return {IN_NPZ: again}
    if isinstance(value, dict):
        return {key: parted(each, arrays, (*path, str(key))) for key, each in value.items()}
    if isinstance(value, list):
        return [parted(each, arrays, (*path, str(i))) for i, each in enumerate(value)]
    return value


def array_in(value: Value, hint: Hint, name: str, arrays: Arrays | None, sizes: Sizes) -> Any:
    """The array (or tuples of arrays) at `name`; `Damaged` where it is missing or does not fit."""
    depth, wanted = 0, hint
    while not hasattr(wanted, "dim_str"):
        depth, wanted = depth + 1, get_args(wanted)[0]
    if isinstance(value, dict) and set(value) == {IN_NPZ} and arrays is not None:
        name = str(value[IN_NPZ])
        value = arrays.get(name)
    if value is None:
        raise Missing(f"the array '{name}' is missing")
    values = value if isinstance(value, np.ndarray) else _listed(value, name, wanted)
    outer = [f"#{i}" for i in range(depth)]
    return _apart(_checked(values, name, wanted, [*outer, *wanted.dim_str.split()], sizes), depth)


def _apart(values: Any, depth: int) -> Any:
    return tuple(_apart(each, depth - 1) for each in values) if depth else values


def _checked(
    values: Shaped[np.ndarray, "..."], name: str, hint: Hint, axes: list[str], sizes: Sizes
) -> Shaped[np.ndarray, "..."]:
    wanted = _kind(hint)
    if values.dtype.kind.replace("u", "i") != wanted:
        raise Damaged(f"'{name}' holds {values.dtype}, not {_NUMBERS[wanted][2]}")
    if "..." in axes:
        return values
    if not values.size and values.ndim < len(
        axes
    ):  # nested lists do not tell how long the axes after a 0 are
        values = values.reshape([int(axis) if axis.isdigit() else sizes.get(axis, 0) for axis in axes])
    if values.ndim != len(axes) or not all(
        _fits(*each, sizes) for each in zip(axes, values.shape, strict=True)
    ):
        expected = " x ".join(f"{axis} {sizes.get(axis, '')}".strip() for axis in axes)
        shape = " x ".join(map(str, values.shape)) or "a single number"
        raise Damaged(f"'{name}' is {shape} where its axes are {expected}")
    return values


def _fits(axis: str, size: int, sizes: Sizes) -> bool:
    return axis[0] == "#" or size == (int(axis) if axis.isdigit() else sizes.setdefault(axis, size))


def _kind(hint: Hint) -> str:
    return next(kind for kind, (_, name, _) in _NUMBERS.items() if name in hint.dtypes)


def _listed(value: Value, name: str, hint: Hint) -> Shaped[np.ndarray, "..."]:
    try:
        found = np.array(value)
        if not found.size:
            return found.astype(_NUMBERS[_kind(hint)][0])
        if _kind(hint) == "f" and found.dtype.kind in "iO":
            numbers = all(each is None or isinstance(each, float | int) for each in found.flat)
            return found.astype(np.float64) if numbers else found
        return found
    except (ValueError, TypeError, OverflowError) as error:
        raise Damaged(f"'{name}' is no array of numbers") from error


@dataclass(frozen=True)
class Slot:
    """One dataclass field as it is stored in a file."""

    name: str
    key: str
    hint: Hint
    spread: bool = False
    beside: bool = False
    npz: bool = False
    of: str = ""
    by: str = ""

    @cached_property
    def holds_tokens(self) -> bool:
        return Tokens in options(self.hint)

    @cached_property
    def prefix(self) -> str:
        """The prefix of a token field's keys: `query_` for `query_tokens`."""
        return self.key.removesuffix("tokens")

    @property
    def order(self) -> int:
        """The reading order: axis lengths before arrays, arrays before parts of the object."""
        if self.holds_tokens or self.spread:
            return 1
        return 2 if any(map(array_of, options(self.hint))) else 3 if _holds_dataclass(self.hint) else 0


@cache
def slots(kind: Any) -> tuple[Slot, ...]:
    """The slots (stored fields) of a dataclass."""
    hints, found = get_type_hints(kind), []
    for each in fields(kind):
        told = dict(each.metadata)
        found.append(Slot(each.name, told.pop("file", each.name), hints[each.name], **told))
    return tuple(found)


@cache
def in_order(kind: Any) -> tuple[Slot, ...]:
    """The slots of a dataclass in reading order."""
    return tuple(sorted(slots(kind), key=lambda slot: slot.order))


@cache
def options(hint: Hint) -> tuple[Hint, ...]:
    """The members of a union type; for another type only itself."""
    origin: Any = get_origin(hint)
    return get_args(hint) if origin in (Union, UnionType) else (hint,)


@cache
def several(hint: Hint) -> bool:
    """Whether a type is a union of several dataclasses; an object then names its class in `of`."""
    return sum(map(is_dataclass, options(hint))) > 1


@cache
def form(hint: Hint) -> Any:
    """The form of a non-union type: `np.ndarray`, `object` (a dataclass), `tuple`, `Mapping`, or itself."""
    if array_of(hint) is not None:
        return np.ndarray
    return object if is_dataclass(hint) else get_origin(hint) or hint


def _holds_dataclass(hint: Hint) -> bool:
    return is_dataclass(hint) or any(map(_holds_dataclass, get_args(hint)))
