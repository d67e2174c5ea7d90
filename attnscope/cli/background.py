"""Whether the terminal is light or dark: said by the user or by the environment, else unknown."""

from collections.abc import Mapping

from attnscope.errors import InputError
from attnscope.render.terminal.ramps import Background

THEMES = ("auto", "light", "dark")
VARIABLE = "ATTNSCOPE_THEME"
_DARK_COLOURS = (0, 1, 2, 3, 4, 5, 6, 8)  # of the 16, as in COLORFGBG


def background(wanted: str | None, environment: Mapping[str, str]) -> Background:
    """The background that `wanted` or the environment names.

    Raises `InputError` for a theme that there is not.
    """
    if wanted is None:
        named = _checked(environment.get(VARIABLE) or "auto", VARIABLE)
    else:
        named = _checked(wanted, "--theme")
    return named or _from_colours(environment.get("COLORFGBG", "")) or "unknown"


def _checked(wanted: str, where: str) -> Background | None:
    match wanted.casefold():
        case "auto":
            return None
        case "light":
            return "light"
        case "dark":
            return "dark"
    raise InputError(f"{where}: no theme '{wanted}': {', '.join(THEMES)}")


def _from_colours(described: str) -> Background | None:
    """Of `COLORFGBG`, which holds colours of text and background by number: `15;0`, `0;default;15`."""
    last = described.rpartition(";")[2]
    if not described or not last.isdecimal():
        return None
    return "dark" if int(last) in _DARK_COLOURS else "light" if int(last) < 16 else None
