"""A result drawn where the user wants it, on an Axes of his own, or on a page of its own."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.errors import InputError
from attnscope.render.figure import figure_of
from attnscope.render.focus import Focus, focus_on
from attnscope.render.head.row import draw_row, row_of
from attnscope.render.kit.stage import VECTORS, only, panel
from attnscope.render.kit.typesetting import drawing
from attnscope.render.look import USUAL, Look
from attnscope.render.pictured import NO_PICTURE
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.sheet import draw as draw_block
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import sheet_of
from attnscope.results import (
    HeadView,
    HeadWeights,
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
    with drawing():
        _draw(result, ax, focus) if sheet is None else _draw_main(sheet, ax)
    return ax


def _draw_main(sheet: Sheet, ax: Axes) -> None:
    """The block that stands alone."""
    if sheet.main is None:
        raise InputError(f"{sheet.whole} and takes a page of its own: leave ax out")
    draw_block(sheet.main, ax)


def drawn_focus(result: Result, show: str | None, query: Name, key: Name, scale: str | None = None) -> Focus:
    """What is to be drawn; `InputError` for what a picture of this result cannot show."""
    if (reason := NO_PICTURE.get(type(result))) is not None:
        raise InputError(reason)
    return focus_on(result, show, query, key, scale)


@singledispatch
def _draw(result: Any, ax: Axes, focus: Focus) -> None:
    raise InputError("this picture has several panels and takes a page of its own: leave ax out")


def _head(result: HeadWeights | HeadView, ax: Axes, focus: Focus) -> None:
    shown = panel(result, focus.stage, focus.scale)
    if focus.query is not None and focus.stage in VECTORS:
        draw_head(only(shown, focus.query), ax)
    elif focus.query is None:
        draw_head(shown, ax)
    else:
        draw_row(row_of(shown, focus.query, focus.key), ax)


_PLOTS: dict[type, Callable[[Any, Axes, Focus], None]] = {
    HeadWeights: _head,
    HeadView: _head,
}
for _kind, _of_kind in _PLOTS.items():
    _draw.register(_kind, _of_kind)
