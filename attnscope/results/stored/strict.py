"""Converts plain values to strict JSON and back without loss.

Numbers that are not finite are written as null, unpaired surrogates as escapes, so that any JSON reader
accepts the document. Their values are listed under `exact` by JSON Pointer (RFC 6901): `inf` and `-inf` for
infinite numbers, `nan` where null would mean None, `text` with the code points of a text with surrogates.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Shaped

from attnscope.errors import Damaged
from attnscope.results.base.presented import Value

# of all that `attnscope.results.stored` writes: a field that is added, moved or renamed makes it 9
LAYOUT = 8
# what other programs rely on: a key that is renamed, taken away or means something else makes it 3
VERSION = 2


class Missing(Damaged):
    """Raised where a key or an array is missing."""


class OrNone(float):
    """A float field where null means None, so that NaN is recorded apart from null."""


@dataclass
class _Exact:
    """Records the values that strict JSON cannot hold, by kind and JSON Pointer."""

    numbers: dict[str, list[str]] = field(default_factory=dict)
    texts: dict[str, list[int]] = field(default_factory=dict)

    def number(self, value: float, pointer: str) -> float | None:
        if math.isfinite(value):
            return float(value)
        if not math.isnan(value) or isinstance(value, OrNone):
            self.numbers.setdefault(repr(float(value)), []).append(pointer)
        return None

    def text(self, value: str, pointer: str) -> str:
        written = value.encode("utf-8", "backslashreplace").decode("utf-8")
        if written != value:
            self.texts[pointer] = [ord(character) for character in value]
        return written

    def array(self, values: Shaped[np.ndarray, "..."], pointer: str) -> Value:
        if values.dtype.kind != "f":
            return values.tolist()
        for place in np.argwhere(np.isinf(values)).tolist():
            self.number(float(values[tuple(place)]), "/".join([pointer, *map(str, place)]))
        objects = values.astype(object)
        objects[~np.isfinite(values)] = None
        return objects.tolist()

    def plain(self, value: Value, pointer: str) -> Value:
        if isinstance(value, np.ndarray):
            return self.array(value, pointer)
        if isinstance(value, float):
            return self.number(value, pointer)
        if isinstance(value, str):
            return self.text(value, pointer)
        if isinstance(value, Mapping):
            return {key: self.plain(each, f"{pointer}/{_escaped(key)}") for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(each, f"{pointer}/{i}") for i, each in enumerate(value)]
        return value


def strict(document: dict[str, Value]) -> dict[str, Value]:
    """The document as strict JSON values, with `exact` for those that need more."""
    exact = _Exact()
    plain: dict[str, Value] = exact.plain(document, "")
    told = {**exact.numbers, **({"text": exact.texts} if exact.texts else {})}
    return plain | {"layout": LAYOUT} | ({"exact": told} if told else {})


def exactly(plain: dict[str, Value]) -> dict[str, Value]:
    """Undoes `strict`, except that NaN stays None; `Damaged` where `exact` does not fit."""
    exact = plain.pop("exact", {})
    try:
        for name in ("inf", "-inf", "nan"):
            for pointer in exact.get(name, []):
                _put(plain, pointer, float(name))
        for pointer, codes in exact.get("text", {}).items():
            _put(plain, pointer, "".join(map(chr, codes)))
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise Damaged("'exact' does not fit the rest") from error
    return plain


def _put(document: Value, pointer: str, value: Value) -> None:
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document[part]
    place: Any = int(last) if isinstance(document, list) else last
    if isinstance(document[place], dict | list):
        raise ValueError(pointer)
    document[place] = value


def _escaped(key: str) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
