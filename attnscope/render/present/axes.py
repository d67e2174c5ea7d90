"""A result drawn where the user wants it, on an Axes of his own, or on a page of its own."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.errors import InputError
from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus, focus_on
from attnscope.render.kit.typesetting import drawing
from attnscope.render.look import USUAL, Look
from attnscope.render.plot.sheet import draw as draw_block
from attnscope.render.sheets import NO_PICTURE, sheet_of
from attnscope.results import (
    Result,
)

Name = str | int | None


def plot(
    result: Result,
    ax: Axes | None,
    *,
    show: str | None = None,
    query: Name = None,
    key: Name = None,
    scale: str | None = None,
    look: Look = USUAL,
) -> Axes | Figure:
    """`result` on `ax`, which is returned, or without one a finished figure that a notebook shows."""
    focus = drawn_focus(result, show, query, key, scale)
    if ax is None:
        figure = figure_of(result, focus, look)
        figure.set_dpi(look.dpi)
        return figure
    if look != USUAL:
        raise InputError("title, size, dpi, caption and bare are those of a page: leave ax or these out")
    if not isinstance(ax, Axes):
        raise InputError(f"ax is an Axes of matplotlib, not {type(ax).__name__}")
    sheet = sheet_of(result, focus)
    if sheet.main is None:
        raise InputError(f"{sheet.whole} and takes a page of its own: leave ax out")
    with drawing():
        draw_block(sheet.main, ax)
    return ax


def drawn_focus(result: Result, show: str | None, query: Name, key: Name, scale: str | None = None) -> Focus:
    """What is to be drawn; `InputError` for what a picture of this result cannot show."""
    if (reason := NO_PICTURE.get(type(result))) is not None:
        raise InputError(reason)
    return focus_on(result, show, query, key, scale)
