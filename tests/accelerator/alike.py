"""Whether two answers say the same: every word, every whole number, and every other number within rounding.

Two devices add in another order, so a number comes out differently by some units of its last place (of
float32 2^-23, 1.2e-7), in every layer anew. Allowed are 84 of them, and 252 of the largest number that stands
in the same place of the document (the same array, the same column): 1e-5 and 3e-5; of half precision, which
is coarser than what adds up, 2 and 6. What follows no rule when a distance moves in its last place is held to
what does: a map by t-SNE to its quality, a correlation of ranks to a few ranks.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

_FLOAT32 = 2.0**-23
_UNITS = {"float32": 84 * _FLOAT32, "float64": 84 * _FLOAT32, "float16": 2.0**-9, "bfloat16": 2.0**-6}
_OF_LARGEST = 3
# where a map's points are and when it stopped; which of several stages is farthest off, by rounding
UNRULED = ("query_places", "key_places", "iterations", "settled", "stage")
LOOSER = {"divergence": 0.15, "trustworthiness": 0.1, "near": 1e-3, "quantiles": 1e-3}  # one bin of 1024
_OTHER_DEVICE = "the device is another one"  # `check` says so, and should
_DEVICE = re.compile(r"\b(emulated|cuda|mps|xpu)(:\d+)?\b")
_TRUST = re.compile(r"(?<=trustworthiness )\.\d+")  # in a sentence; the number itself has a key
_MOVED = re.compile(r" Its points still moved [^.]*\.")  # so is whether it was settled
_ROUNDED = re.compile(r"up to rounding \((\d+ heads?), [^)]*\)")  # what `check` finds on another device
_INDEX = re.compile(r"\[\d+\]")


def differences(our_document: str, their_document: str) -> list[str]:
    """What two answers do not agree on, a line each; each is a JSON document, or several of many texts."""
    ours, theirs = list(_documents(our_document)), list(_documents(their_document))
    if len(ours) != len(theirs):
        return [f"{len(ours)} documents, not {len(theirs)}"]
    return [told for pair in zip(ours, theirs, strict=True) for told in _apart(*pair)]


def _documents(answer: str) -> Iterator[dict[str, Any]]:
    """One after another, whether a line each or laid out over lines."""
    decoder, rest = json.JSONDecoder(), answer.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        yield document
        rest = rest[end:].lstrip()


def _apart(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for document in (ours, theirs):
        document.pop("digests", None)  # hashes of the numbers, which are compared themselves
    unit = _UNITS[str((theirs.get("provenance") or {}).get("dtype", "float32"))]
    numbers: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    for place, one, other in _leaves("", ours, theirs):
        if _number(one) and _number(other):
            numbers[_INDEX.sub("[]", place)].append((place, one, other))
        elif not (_named(one) == _named(other) or (_last(place) in UNRULED and isinstance(one, str | bool))):
            found.append(f"{place}: {one!r}, not {other!r}")
    for column, pairs in numbers.items():
        allowed = _allowed(column, [other for *_, other in pairs], unit)
        wrong = [pair for pair in pairs if not _close(*pair[1:], allowed)]
        if wrong:
            place, one, other = max(wrong, key=lambda pair: abs(pair[1] - pair[2]))
            found.append(f"{place}: {one!r}, not {other!r}; {len(wrong)} of {len(pairs)} there")
    return found


def _last(place: str) -> str:
    return _INDEX.sub("", place.replace("[]", "")).rpartition(".")[2]


def _allowed(column: str, numbers: list[float], unit: float) -> float:
    """How far a number may be off; 0 where all of them are whole."""
    if _last(column) in UNRULED:
        return float("inf")
    name = _last(column.removesuffix(".values[][]"))  # of a measure of every head
    if name in LOOSER:
        return LOOSER[name]
    if all(isinstance(each, int) for each in numbers):
        return 0.0
    return unit * (1 + _OF_LARGEST * max(map(abs, numbers)))


def _close(one: float, other: float, allowed: float) -> bool:
    return one == other or abs(one - other) <= allowed


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(value: Any) -> Any:
    """A device by any name is the same, and a map of any quality; everything else is what it is."""
    if not isinstance(value, str):
        return type(value), value
    same = _ROUNDED.sub(r"to the last bit (\1)", value)
    return _MOVED.sub("", _TRUST.sub("", _DEVICE.sub("cpu", same)))


def _kept(key: str, value: Any) -> Any:
    """A list as far as both should have it; heads by name, since those within rounding may change places."""
    if key == "changes":
        return [each for each in value if not each.startswith(_OTHER_DEVICE)]
    named = isinstance(value, list) and all(isinstance(each, dict) and "head" in each for each in value)
    return sorted(value, key=lambda each: (repr(each.get("layer")), repr(each["head"]))) if named else value


def _leaves(place: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """What stands in the same place of both; a list of other length or other names is a leaf itself."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from _leaves(f"{place}.{key}", _kept(key, one[key]), _kept(key, other[key]))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (each, beside) in enumerate(zip(one, other, strict=True)):
            yield from _leaves(f"{place}[{i}]", each, beside)
    else:
        yield place, one, other
