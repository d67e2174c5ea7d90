"""The colours behind the names of `palette`: one ramp for every depth of colour and both backgrounds.

On a light background more is darker, on a dark one more is brighter, so that 0 recedes. A ramp for 256 or
16 colours is chosen by hand from those: the nearest of them to the colours of a finer ramp go from cyan to
lavender to grey-green. Where nobody knows the background it is the ramp for dark ones, legible on white too.
"""

from typing import Literal

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style
from rich.theme import Theme

from attnscope.render.kit.palette import BAR, BAR_BACK, SIGNED, STEPS, WEIGHT, luminance

Background = Literal["light", "dark", "unknown"]
Anchors = tuple[str, ...]
Indices = tuple[int, ...]

# what xterm makes of the 16 colours, black to bright white; other terminals differ, not in their order
_SIXTEEN = (
    *("000000", "cd0000", "00cd00", "cdcd00", "0000ee", "cd00cd", "00cdcd", "e5e5e5"),
    *("7f7f7f", "ff0000", "00ff00", "ffff00", "5c5cff", "ff00ff", "00ffff", "ffffff"),
)
_MIDDLE = 1.05**0.5 * 0.05**0.5 - 0.05  # the luminance that black and white stand out against alike

_TRUE: dict[str, dict[str, Anchors]] = {
    "light": {
        WEIGHT: ("ebf2fa", "d3e3f3", "b0d0eb", "85b8e0", "5a9bd1", "357dbd", "1c60a6", "0d4587", "082a5e"),
        SIGNED: (
            *("67001f", "b2182b", "d6604d", "f4a582", "fddbc7", "f7f7f7"),
            *("d1e5f0", "92c5de", "4393c3", "2166ac", "053061"),
        ),
    },
    "dark": {
        WEIGHT: ("0b1a3d", "14306b", "1c4f9c", "1b76b8", "2a9cc0", "55bcb8", "9bd8a6", "d8eca0", "fbf7b0"),
        SIGNED: (
            *("ffc49b", "f58a5b", "c94f35", "7f2a22", "45191a", "1c1c1c"),
            *("15294a", "1f4f86", "2f7fc4", "62b0ee", "a8dbff"),
        ),
    },
}
_FEW: dict[str, dict[str, Indices]] = {
    "light": {
        WEIGHT: (255, 153, 75, 32, 25, 19, 17),
        SIGNED: (88, 124, 167, 217, 224, 255, 153, 75, 32, 25, 19),
    },
    "dark": {
        WEIGHT: (234, 18, 19, 25, 32, 38, 79, 157, 229),
        SIGNED: (216, 209, 167, 124, 88, 52, 234, 18, 19, 25, 32, 75, 117),
    },
}
_FEWEST: dict[str, dict[str, Indices]] = {
    "light": {WEIGHT: (15, 14, 6, 12, 4), SIGNED: (1, 9, 15, 12, 4)},
    "dark": {WEIGHT: (0, 4, 12, 6, 14, 11), SIGNED: (9, 1, 0, 4, 12)},
}
# by background: bars and bars of what speaks against something, each exact, of 256 and of 16 colours
_BARS: dict[Background, dict[str, tuple[str, int, int]]] = {
    "light": {BAR: ("1c60a6", 25, 4), BAR_BACK: ("b2182b", 124, 1)},
    "dark": {BAR: ("62b0ee", 75, 14), BAR_BACK: ("f58a5b", 209, 9)},
    "unknown": {BAR: ("2f7fc4", 32, 12), BAR_BACK: ("d6604d", 167, 9)},
}


def theme(background: Background, depth: str) -> Theme:
    """The style of every name of `palette`, for a console whose colours are `truecolor`, `256` or fewer."""
    ramps = "light" if background == "light" else "dark"
    styles = {
        f"{name}.{step}": _cell(_colour(ramps, name, step / STEPS, depth), depth)
        for name in (WEIGHT, SIGNED)
        for step in range(STEPS + 1)
    }
    for name, (exact, few, fewest) in _BARS[background].items():
        colours = {"truecolor": _exact(exact), "256": Color.from_ansi(few)}
        styles[name] = Style(color=colours.get(depth, Color.from_ansi(fewest)))
    return Theme(styles)


def _colour(ramps: str, name: str, share: float, depth: str) -> Color:
    """The colour at `share` of a ramp; of few colours each stands for an equal part of it."""
    if depth == "truecolor":
        return _between(_TRUE[ramps][name], share)
    indices = (_FEW if depth == "256" else _FEWEST)[ramps][name]
    return Color.from_ansi(indices[min(int(share * len(indices)), len(indices) - 1)])


def _cell(background: Color, depth: str) -> Style:
    """A cell of that colour, its text in black or white of the same depth, whichever stands out more."""
    number = background.number
    seen = background.get_truecolor() if number is None or number > 15 else _triplet(_SIXTEEN[number])
    black, white = {
        "truecolor": (_exact("000000"), _exact("ffffff")),
        "256": (Color.from_ansi(16), Color.from_ansi(231)),
    }.get(depth, (Color.from_ansi(0), Color.from_ansi(15)))
    return Style(color=black if luminance(seen) > _MIDDLE else white, bgcolor=background)


def _between(anchors: Anchors, share: float) -> Color:
    place = share * (len(anchors) - 1)
    first = min(int(place), len(anchors) - 2)
    low, high = _triplet(anchors[first]), _triplet(anchors[first + 1])
    red, green, blue = (round(a + (b - a) * (place - first)) for a, b in zip(low, high, strict=True))
    return Color.from_rgb(red, green, blue)


def _exact(colour: str) -> Color:
    return Color.from_triplet(_triplet(colour))


def _triplet(colour: str) -> ColorTriplet:
    return ColorTriplet(*bytes.fromhex(colour))
