"""Plain values made into what a type says: texts, numbers, choices, tuples and dataclasses of these.

Keys that a dataclass does not know are passed over; keys that it lacks take their defaults.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from attnscope.results.stored.codec.damage import Damaged, Missing

Hint = Any  # a type as an annotation gives it


def hints_of(kind: Any) -> dict[str, Hint]:
    """The type of each field of a dataclass."""
    return _hints(kind)


@cache
def _hints(kind: Any) -> dict[str, Hint]:
    return get_type_hints(kind)


def restored(kind: Hint, value: Any, name: str) -> Any:
    """`value` as a `kind`; `Damaged` that says `name` where it is none. null is NaN where a float belongs."""
    origin: Any = get_origin(kind)
    if origin in (Union, UnionType):
        some = [each for each in get_args(kind) if each is not NoneType]
        return None if value is None else restored(some[0], value, name)
    if origin is tuple:
        return _tuple(get_args(kind), value, name)
    if origin in (dict, Mapping):
        _check(isinstance(value, dict), name, "is no object")
        return {key: restored(get_args(kind)[1], each, f"{name}.{key}") for key, each in value.items()}
    if origin is Literal:
        _check(value in get_args(kind), name, f"is none of {', '.join(get_args(kind))}")
        return value
    if is_dataclass(kind):
        return _dataclass(kind, value, name)
    return value if kind is object else _single(kind, value, name)


def _tuple(kinds: tuple[Hint, ...], value: Any, name: str) -> tuple[Any, ...]:
    _check(isinstance(value, list | tuple), name, "is no list")
    several = len(kinds) == 2 and kinds[1] is Ellipsis
    wanted = kinds[:1] * len(value) if several else kinds
    _check(len(wanted) == len(value), name, f"has {len(value)} entries and not {len(wanted)}")
    pairs = enumerate(zip(wanted, value, strict=True))
    return tuple(restored(kind, each, f"{name}[{i}]") for i, (kind, each) in pairs)


def _dataclass(kind: Hint, value: Any, name: str) -> Any:
    _check(isinstance(value, dict), name, "is no object")
    hints, made = hints_of(kind), {}
    for each in fields(kind):
        if each.name in value:
            made[each.name] = restored(hints[each.name], value[each.name], f"{name}.{each.name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise Missing(f"'{name}.{each.name}' is missing")
    return kind(**made)


def _single(kind: Hint, value: Any, name: str) -> Any:
    if kind is float:
        number = isinstance(value, float | int) and not isinstance(value, bool)
        _check(value is None or number, name, "is no number")
        return math.nan if value is None else float(value)
    if issubclass(kind, StrEnum):
        _check(value in list(kind), name, f"is none of {', '.join(kind)}")
        return kind(value)
    right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    words = {str: "text", int: "whole number", bool: "true or false"}
    _check(right, name, f"is no {words.get(kind, kind.__name__)}")
    return value


def _check(right: bool, name: str, wrong: str) -> None:
    if not right:
        raise Damaged(f"'{name}' {wrong}")
