"""Colours of terminal cells: sequential for weights, diverging around 0 for signed numbers.

The anchors are ColorBrewer's Blues and RdBu, chosen so that the text on them stays legible after rich has
brought them down to 256 or 16 colours. Where there is no colour, the number in the cell says it all.
"""

import math
from functools import lru_cache

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style

_BLUES = ("f7fbff", "deebf7", "c6dbef", "9ecae1", "6baed6", "4292c6", "2171b5", "08519c", "084594")
_RED_TO_BLUE = (
    *("67001f", "b2182b", "d6604d", "f4a582", "fddbc7"),
    "f7f7f7",
    *("d1e5f0", "92c5de", "4393c3", "2166ac", "084594"),
)
_STEPS = 64
_DARK = 0.23
_BLACK, _WHITE = ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255)


def sequential(value: float, largest: float = 1.0) -> Style:
    """White for 0 to dark blue for `largest`; no colour for NaN."""
    if math.isnan(value) or not largest > 0:
        return Style.null()
    return _style(_BLUES, round(min(max(value / largest, 0.0), 1.0) * _STEPS))


def diverging(value: float, extent: float) -> Style:
    """Dark red for `-extent`, white for 0, dark blue for `extent`; no colour for NaN."""
    if math.isnan(value):
        return Style.null()
    share = min(max(value / extent, -1.0), 1.0) if extent > 0 else 0.0
    return _style(_RED_TO_BLUE, round((share + 1) / 2 * _STEPS))


@lru_cache
def _style(anchors: tuple[str, ...], step: int) -> Style:
    background = _between(anchors, step / _STEPS)
    text = readable_on(background)
    return Style(color=Color.from_triplet(text), bgcolor=Color.from_triplet(background))


def readable_on(background: ColorTriplet) -> ColorTriplet:
    """White on dark colours, else black; on middle blues white is easier to read than its contrast says."""
    return _WHITE if luminance(background) < _DARK else _BLACK


def _between(anchors: tuple[str, ...], share: float) -> ColorTriplet:
    place = share * (len(anchors) - 1)
    first = min(int(place), len(anchors) - 2)
    low, high = bytes.fromhex(anchors[first]), bytes.fromhex(anchors[first + 1])
    red, green, blue = (round(a + (b - a) * (place - first)) for a, b in zip(low, high, strict=True))
    return ColorTriplet(red, green, blue)


def luminance(colour: ColorTriplet) -> float:
    """Relative luminance of an sRGB colour, 0 to 1."""
    parts = [part / 255 for part in colour]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
