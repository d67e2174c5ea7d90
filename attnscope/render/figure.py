"""A result as a matplotlib figure, and a figure as the same bytes every time.

`figure_of` draws any result that has a picture, `pages` its PDF, `plot` on the user's Axes. Figures are made
without pyplot, on a light page as large as its labels need. The `plot` modules draw on any Axes.
"""

import io
from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.register import kind_of, there
from attnscope.render.kit.page import ZoomedPages
from attnscope.render.kit.typesetting import drawing, missing_glyphs
from attnscope.render.kit.words import verdict_words
from attnscope.render.look import DPI, USUAL, Look, dressed
from attnscope.render.plot.sheet import draw as draw_block
from attnscope.render.plot.sheet import figure as sheet_figure
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import WHOLE, Focus, focus_on, no_picture, sheet_of
from attnscope.results import Result, Verdict
from attnscope.results.base.origin import worst


def figure_of(result: Result, focus: Focus = WHOLE, look: Look = USUAL) -> Figure:
    """The picture of a result on one page; `InputError` for a result that has none."""
    _check_picture(result)
    if (own := _own(result)) is not None:  # which has verdicts beside its title
        with dressed(look):
            return own.figure(result)  # type: ignore[no-any-return]
    with dressed(look):
        sheet = sheet_of(result, focus)
    with dressed(look, _remark(result, sheet)):
        return sheet_figure(sheet)


def pages(result: Result, focus: Focus = WHOLE, look: Look = USUAL) -> list[Figure]:
    """The figures of a result's PDF pages: one per panel, or its one picture."""
    if (own := _own(result)) is None:
        return [figure_of(result, focus, look)]
    with dressed(look):
        return own.pages(result)  # type: ignore[no-any-return]


def panels(result: Result, look: Look = USUAL) -> dict[str, Figure]:
    """The panels of a result as figures by name; empty where it has no panels."""
    if (own := _own(result)) is None:
        return {}
    with dressed(look):
        return own.named_pages(result)  # type: ignore[no-any-return]


def _own(result: Result) -> Any:
    kind = kind_of(type(result))
    return there(kind.drawing) if kind is not None and kind.drawing else None


def _check_picture(result: Result) -> None:
    if reason := no_picture(type(result)):
        raise InputError(reason)


def _remark(result: Result, sheet: Sheet) -> str:
    verdict = result.verdict or worst((Verdict.CERTIFIED, *(each for each, _ in sheet.proof)))
    return "" if verdict.proved else verdict_words(verdict)


__all__ = ["FORMATS", "Format", "figure_bytes", "figure_of", "missing_glyphs", "pages", "panels"]


Format = Literal["png", "svg", "pdf"]
FORMATS: tuple[Format, ...] = ("png", "svg", "pdf")
_NO_TIME = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
_TOLD_AS = {"png": "Description", "svg": "Description", "pdf": "Subject"}  # where a file has room for words
_MOST_DOTS = 2**16 - 1  # of a side


def figure_bytes(
    figure: Figure | Sequence[Figure], format: Format, dpi: int = DPI, described: str = ""
) -> bytes:
    """The file content of `figure`, without times or random names: equal results give equal bytes.

    Several figures are the pages of one PDF. `described` goes into the file's metadata. Raises `InputError`
    for more dots than a picture can have.
    """
    buffer = io.BytesIO()
    metadata = {**_NO_TIME[format], **({_TOLD_AS[format]: printable(described)} if described else {})}
    with drawing():
        if not isinstance(figure, Figure):
            with ZoomedPages(buffer, metadata=metadata) as pages:
                for page_figure in figure:
                    pages.savefig(page_figure, dpi=dpi)
        else:
            widest = getattr(figure, "zoom", 1.0) * max(figure.get_size_inches())
            if format == "png" and widest * dpi > _MOST_DOTS:
                room = f"has no room for {dpi} dots per inch: at most {int(_MOST_DOTS / widest)}"
                raise InputError(f"a PNG of {widest:.1f} inches {room}")
            figure.savefig(buffer, format=format, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def plot(result: Result, ax: Axes | None, look: Look = USUAL, **looked_at: Any) -> Axes | Figure:
    """Draw `result` on `ax` and return it; without one, return a finished figure.

    `looked_at` are the arguments of `focus_on`.
    """
    focus = drawn_focus(result, **looked_at)
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


def drawn_focus(result: Result, **looked_at: Any) -> Focus:
    """Focus of a picture of `result`; `InputError` for a focus that its picture cannot show."""
    _check_picture(result)
    return focus_on(result, **looked_at)
