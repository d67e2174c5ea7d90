"""What a console shows of a result: rich renderables, for any width, with and without colour.

`screen` is the door for every result: its sheet, or else the parts of its room. No function here makes a
console or prints. Text of the model or the user never passes through markup.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from rich.console import RenderableType

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.head.bars import query_bars
from attnscope.render.head.matrix import matrix
from attnscope.render.head.shown import head_shown
from attnscope.render.kit.stage import SHOWS, Show
from attnscope.render.kit.words.certificate import certificate_line, verdict_words
from attnscope.render.kit.words.header import header
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import screen as shown_sheet
from attnscope.results import (
    HeadView,
    HeadWeights,
    Result,
)

Lines = list[RenderableType]


def screen(result: Result, width: int, focus: Focus = WHOLE) -> Lines:
    """All that a terminal of `width` cells shows of a result, part by part from the top."""
    sheet = sheet_of(result, focus)
    return _shown(result, width, focus) if sheet is None else shown_sheet(sheet, width)


@singledispatch
def _shown(result: Any, width: int, focus: Focus) -> Lines:
    raise TypeError(f"nothing is shown of {type(result).__name__}")


# a new kind of result is one function above and one line here
_SCREENS: dict[type, Callable[[Any, int, Focus], Lines]] = {
    HeadWeights: head_shown,
    HeadView: head_shown,
}
for _kind, _of_kind in _SCREENS.items():
    _shown.register(_kind, _of_kind)

__all__ = [
    "SHOWS",
    "Show",
    "certificate_line",
    "header",
    "matrix",
    "query_bars",
    "screen",
    "verdict_words",
]
