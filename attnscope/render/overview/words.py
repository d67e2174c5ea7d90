"""What is said of a measure beside its grid, the same for a terminal and for a picture."""

import math

from attnscope.render.kit import palette
from attnscope.render.kit.numbers import short
from attnscope.results import HeadScores, Overview


def number(value: float, cells: int = 4) -> str:
    """Two decimals, fewer where `cells` have no room for them; `-` for NaN."""
    if math.isnan(value):
        return "-"
    texts = (f"{value:.{decimals}f}" for decimals in (2, 1, 0))
    return next((text for text in texts if len(text) <= cells), f"{value:.0f}")


def told(scores: HeadScores, value: float, cells: int = 4) -> str:
    """The value as it stands in a cell: a number, one with its sign, a whole one, or a class."""
    described = scores.description
    if math.isnan(value):
        return "-"
    if described.classes:
        return described.classes[int(value)]
    if tiny(scores):
        return _with_exponent(value)
    if described.signed and described.unit in ("tokens", "words"):
        return f"{value:+.0f}" if value else "0"
    return number(value, max(cells, 5) if described.signed else cells)


def tiny(scores: HeadScores) -> bool:
    """Whether two decimals show nothing of a measure that has no largest value."""
    return "any" in scores.description.most and abs(scores.limits[1]) < 0.1


def _with_exponent(value: float) -> str:
    """`4e-4`, `-3e-2`, `0`."""
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}" if value else "0"


def style(scores: HeadScores, value: float) -> str:
    """The colour of a cell of a terminal: around 0 where the measure has a sign."""
    if scores.description.signed:
        return palette.diverging(value, scores.limits[1])
    return palette.sequential(*darkness(scores, value))


def darkness(scores: HeadScores, value: float) -> tuple[float, float]:
    """How strong `value` is, from 0, and how strong it could be."""
    low, high = scores.limits
    return (high - value if scores.description.strong == "low" else value - low), high - low


def shades_words(scores: HeadScores) -> str:
    """`dark looks at one key, light at all alike`."""
    described, (first, last) = scores.description, ends(scores)
    if described.classes:
        return f"from light to dark {', '.join(described.classes)}"
    return f"{first} {described.low}, {last} {described.high}"


def ends(scores: HeadScores) -> tuple[str, str]:
    """The shades of the least and of the largest value."""
    if scores.description.signed:
        return "red", "blue"
    return ("dark", "light") if scores.description.strong == "low" else ("light", "dark")


def shown(result: Overview) -> list[HeadScores]:
    """The measures that have a grid, the main one first."""
    return [each for each in result.scores.values() if not each.absent] or [result.main]


def absent_words(result: Overview) -> list[str]:
    """For each reason the measures that have no meaning here for it."""
    reasons = dict.fromkeys(each.absent for each in result.scores.values() if each.absent)
    return [
        f"{', '.join(n for n, each in result.scores.items() if each.absent == reason)}: - ({reason})"
        for reason in reasons
    ]


def of_a_pair(result: Overview) -> bool:
    """Whether every head has the same link."""
    return result.aim is not None and result.aim[1] is not None


def heading_words(result: Overview) -> str:
    """What a picture of it shows."""
    listed = shown(result)
    one = result.main.measure if result.aim is None else result.main.description.label
    return f"{one if len(listed) == 1 else f'{len(listed)} measures'} by head"


def range_words(scores: HeadScores, keys: int) -> str:
    """The ends of the range in this grid, what they mean, and how they are coloured.

    A terminal may be dark, where more is brighter: so its colours are strong or faint.
    """
    described, (low, high) = scores.description, scores.limits
    if described.classes:
        return f"{', '.join(described.classes)}, from faint to strong"
    first, last = ("strong", "faint") if described.strong == "low" else ("faint", "strong")
    if described.signed:
        first, last = ends(scores)
    formula = described.most.replace("keys", str(keys)).replace("any", "largest")
    shown_low, shown_high = (short(each) if tiny(scores) and each else f"{each:.2f}" for each in (low, high))
    most = f"{formula} = {shown_high}" if any(map(str.isalpha, formula)) else shown_high
    return f"{shown_low} {described.low} ({first}), {most} {described.high} ({last})"
