"""All colours: shades of weights and of signed numbers, queries and keys, marks and verdicts.

On a light ground more is darker, on a dark one more is brighter, so that 0 recedes, and every ramp is told in
grey. A picture is drawn on light, a page and a terminal on either. Cells of a terminal have names of styles,
`weight.37`, which `terminal.console` gives by depth of colour and background. A ramp for 256
or 16 colours is chosen by hand: the nearest of them to the colours of a finer one go from cyan to lavender to
grey-green. A console without them shows no colour, only the number in the cell.
"""

import math
from typing import Literal

from rich.color_triplet import ColorTriplet

from attnscope.results import Verdict

Ground = Literal["light", "dark"]

STEPS = 64
WEIGHT, SIGNED, BAR, BAR_BACK = "weight", "signed", "bar", "bar.back"
QUERY, KEY, LOSES = "query", "key", "loses"
_DARK = 0.23
_BLACK, _WHITE = ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255)

RAMPS: dict[Ground, dict[str, tuple[str, ...]]] = {
    "light": {
        WEIGHT: (
            *("#ebf2fa", "#d3e3f3", "#b0d0eb", "#85b8e0", "#5a9bd1"),
            *("#357dbd", "#1c60a6", "#0d4587", "#082a5e"),
        ),
        SIGNED: (
            *("#67001f", "#b2182b", "#d6604d", "#f4a582", "#fddbc7", "#f7f7f7"),
            *("#d1e5f0", "#92c5de", "#4393c3", "#2166ac", "#053061"),
        ),
    },
    "dark": {
        WEIGHT: (
            *("#0b1a3d", "#14306b", "#1c4f9c", "#1b76b8", "#2a9cc0"),
            *("#55bcb8", "#9bd8a6", "#d8eca0", "#fbf7b0"),
        ),
        SIGNED: (
            *("#ffc49b", "#f58a5b", "#c94f35", "#7f2a22", "#45191a", "#1c1c1c"),
            *("#15294a", "#1f4f86", "#2f7fc4", "#62b0ee", "#a8dbff"),
        ),
    },
}
# the same of 256 and of 16 colours, by their numbers
FEW: dict[Ground, dict[str, tuple[int, ...]]] = {
    "light": {
        WEIGHT: (255, 153, 75, 32, 25, 19, 17),
        SIGNED: (88, 124, 167, 217, 224, 255, 153, 75, 32, 25, 19),
    },
    "dark": {
        WEIGHT: (234, 18, 19, 25, 32, 38, 79, 157, 229),
        SIGNED: (216, 209, 167, 124, 88, 52, 234, 18, 19, 25, 32, 75, 117),
    },
}
FEWEST: dict[Ground, dict[str, tuple[int, ...]]] = {
    "light": {WEIGHT: (15, 14, 6, 12, 4), SIGNED: (1, 9, 15, 12, 4)},
    "dark": {WEIGHT: (0, 4, 12, 6, 14, 11), SIGNED: (9, 1, 0, 4, 12)},
}
# of terminals, exact, of 256 and of 16 colours: bars, bars of what speaks against something, queries and keys
# of a map, what is taken out
MARKS: dict[Ground | Literal["unknown"], dict[str, tuple[str, int, int]]] = {
    "light": {
        BAR: ("#1c60a6", 25, 4), BAR_BACK: ("#b2182b", 124, 1),
        QUERY: ("#b23a00", 130, 1), KEY: ("#0a559c", 25, 4), LOSES: ("#b2182b", 124, 1),
    },
    "dark": {
        BAR: ("#62b0ee", 75, 14), BAR_BACK: ("#f58a5b", 209, 9),
        QUERY: ("#ffb07c", 216, 11), KEY: ("#6cb6f0", 75, 14), LOSES: ("#f58a5b", 209, 9),
    },
    "unknown": {
        BAR: ("#2f7fc4", 32, 12), BAR_BACK: ("#d6604d", 167, 9),
        QUERY: ("#c8662a", 166, 9), KEY: ("#2f7fc4", 32, 12), LOSES: ("#d6604d", 167, 9),
    },
}  # fmt: skip
# each has a marker of its own too: a query is a circle, a key a square
SIDES: dict[Ground, dict[str, str]] = {
    "light": {"query": "#b23a00", "key": "#0a559c"},
    "dark": {"query": "#ffb07c", "key": "#6cb6f0"},
}
VERDICTS: dict[Ground, dict[Verdict, str]] = {
    "light": {
        Verdict.CERTIFIED: "#007a5e", Verdict.RECOMPUTED: "#007a5e", Verdict.STORED: "#57606a",
        Verdict.INCONCLUSIVE: "#946200", Verdict.PARTIAL: "#946200", Verdict.UNCERTIFIED: "#7a3fd0",
        Verdict.FAILED: "#a80022",
    },
    "dark": {
        Verdict.CERTIFIED: "#3fd0a8", Verdict.RECOMPUTED: "#3fd0a8", Verdict.STORED: "#a0a8b2",
        Verdict.INCONCLUSIVE: "#f0c040", Verdict.PARTIAL: "#f0c040", Verdict.UNCERTIFIED: "#b48cff",
        Verdict.FAILED: "#ff5c4d",
    },
}  # fmt: skip
# of 256 colours on light and on dark, and of 16
FEW_VERDICTS: dict[Verdict, tuple[int, int, int]] = {
    Verdict.CERTIFIED: (29, 79, 2), Verdict.RECOMPUTED: (29, 79, 2), Verdict.INCONCLUSIVE: (94, 220, 3),
    Verdict.PARTIAL: (94, 220, 3), Verdict.UNCERTIFIED: (98, 141, 5), Verdict.FAILED: (124, 203, 1),
}  # fmt: skip
# of pages and pictures: what is written, what is drawn around it, and what is chosen
PAPER: dict[Ground, dict[str, str]] = {
    "light": {
        "ground": "#ffffff", "ink": "#1a1f26", "faint": "#5a6572", "rule": "#d9dee5", "panel": "#f6f8fa",
        "line": "#1c60a6", "chosen": "#b23a00", "bar": "#357dbd",
    },
    "dark": {
        "ground": "#0f1318", "ink": "#e4e9ef", "faint": "#9aa7b5", "rule": "#2e3844", "panel": "#161c23",
        "line": "#6cb6f0", "chosen": "#ffb07c", "bar": "#3f86bf",
    },
}  # fmt: skip
# of pictures, which are drawn on light: words, sides, and lines around heads that are not certified
INK, FAINT, CHOSEN = (PAPER["light"][name] for name in ("ink", "faint", "chosen"))
INKS, OUTLINES = SIDES["light"], VERDICTS["light"]
# of the heads that are laid over one another, in their order
HEADS = ("#0072b2", "#d55e00", "#009e73", "#e08fc0", "#e6a800", "#56b4e9", "#4b1f77", "#5a5a5a")
# by the meaning of a mark
TINTS = {
    "own": "#357dbd", "kin": "#52b893", "other": "#d55e00", "faint": "#c4c4c4", "loses": "#b2182b",
    "gains": "#2166ac", "floor": "#e4e4e4", "control": INK, "limit": "#d55e00", "noise": INK,
    "peers": "#777777", **INKS, "unrotated key": "#56b4e9", "value": "#009e73",
    "output": "#cc79a7",
}  # fmt: skip


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


def between(anchors: tuple[str, ...], share: float) -> ColorTriplet:
    """The colour at a share, from 0 to 1, of a ramp."""
    place = share * (len(anchors) - 1)
    first = min(int(place), len(anchors) - 2)
    low, high = triplet(anchors[first]), triplet(anchors[first + 1])
    return ColorTriplet(*(round(a + (b - a) * (place - first)) for a, b in zip(low, high, strict=True)))


def triplet(colour: str) -> ColorTriplet:
    """A colour that is written `#rrggbb`."""
    return ColorTriplet(*bytes.fromhex(colour[1:]))


def readable_on(background: ColorTriplet) -> ColorTriplet:
    """White on dark colours, else black; on middle blues white is easier to read than its contrast says."""
    return _WHITE if luminance(background) < _DARK else _BLACK


def luminance(colour: ColorTriplet) -> float:
    """Relative luminance of an sRGB colour, 0 to 1."""
    parts = [part / 255 for part in colour]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
