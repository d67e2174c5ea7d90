"""Golden text: what a renderable prints at a width, held against a file under `golden/`.

`ATTNSCOPE_REGENERATE=1 pytest tests/render` writes the files anew.
"""

import os
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from attnscope.render.sheets import WHOLE, Focus, sheet_of
from attnscope.render.terminal.console import Background, theme
from attnscope.render.terminal.sheet import body as of_sheet
from attnscope.render.terminal.sheet import identity, laid
from attnscope.results import Result

IN_FULL = Focus(legend=True, verbose=True)  # all that there is to say
GOLDEN = Path(__file__).parents[1] / "render" / "golden"


def printed(
    renderable: RenderableType, width: int = 80, colour: str | None = None, background: Background = "light"
) -> str:
    """The text of a console of `width`; `colour` is a colour system of rich, None for a pipe."""
    buffer = StringIO()
    console = Console(
        file=buffer,
        width=width,
        color_system=colour,  # type: ignore[arg-type]
        force_terminal=colour is not None,
        legacy_windows=False,
    )
    if colour is not None:
        console.push_theme(theme(background, colour))
    console.print(renderable)
    return buffer.getvalue()


def header(result: Result) -> RenderableType:
    """What files and -v tell: what it is and of which model, how it was read; the text."""
    made = sheet_of(result)
    return Group(*(Text(each) for each in (*identity(made), *made.texts)))


def body(result: Result, width: int, focus: Focus = WHOLE) -> RenderableType:
    """What a terminal shows of a result: its answer, its blocks, and all that is said of them."""
    made = sheet_of(result, focus)
    return of_sheet(made, width, replace(focus, legend=True, verbose=True))


def drawn(result: Result, width: int, focus: Focus = WHOLE) -> RenderableType:
    """The blocks alone, under their titles."""
    made = sheet_of(result, focus)
    return Group(*laid(made.blocks, width))


def assert_golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("ATTNSCOPE_REGENERATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} is not what it was: see golden_text.py"
