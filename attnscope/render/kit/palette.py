"""Names for the colours of terminal cells: sequential for weights, around 0 for signed numbers.

What they look like is the console's to say, by its depth of colour and its background: `terminal.ramps`
has the theme that gives it these styles. A console without it shows no colour, only the number in the cell.
"""

import math

from rich.color_triplet import ColorTriplet

STEPS = 64
WEIGHT, SIGNED, BAR, BAR_BACK = "weight", "signed", "bar", "bar.back"
_DARK = 0.23
_BLACK, _WHITE = ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255)


def sequential(value: float, largest: float = 1.0) -> str:
    """The style from 0 to `largest`; none for NaN."""
    if math.isnan(value) or not largest > 0:
        return ""
    return f"{WEIGHT}.{round(min(max(value / largest, 0.0), 1.0) * STEPS)}"


def diverging(value: float, extent: float) -> str:
    """The style from `-extent` over 0 to `extent`; none for NaN."""
    if math.isnan(value):
        return ""
    share = min(max(value / extent, -1.0), 1.0) if extent > 0 else 0.0
    return f"{SIGNED}.{round((share + 1) / 2 * STEPS)}"


def readable_on(background: ColorTriplet) -> ColorTriplet:
    """White on dark colours, else black; on middle blues white is easier to read than its contrast says."""
    return _WHITE if luminance(background) < _DARK else _BLACK


def luminance(colour: ColorTriplet) -> float:
    """Relative luminance of an sRGB colour, 0 to 1."""
    parts = [part / 255 for part in colour]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
