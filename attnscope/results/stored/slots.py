"""How each field of a dataclass stands in a file.

It stands there under its own name, unless its metadata say otherwise:

    file    the key that it has in the file
    spread  its own fields stand beside those of its owner, not in an object of their own; so do tokens
    beside  what describes it, all but arrays, stands beside its owner too, for readers
    npz     JSON has null in its place
    of      the attribute that is written for it, where that is more than the field holds
    by      the attribute that each of several is called by; in the file they are an object and not a list
"""

from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from attnscope.results.stored.arrays import Hint, array_of
from attnscope.tokens import Tokens


@dataclass(frozen=True)
class Slot:
    """One field as a file has it."""

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
        """What stands before the keys of tokens: `query_` of `query_tokens`."""
        return self.key.removesuffix("tokens")

    @property
    def order(self) -> int:
        """When it is read: first what tells the lengths of axes, then arrays, then parts of the object."""
        if self.holds_tokens or self.spread:
            return 1
        return 2 if any(map(array_of, options(self.hint))) else 3 if _holds_dataclass(self.hint) else 0


@cache
def slots(kind: Any) -> tuple[Slot, ...]:
    """The fields of a dataclass."""
    hints, found = get_type_hints(kind), []
    for each in fields(kind):
        told = dict(each.metadata)
        found.append(Slot(each.name, told.pop("file", each.name), hints[each.name], **told))
    return tuple(found)


@cache
def in_order(kind: Any) -> tuple[Slot, ...]:
    """The fields of a dataclass as they are read."""
    return tuple(sorted(slots(kind), key=lambda slot: slot.order))


@cache
def options(hint: Hint) -> tuple[Hint, ...]:
    """What a value of this type may be; of a type that is no union the type alone."""
    origin: Any = get_origin(hint)
    return get_args(hint) if origin in (Union, UnionType) else (hint,)


@cache
def several(hint: Hint) -> bool:
    """Whether it may be one of several classes; an object then says which, in `of`."""
    return sum(map(is_dataclass, options(hint))) > 1


@cache
def form(hint: Hint) -> Any:
    """Of a type that is no union: `np.ndarray`, `object` for a dataclass, `tuple`, `Mapping`, or itself."""
    if array_of(hint) is not None:
        return np.ndarray
    return object if is_dataclass(hint) else get_origin(hint) or hint


def _holds_dataclass(hint: Hint) -> bool:
    return is_dataclass(hint) or any(map(_holds_dataclass, get_args(hint)))
