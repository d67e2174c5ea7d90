"""The colours of `palette` as the styles of a console, for every depth of colour and both backgrounds.

Where nobody knows the background it is the ramp for dark ones, legible on white too.
"""

from typing import Literal

from rich.color import Color
from rich.style import Style
from rich.theme import Theme

from attnscope.render.kit.palette import (
    FEW,
    FEW_VERDICTS,
    FEWEST,
    LOSES,
    MARKS,
    RAMPS,
    SIGNED,
    STEPS,
    VERDICTS,
    WEIGHT,
    Ground,
    between,
    luminance,
    triplet,
)
from attnscope.render.kit.words.certificate import STYLES

Background = Literal["light", "dark", "unknown"]

# what xterm makes of the 16 colours, black to bright white; other terminals differ, not in their order
_SIXTEEN = (
    *("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"),
    *("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"),
)
_MIDDLE = 1.05**0.5 * 0.05**0.5 - 0.05  # the luminance that black and white stand out against alike


def theme(background: Background, depth: str) -> Theme:
    """The style of every name of `palette`, for a console whose colours are `truecolor`, `256` or fewer."""
    ground: Ground = "light" if background == "light" else "dark"
    styles = {
        f"{name}.{step}": _cell(_colour(ground, name, step / STEPS, depth), depth)
        for name in (WEIGHT, SIGNED)
        for step in range(STEPS + 1)
    }
    for name, colours in MARKS[background].items():
        styles[name] = Style(color=_of_depth(depth, *colours), bold=name == LOSES or None)
    for verdict, name in STYLES.items():
        styles[name] = Style(bold=True)
        if verdict in FEW_VERDICTS:
            light, dark, fewest = FEW_VERDICTS[verdict]
            known = depth if background != "unknown" else "standard"
            colours = VERDICTS[ground][verdict], light if ground == "light" else dark, fewest
            styles[name] += Style(color=_of_depth(known, *colours))
    return Theme(styles)


def _of_depth(depth: str, exact: str, few: int, fewest: int) -> Color:
    if depth == "truecolor":
        return Color.from_triplet(triplet(exact))
    return Color.from_ansi(few if depth == "256" else fewest)


def _colour(ground: Ground, name: str, share: float, depth: str) -> Color:
    if depth == "truecolor":
        return Color.from_triplet(between(RAMPS[ground][name], share))
    indices = (FEW if depth == "256" else FEWEST)[ground][name]
    return Color.from_ansi(indices[min(int(share * len(indices)), len(indices) - 1)])


def _cell(background: Color, depth: str) -> Style:
    number = background.number
    seen = background.get_truecolor() if number is None or number > 15 else triplet(_SIXTEEN[number])
    black, white = {
        "truecolor": (_exact("#000000"), _exact("#ffffff")),
        "256": (Color.from_ansi(16), Color.from_ansi(231)),
    }.get(depth, (Color.from_ansi(0), Color.from_ansi(15)))
    return Style(color=black if luminance(seen) > _MIDDLE else white, bgcolor=background)


def _exact(colour: str) -> Color:
    return Color.from_triplet(triplet(colour))
