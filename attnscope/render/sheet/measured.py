"""Numbers of a measure of every head: their text, their shade, and the meaning of the scale's ends."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

from attnscope.render.kit.numbers import NONE, cell, number, signed, signed_cell, significant
from attnscope.render.sheet.said import Place
from attnscope.render.sheet.table import Scale
from attnscope.results import HeadScores
from attnscope.results.scores import ordered


def written(scores: HeadScores, value: float, in_grid: bool = False) -> str:
    """Text of a measure's value, or its class; `-` for NaN. Large values have fewer decimals."""
    described = scores.description
    if math.isnan(value):
        return NONE
    if described.classes:
        return described.classes[int(value)]
    if "any" in described.most and abs(scores.limits[1]) < 0.1:
        return significant(value)
    if described.signed and described.unit in ("tokens", "words"):
        return (signed_cell if in_grid else signed)(value, 0)
    return (cell if in_grid else number)(value, 2 - (abs(value) >= 9.995) - (abs(value) >= 99.95))


def form(scores: HeadScores) -> Callable[[float], str]:
    """The function that writes a value in a grid's cell."""
    return partial(written, scores, in_grid=True)


def scale(scores: HeadScores, keys: int | None = None, limits: tuple[float, float] | None = None) -> Scale:
    """Colour scale of a measure, from its least to its largest possible value, or between `limits`.

    With `keys`, the legend gives the formula of a largest value that depends on their number.
    """
    described, (least, most) = scores.description, scores.limits
    low, high = limits or (least, most)
    kind: Literal["rising", "falling"] = "falling" if described.strong == "low" else "rising"
    if described.signed:
        return Scale(low, high, "signed", (described.low, described.high))
    formula = "" if keys is None else described.most.replace("keys", str(keys))
    largest = f"{described.high} ({formula})" if formula.startswith("ln") else described.high
    ends = described.low if low == least else "", largest if high == most else ""
    return Scale(low, high if high > low else low + 1, kind, ("", "") if described.classes else ends)


def classes(scores: HeadScores) -> str:
    """Legend for a measure whose values are classes; empty for any other."""
    named = scores.description.classes
    return f"from light to dark {', '.join(named)}" if named else ""


def ranked(scores: HeadScores) -> list[Place]:
    """Places of all heads with a value, strongest first; ties keep their order."""
    return ordered(-scores.values if scores.description.strong == "low" else scores.values)


def absent(every: Mapping[str, HeadScores]) -> Iterator[str]:
    """A line for each reason why measures have no value here, with their names."""
    for reason in dict.fromkeys(each.absent for each in every.values() if each.absent):
        named = (name for name, each in every.items() if each.absent == reason)
        yield f"{', '.join(named)}: - ({reason})"
