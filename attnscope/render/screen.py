"""What a console shows of a result: rich renderables, for any width, with and without colour.

No function here makes a console or prints. Text of the model or the user never passes through markup.
"""

from rich.console import RenderableType

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.sheet.stored import as_stored
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.sheet import screen as of_sheet
from attnscope.results import Result


def screen(result: Result, width: int, focus: Focus = WHOLE) -> list[RenderableType]:
    """All that a terminal of `width` cells shows of a result, part by part from the top."""
    sheet = sheet_of(result, focus)
    return of_sheet(sheet if focus.stored is None else as_stored(sheet, focus.stored), width, focus)
