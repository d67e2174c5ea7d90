"""What a result shows of itself, wherever it is: called by `attnscope.results.base.presented`.

matplotlib and pandas are loaded by what needs them, so that a `repr` stays quick.
"""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.errors import InputError
from attnscope.render.look import USUAL, Look
from attnscope.render.present.notebook import html, page, png, summary
from attnscope.render.saving import PICTURES, check_targets, content, write
from attnscope.render.sheets import focus_on
from attnscope.render.terminal.sheet import written
from attnscope.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["html", "page", "plot", "png", "save", "summary", "text", "to_pandas"]

Name = str | int | None


def text(
    result: Result,
    *,
    show: str | None = None,
    query: Name = None,
    key: Name = None,
    scale: str | None = None,
    width: int | None = None,
) -> str:
    """What a terminal shows of it, without colour."""
    return written(result, focus_on(result, show, query, key, scale), width)


def plot(
    result: Result,
    ax: "Axes | None",
    *,
    show: str | None,
    query: Name,
    key: Name,
    scale: str | None,
    look: Mapping[str, Any],
) -> "Axes | Figure":
    """See `attnscope.render.figure`."""
    from attnscope.render import figure

    return figure.plot(result, ax, show=show, query=query, key=key, scale=scale, look=look_of(look))


def save(
    result: Result,
    path: str | Path,
    *,
    show: str | None,
    query: Name,
    key: Name,
    scale: str | None,
    look: Mapping[str, Any],
) -> Path:
    """`result` at `path`, as its suffix says; a warning tells of characters that no font can draw."""
    target, dressed = Path(os.path.expanduser(path)), look_of(look)
    check_targets([target], type(result))
    suffix, focus = target.suffix.lower(), focus_on(result)
    if suffix in PICTURES:
        from attnscope.render import figure

        focus = figure.drawn_focus(result, show, query, key, scale)
    elif (show, query, key, scale) != (None, None, None, None) or dressed != USUAL:
        raise InputError(f"{suffix} holds all of the numbers: leave show, query, key, scale and the look out")

    def warn(notice: str) -> None:
        warnings.warn(notice, stacklevel=5)

    write(target, content(result, suffix, focus, dressed, warn))
    return target


def look_of(given: Mapping[str, Any]) -> Look:
    """The look that these words say; `TypeError` for a word that none has, as for any other function."""
    return Look(**given)


def to_pandas(result: Result, show: str | None = None) -> "DataFrame":
    """See `attnscope.render.present.frames`."""
    from attnscope.render.present import frames

    return frames.to_pandas(result, show)
