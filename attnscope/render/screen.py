"""What a console shows of a result: rich renderables for any width, in colour or not; and as plain text.

Nothing is printed here. Text of the model or the user never passes through markup.
"""

import io
import shutil

from rich.console import RenderableType

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.sheet.guard import as_stored
from attnscope.render.sheets import sheet_of
from attnscope.render.terminal.console import Paper
from attnscope.render.terminal.sheet import screen as of_sheet
from attnscope.results import Result


def screen(result: Result, width: int, focus: Focus = WHOLE) -> list[RenderableType]:
    """All that a terminal of `width` cells shows of a result, part by part from the top."""
    sheet = sheet_of(result, focus)
    return of_sheet(sheet if focus.stored is None else as_stored(sheet, focus.stored), width, focus)


NARROWEST, USUAL = 40, 80  # cells


def written(result: Result, focus: Focus = WHOLE, width: int | None = None) -> str:
    """What a terminal of `width` cells shows; as wide as the one there is, or 80 where there is none."""
    wide = shutil.get_terminal_size((USUAL, 24)).columns if width is None else width
    wide = max(wide, NARROWEST)
    paper = Paper(file=io.StringIO(), width=wide, color_system=None, force_jupyter=False)
    with paper.capture() as captured:
        for part in screen(result, wide, focus):
            paper.print(part)
    return captured.get().rstrip("\n")
