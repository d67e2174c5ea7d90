"""A result as plain text: what a terminal shows, without colour."""

import io
import shutil

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.screen import screen
from attnscope.render.terminal.console import Paper
from attnscope.results import Result

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
