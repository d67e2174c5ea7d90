"""What stands in a file, to be asked for by name: values of a type, and arrays whose axes fit together."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from types import NoneType
from typing import Any, TypeVar, get_args

import numpy as np
from jaxtyping import Shaped

from attnscope.results.stored.codec.damage import Damaged, Missing
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.typed import Hint, hints_of, restored

Arrays = dict[str, Shaped[np.ndarray, "..."]]
Made = TypeVar("Made")
NEEDED: Any = object()
_KINDS = {"f": "numbers", "i": "whole numbers", "b": "true and false"}


@dataclass(frozen=True, eq=False)
class Record:
    """A stored result, or a part of it: `told` are its values, `arrays` what an npz holds beside them.

    Without `arrays` they stand in `told`, as in JSON. `prefix` stands before the names of the part's arrays.
    `old` says that the file was written before everything that reading needs was; what is missing there is
    not known. `sizes` are the lengths of the axes by name, as far as they are known.
    """

    told: Mapping[str, Value]
    arrays: Arrays | None = None
    prefix: str = ""
    old: bool = False
    sizes: dict[str, int] = field(default_factory=dict)

    def get(self, name: str, kind: Hint, default: Any = NEEDED, *, before: Any = NEEDED) -> Any:
        """The value called `name` as a `kind`; `Damaged` where it is none, or missing without a default.

        `before` is the default of old files alone.
        """
        for fallback in (default, before if self.old else NEEDED):
            if name not in self.told and fallback is not NEEDED:
                return fallback
        return restored(kind, self._value(name), name)

    def part(self, name: str) -> "Record":
        """An object within this one."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise Damaged(f"'{name}' is no object")
        return replace(self, told=value, sizes={})

    def parts(self, name: str) -> "list[Record]":
        """The objects of a list within this one."""
        value = self._value(name)
        if not (isinstance(value, list) and all(isinstance(each, dict) for each in value)):
            raise Damaged(f"'{name}' is no list of objects")
        return [replace(self, told=each, sizes={}) for each in value]

    def beside(self, name: str, prefix: str) -> "Record":
        """This one with the arrays of a part: in JSON those under `name`, in an npz those with `prefix`."""
        if self.arrays is not None:
            return self.prefixed(prefix)
        own = self.told.get(name, {}) if self.old else self._value(name)
        if not isinstance(own, dict):
            raise Damaged(f"'{name}' is no object")
        return replace(self, told={**self.told, **own}, sizes={})

    def prefixed(self, prefix: str) -> "Record":
        """This one, its arrays in an npz being those with a further `prefix`."""
        return replace(self, prefix=self.prefix + prefix, sizes={})

    def has(self, name: str) -> bool:
        """Whether there is an array of this name."""
        if self.arrays is not None:
            return self.prefix + name in self.arrays
        return self.told.get(name) is not None

    def array(self, name: str, hint: Hint, *, under: str | None = None, key: str = "") -> Any:
        """The array called `name` with the axes and the kind of numbers that `hint` says.

        `under` is the object that holds it in JSON, where it is called `key`. What an old file lacks is NaN,
        or True.
        """
        called = self.prefix + name
        if self.arrays is not None:
            values = self.arrays.get(called)
        else:
            told = self.told if under is None else self._value(under)
            values = _array(told.get(key or name) if isinstance(told, dict) else None, name, hint)
        if values is None and self.old:
            return self._unknown(hint)
        if values is None:
            raise Missing(f"the array '{called}' is missing")
        return self._checked(values, called, hint)

    def _value(self, name: str) -> Value:
        if name not in self.told:
            raise Missing(f"'{name}' is missing")
        return self.told[name]

    def _checked(self, values: Shaped[np.ndarray, "..."], name: str, hint: Hint) -> Shaped[np.ndarray, "..."]:
        wanted = _kind(hint)
        if values.dtype.kind.replace("u", "i") != wanted:
            raise Damaged(f"'{name}' holds {values.dtype}, not {_KINDS[wanted]}")
        axes = hint.dim_str.split()
        if "..." in axes:
            return values
        if not values.size and values.ndim < len(axes):
            values = values.reshape(self._shape(axes, 0))
        if values.ndim != len(axes) or not all(map(self._fits, axes, values.shape)):
            expected = " x ".join(f"{axis} {self.sizes.get(axis, '')}".strip() for axis in axes)
            shape = " x ".join(map(str, values.shape)) or "a single number"
            raise Damaged(f"'{name}' is {shape} where its axes are {expected}")
        return values

    def _fits(self, axis: str, size: int) -> bool:
        """Whether an axis has the length that it has elsewhere; a new one is remembered."""
        return size == (int(axis) if axis.isdigit() else self.sizes.setdefault(axis, size))

    def _shape(self, axes: list[str], unknown: int) -> tuple[int, ...]:
        return tuple(int(axis) if axis.isdigit() else self.sizes.get(axis, unknown) for axis in axes)

    def _unknown(self, hint: Hint) -> Shaped[np.ndarray, "..."]:
        shape = self._shape(hint.dim_str.split(), 0)
        return np.ones(shape, bool) if _kind(hint) == "b" else np.full(shape, np.nan)


def _kind(hint: Hint) -> str:
    """The kind of numbers that an annotation of an array says: `f`, `i` or `b`."""
    return next(
        kind for kind, name in (("f", "float64"), ("i", "int64"), ("b", "bool")) if name in hint.dtypes
    )


def _array(value: Value, name: str, hint: Hint) -> Shaped[np.ndarray, "..."] | None:
    """Nested lists as an array, null as NaN; None where there is nothing."""
    if value is None:
        return None
    try:
        found = np.array(value)
        if not found.size:
            return found.astype({"f": np.float64, "i": np.int64, "b": np.bool_}[_kind(hint)])
        if _kind(hint) == "f" and found.dtype.kind in "iO":
            numbers = all(each is None or isinstance(each, float | int) for each in found.flat)
            return found.astype(np.float64) if numbers else found
        return found
    except (ValueError, TypeError, OverflowError) as error:
        raise Damaged(f"'{name}' is no array of numbers") from error


def made(kind: type[Made], record: Record, **known: Any) -> Made:
    """A dataclass from a record: `known` fields as they are, arrays by their axes, others by type."""
    values = dict(known)
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name in known:
            continue
        hint = hints_of(kind)[each.name]
        array = next((one for one in (hint, *get_args(hint)) if hasattr(one, "dim_str")), None)
        if array is not None and NoneType in get_args(hint) and not record.has(each.name):
            values[each.name] = None
        elif array is not None:
            values[each.name] = record.array(each.name, array)
        else:
            default = NEEDED if each.default is MISSING else each.default
            values[each.name] = record.get(each.name, hint, before=default)
    return kind(**values)
