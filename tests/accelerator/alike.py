"""Whether two answers say the same: every word, every whole number, and every other number within rounding.

Two devices add in another order, so that a float32 comes out differently by some units of its last place
(2^-23, 1.2e-7), in every layer anew. Allowed is a hundredth of a thousandth, and three of the largest number
that stands in the same place of the document (the same array, the same column). Only the map of t-SNE,
which starts alike and settles elsewhere when a distance moves in its last place, is held to its quality.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

ROUNDING, OF_LARGEST = 1e-5, 3e-5
# of a map by t-SNE: where its points are and when it stopped follows no rule, how good it is does
UNRULED = ("query_places", "key_places", "iterations")
QUALITY = {"divergence": 0.15, "trustworthiness": 0.1}
_DEVICE = re.compile(r"\b(emulated|cuda|mps|xpu)(:\d+)?\b")
_INDEX = re.compile(r"\[\d+\]")


def differences(ours: str, theirs: str) -> list[str]:
    """What two JSON documents do not agree on, a line each."""
    found: list[str] = []
    numbers: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    for place, one, other in _leaves("", json.loads(ours), json.loads(theirs)):
        if _number(one) and _number(other):
            numbers[_INDEX.sub("[]", place)].append((place, one, other))
        elif _named(one) != _named(other):
            found.append(f"{place}: {one!r}, not {other!r}")
    for column, pairs in numbers.items():
        allowed = _allowed(column.rpartition(".")[2].rstrip("[]"), [other for *_, other in pairs])
        wrong = [pair for pair in pairs if not _close(*pair[1:], allowed)]
        if wrong:
            place, one, other = max(wrong, key=lambda pair: abs(pair[1] - pair[2]))
            found.append(f"{place}: {one!r}, not {other!r}; {len(wrong)} of {len(pairs)} there")
    return found


def _allowed(name: str, numbers: list[float]) -> float:
    """How far a number may be off; 0 where all of them are whole."""
    if name in UNRULED:
        return float("inf")
    if name in QUALITY:
        return QUALITY[name]
    if all(isinstance(each, int) for each in numbers):
        return 0.0
    return ROUNDING + OF_LARGEST * max((abs(each) for each in numbers if each == each), default=0.0)


def _close(one: float, other: float, allowed: float) -> bool:
    return one == other or abs(one - other) <= allowed


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(value: Any) -> Any:
    """A device by any name is the same; everything else is what it is."""
    return _DEVICE.sub("cpu", value).replace("cpu:0", "cpu") if isinstance(value, str) else value


def _leaves(place: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """What stands in the same place of both; a list of other length or other names is a leaf itself."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from _leaves(f"{place}.{key}", one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (each, beside) in enumerate(zip(one, other, strict=True)):
            yield from _leaves(f"{place}[{i}]", each, beside)
    else:
        yield place, one, other
