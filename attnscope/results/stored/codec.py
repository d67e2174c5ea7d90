"""Encodes results as plain values and decodes them, by their classes' fields and annotations.

`encode` makes plain values with arrays among them; `decode` reads them. Beside its fields an object has the
properties named in `for_readers`, and the entries of `derived`. Every field's key is required, and no other
key is allowed. Errors are `Damaged`, saying where and what.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from enum import Enum, StrEnum
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from attnscope.errors import Damaged, Departs
from attnscope.printable import FileWord
from attnscope.results.base.origin import Verdict
from attnscope.results.base.presented import Arrays, Value
from attnscope.results.heads import HeadAttention, HeadWeights
from attnscope.results.stored.again import can_be_computed, wrong_stage
from attnscope.results.stored.arrays import (
    Hint,
    Sizes,
    Slot,
    array_in,
    array_of,
    form,
    in_order,
    options,
    several,
    slots,
)
from attnscope.results.stored.strict import Missing, OrNone
from attnscope.tokens import Tokens

Object = dict[str, Value]
_WORDS = {str: "text", int: "whole number", bool: "true or false"}


def encode(value: Any, *, npz: bool, hint: Hint = Any) -> Value:
    """The plain form of `value`, with arrays in it; `npz` includes those that JSON leaves out."""
    if value is None or type(value) in (str, bool):
        return value
    kinds = options(hint)
    if is_dataclass(value):
        tag = {"of": type(value).__name__.lower()} if several(hint) else {}
        return tag | _encode_object(value, npz)
    if isinstance(value, Enum | FileWord):
        return value.value if isinstance(value, Enum) else value.stored
    if isinstance(value, Mapping):
        inner = (*get_args(kinds[0])[1:], Any)[0]
        return {key: encode(each, npz=npz, hint=inner) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if array_of(kinds[0]) is not None:
            return np.array(value)
        inner = (*get_args(kinds[0]), Any)[0]
        return [encode(each, npz=npz, hint=inner) for each in value]
    if float in kinds:
        return OrNone(value) if NoneType in kinds else float(value)
    return value


def _encode_object(value: Any, npz: bool) -> Object:
    kind: Any = type(value)
    encoded: Object = {key: encode(each, npz=npz) for key, each in _derived(value).items()}
    tokens: dict[int, Object] = {}  # both axes often have the same
    for slot in slots(kind):
        own: Any = getattr(value, slot.of or slot.name) if npz or not slot.npz else None
        if slot.name == "key_tokens":
            encoded[_shared(kind)] = value.query_tokens is own
        if slot.holds_tokens:
            if own is not None and id(own) not in tokens:
                tokens[id(own)] = _encode_tokens(own)
            encoded |= {slot.prefix + key: each for key, each in tokens.get(id(own), {}).items()}
        elif slot.spread:
            kept = getattr(value, "for_readers", ())  # the `case` of the whole, not that of the part
            encoded |= {key: each for key, each in _encode_object(own, npz).items() if key not in kept}
        else:
            own = {getattr(each, slot.by): each for each in own} if slot.by else own
            encoded[slot.key] = encode(own, npz=npz, hint=slot.hint)
        if slot.beside:
            encoded = _described(encoded[slot.key]) | encoded
    return encoded


def _encode_tokens(tokens: Tokens) -> Object:
    encoded = _encode_object(tokens, False)
    for position, (token, label) in enumerate(zip(encoded["tokens"], tokens.labels, strict=True)):
        token.update(position=position, label=label, id=None if token["id"] < 0 else token["id"])
    return encoded


def _derived(value: Any) -> Object:
    told = {name: getattr(value, name) for name in getattr(value, "for_readers", ())}
    return told | (value.derived() if hasattr(value, "derived") else {})


def _shared(kind: Any) -> str:
    return next(f"{slot.prefix}shared" for slot in slots(kind) if slot.name == "query_tokens")


def _described(told: Object) -> Object:
    return {key: each for key, each in told.items() if not _holds_arrays(each)}


def _holds_arrays(told: Value) -> bool:
    inner = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    return isinstance(told, np.ndarray) or any(map(_holds_arrays, inner))


class Place(NamedTuple):
    """A position while decoding: its key path, the npz arrays (None in JSON), and known axis lengths.

    `believed` documents (from our own memory) keep their verdicts. In others heads are recomputed: where they
    are all that the file shows (`follow`) they are `recomputed`, else `stored` at best.

    """

    name: str
    arrays: Arrays | None
    sizes: Sizes
    believed: bool = True
    follow: bool = False

    def at(self, key: str) -> "Place":
        return self._replace(name=f"{self.name}.{key}" if self.name else key)

    def check(self, right: bool, wrong: str) -> None:
        if not right:
            raise Damaged(f"'{self.name}' {wrong}")


def decode(hint: Hint, value: Value, place: Place) -> Any:
    """Decodes `value` as the type `hint`; `Damaged` where it does not fit. null becomes NaN for numbers."""
    kinds = options(hint)
    if value is None and NoneType in kinds:
        return None
    if several(hint):
        return _decode_tagged(kinds, value, place)
    kind, shape = kinds[0], form(kinds[0])
    if shape is np.ndarray:
        return array_in(value, kind, place.name, place.arrays, place.sizes)
    if shape is object:
        return _decode_object(kind, value, place._replace(sizes=dict(place.sizes)))
    if shape is tuple:
        return _decode_tuple(get_args(kind), value, place)
    if shape in (dict, Mapping):
        place.check(isinstance(value, dict), "is no object")
        read = {key: decode(get_args(kind)[1], each, place.at(key)) for key, each in value.items()}
        return _tallied(read, place) if get_args(kind)[0] is Verdict else read
    if shape is Literal:
        place.check(value in get_args(kind), f"is none of {', '.join(get_args(kind))}")
        return value
    return _decode_single(kind, value, place)


def _decode_tagged(kinds: tuple[Hint, ...], value: Value, place: Place) -> Any:
    place.check(isinstance(value, dict), "is no object")
    classes: list[Any] = [each for each in kinds if is_dataclass(each)]
    called = {each.__name__.lower(): each for each in classes}
    kind = called.get(str(value.get("of")))
    place.at("of").check(kind is not None, f"is none of {', '.join(called)}")
    return decode(kind, {key: each for key, each in value.items() if key != "of"}, place)


def _decode_tuple(kinds: tuple[Hint, ...], value: Value, place: Place) -> tuple[Any, ...]:
    place.check(isinstance(value, list | tuple), "is no list")
    wanted = kinds[:1] * len(value) if kinds[1:] == (Ellipsis,) else kinds
    place.check(len(wanted) == len(value), f"has {len(value)} entries and not {len(wanted)}")
    pairs = enumerate(zip(wanted, value, strict=True))
    return tuple(decode(kind, each, place._replace(name=f"{place.name}[{i}]")) for i, (kind, each) in pairs)


def _decode_single(kind: Any, value: Value, place: Place) -> Any:
    if kind is float:
        number = isinstance(value, float | int) and not isinstance(value, bool)
        place.check(value is None or number, "is no number")
        return math.nan if value is None else float(value)
    if kind is Verdict:
        return _decode_verdict(value, place)
    if issubclass(kind, StrEnum):
        place.check(value in list(kind), f"is none of {', '.join(kind)}")
        return kind(value)
    right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    place.check(right, f"is no {_WORDS.get(kind, kind.__name__)}")
    return value


def _decode_verdict(value: Value, place: Place, follows: bool = False) -> Verdict:
    place.check(value in list(Verdict), f"is none of {', '.join(Verdict)}")
    verdict = Verdict(value)
    return verdict if place.believed else verdict.from_file(follows)


def _tallied(counts: Mapping[str, int], place: Place) -> dict[Verdict, int]:
    every = Counter[Verdict]()
    for name, count in counts.items():
        every[_decode_verdict(name, place.at(name))] += count
    return dict(every)


def _decode_object(kind: Any, value: Value, place: Place) -> Any:
    place.check(isinstance(value, dict), "is no object")
    owner, known = _decode_fields(kind, value, place)
    if beyond := sorted(value.keys() - known - _keys_for_readers(owner)):
        place.at(beyond[0]).check(False, "is no key that belongs there")
    return owner


def _decode_fields(kind: Any, value: Object, place: Place) -> tuple[Any, set[str]]:
    kind = _fuller(kind, value, place)
    values: dict[str, Any] = {}
    known: set[str] = set()
    for slot in in_order(kind):
        keys = {slot.key}
        if slot.name == "key_tokens":
            values[slot.name], keys = _decode_key_tokens(kind, values["query_tokens"], value, place)
        elif slot.holds_tokens:
            values[slot.name], keys = _decode_tokens(slot, value, place)
        elif slot.spread:
            values[slot.name], keys = _decode_fields(slot.hint, value, place)
        else:
            values[slot.name] = _decode_field(slot, _there(slot.key, value, place), place.at(slot.key))
        known |= keys
        place.sizes.update(_lengths(slot.name, values[slot.name]))
    owner = kind(**values)
    if hasattr(owner, "check_parts"):
        owner.check_parts()
    if isinstance(owner, HeadAttention) and not place.believed:
        owner = _computed(owner, value, place)
    return owner, known


def _computed(head: HeadAttention, value: Object, place: Place) -> HeadAttention:
    """The head with the verdict left after recomputing; `Departs` where its stages do not follow."""
    if not can_be_computed(head):
        return head
    if wrong := wrong_stage(head):
        raise Departs(f"{head.name}: '{wrong}' does not follow from the rest of what is stored")
    verdict = _decode_verdict(value["certificate"]["verdict"], place, place.follow)
    return replace(head, certificate=replace(head.certificate, verdict=verdict))


def _decode_field(slot: Slot, value: Value, place: Place) -> Any:
    if not slot.by:
        return decode(slot.hint, value, place)
    called = decode(Mapping[str, get_args(slot.hint)[0]], value, place)  # type: ignore[misc]
    for name, each in called.items():
        place.at(name).check(getattr(each, slot.by) == name, f"is called {getattr(each, slot.by)}")
    return tuple(called.values())


def _fuller(kind: Any, value: Object, place: Place) -> Any:
    """`HeadAttention` where the document has a key head, else `HeadWeights`; other kinds unchanged."""
    full = kind is HeadWeights and _there("key_head", value, place) is not None
    return HeadAttention if full else kind


def _lengths(name: str, value: Any) -> Iterator[tuple[str, int]]:
    """Axis lengths that a field implies: `layers` for `layer`, `key_tokens` for `key`."""
    if isinstance(value, Tokens):
        axes = ("query", "key") if name == "tokens" else (name.removesuffix("_tokens"),)
        yield from ((axis, len(value)) for axis in axes)
    elif isinstance(value, tuple):
        yield name.removesuffix("s"), len(value)


def _keys_for_readers(owner: Any) -> set[str]:
    kind: Any = type(owner)
    keys = set(_derived(owner))
    for slot in slots(kind):
        if slot.spread:
            keys |= _keys_for_readers(getattr(owner, slot.name))
        elif slot.beside:
            keys |= _described(_encode_object(getattr(owner, slot.name), True)).keys()
    return keys


def _own(slot: Slot, value: Object) -> Object:
    keys = [each.key for each in slots(Tokens)]
    return {key: value[slot.prefix + key] for key in keys if slot.prefix + key in value}


def _decode_tokens(slot: Slot, value: Object, place: Place) -> tuple[Tokens | None, set[str]]:
    own = _own(slot, value)
    if NoneType in options(slot.hint) and not own:
        return None, set()
    keys = {slot.prefix + key for key in own}
    if isinstance(own.get("tokens"), list):
        own["tokens"] = [_token(each) for each in own["tokens"]]
    try:
        found: Tokens = decode(Tokens, own, Place("", None, {}))
    except Damaged as error:  # it names a key without the prefix that it has here
        raise type(error)(str(error).replace("'", f"'{place.at(slot.prefix).name}", 1)) from error
    return found, keys


def _decode_key_tokens(
    kind: Any, query: Tokens, value: Object, place: Place
) -> tuple[Tokens | None, set[str]]:
    first, second = (slot for slot in slots(kind) if slot.name in ("query_tokens", "key_tokens"))
    shared = _shared(kind)
    one = decode(bool, _there(shared, value, place), place.at(shared))
    if one and _own(first, value) == _own(second, value):
        return query, {shared, *(second.prefix + each.key for each in slots(Tokens))}
    found, keys = _decode_tokens(second, value, place)
    place.at(shared).check(not one, "is true of tokens that differ")
    return found, {shared, *keys}


def _token(told: Value) -> Value:
    if not isinstance(told, dict):
        return told
    own = {key: each for key, each in told.items() if key not in ("position", "label")}
    return own | ({"id": -1} if own.get("id", 0) is None else {})


def _there(key: str, value: Object, place: Place) -> Value:
    if key not in value:
        raise Missing(f"'{place.at(key).name}' is missing")
    return value[key]
