"""A measure of every head: how its numbers are written and shaded, and what their ends mean."""

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
    """A number, one with its sign, a whole one, or a class; `-` for none. A large one has fewer decimals."""
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
    """How the cells of a grid are written, which are all of one width."""
    return partial(written, scores, in_grid=True)


def scale(scores: HeadScores, keys: int | None = None, limits: tuple[float, float] | None = None) -> Scale:
    """The shades of its numbers from the least to the largest that there can be, or between `limits`.

    Where the largest possible number depends on how many `keys` there are it is said how.
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
    """What the shades of a measure mean that is a class."""
    named = scores.description.classes
    return f"from light to dark {', '.join(named)}" if named else ""


def ranked(scores: HeadScores) -> list[Place]:
    """Every head that has a number, the strongest first; those that are alike in their order."""
    return ordered(-scores.values if scores.description.strong == "low" else scores.values)


def absent(every: Mapping[str, HeadScores]) -> Iterator[str]:
    """For each reason the measures that have no meaning here for it."""
    for reason in dict.fromkeys(each.absent for each in every.values() if each.absent):
        named = (name for name, each in every.items() if each.absent == reason)
        yield f"{', '.join(named)}: - ({reason})"
