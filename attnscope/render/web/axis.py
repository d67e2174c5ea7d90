"""Round numbers of an axis, and the colours of what is drawn, on light and on dark."""

import math

from attnscope.render.kit.numbers import cell, parameter
from attnscope.render.kit.palette import TINTS

_LARGE = 1e5
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_THEMED = {
    "control": "var(--ink)",
    "noise": "var(--ink)",
    "floor": "var(--rule)",
    "faint": "var(--pale)",
}  # as the page is


def ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """At most so many round numbers from `low` to `high`, 0 among them, and how they are written."""
    if not high > low:
        return [(low, parameter(low))]
    least, largest = (math.log10(each) for each in ((high - low) / most, high - low))
    for exponent in range(math.floor(least) - 1, math.ceil(largest) + 1):
        for step in (each * 10.0**exponent for each in _STEPS):
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if last - first < most:
                return _written([each * step for each in range(first, last + 1)], step)
    return []


def _written(values: list[float], step: float) -> list[tuple[float, str]]:
    """All with the decimals that the step has; very large and very small ones with an exponent."""
    places = next((each for each in range(4) if abs(step - round(step, each)) < 1e-9 * step), None)
    ordinary = places is not None and max(map(abs, values)) < _LARGE
    return [(each, cell(each, places or 0) if ordinary and each else parameter(each)) for each in values]


def colour(tint: str) -> str:
    """The style that an element of the class `fills`, `lines` or `hollow` takes its colour from."""
    return f'style="--c:{_THEMED.get(tint, TINTS[tint])}"'
