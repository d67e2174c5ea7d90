"""A result as a matplotlib figure, and a figure as the same bytes every time.

`figure_of` is the door for every result that has a picture, `pages` for its PDF. Figures are made without
pyplot, on a light page that is as large as its labels need. The `plot` modules of the rooms draw the same on
any Axes.
"""

from matplotlib.figure import Figure

from attnscope.errors import InputError
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.figure.figure_file import FORMATS, Format, figure_bytes
from attnscope.render.kit.typesetting import missing_glyphs
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.look import USUAL, Look, dressed
from attnscope.render.pictured import NO_PICTURE
from attnscope.render.plot.sheet import figure as sheet_figure
from attnscope.render.report.page import report_figure, report_pages, report_panels
from attnscope.render.sheets import sheet_of
from attnscope.results import (
    Report,
    Result,
)


def figure_of(result: Result, focus: Focus = WHOLE, look: Look = USUAL) -> Figure:
    """The picture of a result on one page; `InputError` for a result that has none."""
    if (reason := NO_PICTURE.get(type(result))) is not None:
        raise InputError(reason)
    with dressed(look, verdict_remark(result)):
        if isinstance(result, Report):  # whose page has a design of its own
            return report_figure(result)
        return sheet_figure(sheet_of(result, focus))


def pages(result: Result, focus: Focus = WHOLE, look: Look = USUAL) -> list[Figure]:
    """The pages of a result's PDF: a panel a page of a report, else its one picture."""
    if not isinstance(result, Report):
        return [figure_of(result, focus, look)]
    with dressed(look):
        return report_pages(result)


def panels(result: Report, look: Look = USUAL) -> dict[str, Figure]:
    """The panels of a report, each as a page of its own, by their names."""
    with dressed(look):
        return report_panels(result)


def verdict_remark(result: Result) -> str:
    """What no title may leave out: a verdict that is not the best. A report has it beside its title."""
    verdict = None if isinstance(result, Report) else result.verdict
    return "" if verdict is None or verdict.proved else verdict_words(verdict)


__all__ = [
    "FORMATS",
    "Format",
    "figure_bytes",
    "figure_of",
    "missing_glyphs",
    "pages",
    "panels",
]
