"""The rich console for all terminal output, with themes; removes control characters from texts.

Only rich itself may move the cursor or set colours. Sheets are cleaned before layout, so that widths are
right; printing cleans everything once more. Themes give the styles of `palette` for every colour depth and
background; for an unknown background they use the ramp for dark ones, which is legible on white too.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from rich.color import Color
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.theme import Theme

from attnscope.errors import InputError
from attnscope.printable import LEFT_TO_RIGHT, printable
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
from attnscope.render.kit.words import STYLES

Background = Literal["light", "dark", "unknown"]

# xterm's RGB values of the 16 colours, black to bright white; other terminals differ, not in the order
_SIXTEEN = (
    *("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"),
    *("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"),
)
_MIDDLE = 1.05**0.5 * 0.05**0.5 - 0.05  # the luminance at which black and white text have equal contrast


_OURS = "\n" + LEFT_TO_RIGHT


class Paper(Console):
    """A rich console without markup, emoji codes and highlighting."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(emoji=False, markup=False, highlight=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render like rich, without control characters in any text."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, _OURS), segment.style)


VARIABLE = "ATTNSCOPE_THEME"
_DARK_COLOURS = (0, 1, 2, 3, 4, 5, 6, 8)  # of the 16, as in COLORFGBG


def theme(background: Background, depth: str) -> Theme:
    """Theme with the style of every name of `palette`, for the depth `truecolor`, `256` or fewer."""
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


def background(wanted: str | None, environment: Mapping[str, str]) -> Background:
    """The terminal's background, from `wanted`, the environment's theme or COLORFGBG; else `unknown`.

    Raises `InputError` for an unknown theme.
    """
    if wanted is None:
        named = _checked(environment.get(VARIABLE) or "auto", VARIABLE)
    else:
        named = _checked(wanted, "--theme")
    return named or _from_colours(environment.get("COLORFGBG", "")) or "unknown"


def _checked(wanted: str, where: str) -> Background | None:
    known: dict[str, Background | None] = {"auto": None, "light": "light", "dark": "dark"}
    if wanted.casefold() not in known:
        raise InputError(f"{where}: no theme '{wanted}': {', '.join(known)}")
    return known[wanted.casefold()]


def _from_colours(described: str) -> Background | None:
    """The background in `COLORFGBG` (`15;0`, `0;default;15`), None where it is not told."""
    last = described.rpartition(";")[2]
    if not described or not last.isdecimal():
        return None
    return "dark" if int(last) in _DARK_COLOURS else "light" if int(last) < 16 else None
