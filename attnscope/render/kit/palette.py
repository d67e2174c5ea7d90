"""Colours: ramps for weights and signed numbers, queries and keys, marks and verdicts.

On a light ground more is darker, on a dark one more is brighter, so that 0 recedes, and every ramp is told in
grey. A picture is drawn on light, a page and a terminal on either. Cells of a terminal have names of styles,
`weight.37`, which `terminal.console` gives by depth of colour and background. A ramp for 256
or 16 colours is chosen by hand: the nearest of them to the colours of a finer one go from cyan to lavender to
grey-green. A console without them shows no colour, only the number in the cell.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from rich.color_triplet import ColorTriplet

from attnscope.errors import InputError
from attnscope.render.kit.numbers import parameter
from attnscope.results import Verdict
from attnscope.vocabulary import Scaling

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
# the ramps in 256 and in 16 colours, by colour number
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
# terminal colours (exact, of 256, of 16): bars, bars of opposing evidence, queries and keys
# of a map, removed heads
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
# queries and keys differ in marker too: circles and squares
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
# verdicts in 256 colours on light and on dark, and in 16
FEW_VERDICTS: dict[Verdict, tuple[int, int, int]] = {
    Verdict.CERTIFIED: (29, 79, 2), Verdict.RECOMPUTED: (29, 79, 2), Verdict.INCONCLUSIVE: (94, 220, 3),
    Verdict.PARTIAL: (94, 220, 3), Verdict.UNCERTIFIED: (98, 141, 5), Verdict.FAILED: (124, 203, 1),
}  # fmt: skip
# colours of pages and pictures: text, frames and the chosen item
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
# colours of pictures, on light: text, queries and keys, and outlines of uncertified heads
INK, FAINT, CHOSEN = (PAPER["light"][name] for name in ("ink", "faint", "chosen"))
INKS, OUTLINES = SIDES["light"], VERDICTS["light"]
# colours of overlaid heads, in their order
HEADS = ("#0072b2", "#d55e00", "#009e73", "#e08fc0", "#e6a800", "#56b4e9", "#4b1f77", "#5a5a5a")
# colours of marks by their meaning
TINTS = {
    "own": "#357dbd", "kin": "#52b893", "other": "#d55e00", "faint": "#c4c4c4", "loses": "#b2182b",
    "gains": "#2166ac", "floor": "#e4e4e4", "control": INK, "limit": "#d55e00", "noise": INK,
    "peers": "#777777", **INKS, "unrotated key": "#56b4e9", "value": "#009e73",
    "output": "#cc79a7",
}  # fmt: skip


def sequential(value: float, largest: float = 1.0) -> str:
    """Style name of a weight from 0 to `largest`; empty for NaN."""
    if math.isnan(value) or not largest > 0:
        return ""
    return f"{WEIGHT}.{round(min(max(value / largest, 0.0), 1.0) * STEPS)}"


def diverging(value: float, extent: float) -> str:
    """Style name of a signed value from `-extent` to `extent`; empty for NaN."""
    if math.isnan(value):
        return ""
    share = min(max(value / extent, -1.0), 1.0) if extent > 0 else 0.0
    return f"{SIGNED}.{round((share + 1) / 2 * STEPS)}"


def between(anchors: tuple[str, ...], share: float) -> ColorTriplet:
    """The interpolated colour of a ramp at `share`, from 0 to 1."""
    place = share * (len(anchors) - 1)
    first = min(int(place), len(anchors) - 2)
    low, high = triplet(anchors[first]), triplet(anchors[first + 1])
    return ColorTriplet(*(round(a + (b - a) * (place - first)) for a, b in zip(low, high, strict=True)))


def triplet(colour: str) -> ColorTriplet:
    """A `#rrggbb` string as a ColorTriplet."""
    return ColorTriplet(*bytes.fromhex(colour[1:]))


def readable_on(background: ColorTriplet) -> ColorTriplet:
    """White for text on dark backgrounds, else black; middle blues count as dark."""
    return _WHITE if luminance(background) < _DARK else _BLACK


def luminance(colour: ColorTriplet) -> float:
    """Relative luminance of an sRGB colour, 0 to 1."""
    parts = [part / 255 for part in colour]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


TICKS = (0.0, 0.01, 0.1, 0.5, 1.0)  # on the colour bar of the square root
_end = partial(parameter, digits=2)
_DECADES = 5  # that a logarithmic scale has at most
_OF_EVEN = 0.1  # share of the even weight below which weights are 0 on a logarithmic scale
_APART = 0.08  # least distance between two numbers on a colour bar, as a share of it
_FAINTEST = 0.01  # quantile of the weights at which it begins


@dataclass(frozen=True, eq=False)
class Scale:
    """Mapping from the weights of one panel to shades.

    `tops` are the weights of the strongest shade, row by row; `least` is the weight of the faintest shade, 0
    except on a logarithmic scale.
    """

    kind: Scaling
    tops: Float[np.ndarray, " row"]
    least: float = 0.0

    @property
    def top(self) -> float:
        """The weight of the strongest shade of any row."""
        return float(self.tops.max(initial=0.0)) or 1.0

    def shades(
        self, weights: Float[np.ndarray, "row key"], rows: slice | list[int] = slice(None)
    ) -> Float[np.ndarray, "row key"]:
        """Every weight as a shade from 0 to 1, NaN kept; `rows` selects the rows that are given."""
        tops = self.tops[rows, None]
        if self.kind is not Scaling.LOG:
            shares = np.clip(weights / tops, 0.0, 1.0)
            return np.asarray(np.sqrt(shares) if self.kind is Scaling.SQRT else shares)
        raised = np.maximum(weights, self.least)
        return np.asarray(np.clip(np.log(raised / self.least) / np.log(tops / self.least), 0.0, 1.0))

    def shade(self, weight: float) -> float:
        """The shade of one weight in the row with the largest; with row scaling, the shade of a share."""
        alone = Scale(self.kind, np.array([1.0 if self.kind is Scaling.ROW else self.top]), self.least)
        return float(alone.shades(np.array([[weight]]))[0, 0])

    def weight(self, shade: float) -> float:
        """The weight of a shade; with row scaling, its share of the row's largest."""
        match self.kind:
            case Scaling.SQRT:
                return self.top * shade * shade
            case Scaling.LOG:
                return float(self.least * (self.top / self.least) ** shade)
            case Scaling.ROW:
                return shade
        return shade * self.top

    @property
    def told(self) -> str:
        """Description of the scale; empty for the default, the square root."""
        low, high = _end(self.least), _end(self.top)
        return {
            Scaling.SQRT: "",
            Scaling.ONE: "in proportion, 0 to 1",
            Scaling.MAX: f"in proportion, 0 to {high}, the largest weight",
            Scaling.ROW: "in proportion, 0 to the largest weight of each row",
            Scaling.LOG: f"logarithmic, {low} or less to {high}, the largest weight",
        }[self.kind]

    @property
    def legend(self) -> str:
        """Phrase for what the shades stand for, where no colour bar shows it."""
        return self.told or f"the square root of the weight, 0 to {_end(self.top)}"

    @property
    def label(self) -> str:
        """Label of the colour bar: attention weight, and the scale unless it is the default."""
        asked = {
            Scaling.ONE: ": in proportion",
            Scaling.MAX: f": 0 to {_end(self.top)}, the largest",
            Scaling.ROW: ": share of the row's largest",
            Scaling.LOG: ": logarithmic",
        }
        return f"attention weight{asked.get(self.kind, '')}"

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Weights to mark on a colour bar, with their texts; on a logarithmic one, ends and decades."""
        if self.kind is Scaling.SQRT:
            return [(share * self.top, _end(share * self.top)) for share in TICKS]
        if self.kind is not Scaling.LOG:
            return [(self.weight(share), _end(self.weight(share))) for share in (0.0, 0.5, 1.0)]
        low, high = math.log10(self.least), math.log10(self.top)
        decades = range(math.ceil(low), math.floor(high) + 1)
        apart = [each for each in decades if min(each - low, high - each) > _APART * (high - low)]
        return [(10.0**each, _end(10.0**each)) for each in (low, *apart, high)]


def by_root(rows: int = 1) -> Scale:
    """The default scale: the square root from 0 to 1."""
    return Scale(Scaling.SQRT, np.ones(rows))


def scale_of(
    weights: Float[np.ndarray, "row key"], visible: Bool[np.ndarray, "row key"], asked: Scaling = Scaling.SQRT
) -> Scale:
    """The `asked` kind of scale, fitted to the visible weights where its kind needs that."""
    shown = np.where(visible & np.isfinite(weights), weights, 0.0)
    rows, largest = len(shown), float(shown.max(initial=0.0)) or 1.0
    match asked:
        case Scaling.SQRT:
            return by_root(rows)
        case Scaling.ONE:
            return Scale(asked, np.ones(rows))
        case Scaling.ROW:
            own = shown.max(axis=1, initial=0.0)
            return Scale(asked, np.where(own > 0, own, 1.0))
        case Scaling.LOG:
            return Scale(asked, np.full(rows, largest), _least(shown, visible, largest))
    return Scale(asked, np.full(rows, largest))


def scaling(name: str) -> Scaling:
    """The scale called `name`; `InputError` where there is none."""
    found = next((each for each in Scaling if each == name.casefold()), None)
    if found is None:
        raise InputError(f"no scale is called '{name}': {', '.join(Scaling)}")
    return found


def _least(
    shown: Float[np.ndarray, "row key"], visible: Bool[np.ndarray, "row key"], largest: float
) -> float:
    """Lower end of a logarithmic scale: near the smallest relevant weights, within five decades."""
    positive = shown[visible & (shown > 0)]
    faintest = float(np.quantile(positive, _FAINTEST, method="lower")) if positive.size else 0.0
    even = float(shown.sum()) / max(int(visible.sum()), 1)
    value = min(max(faintest, _OF_EVEN * even, largest / 10**_DECADES), largest / 10)
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{max(math.floor(value / unit), 1) * unit:.0e}")
