"""Each block in a terminal, for any width, with and without colour: lines that are never wider than it."""

from functools import singledispatch

from rich.text import Text

from attnscope.render.kit.cells import DIM
from attnscope.render.sheet.blocks import Drawing, Matrix, Rows
from attnscope.render.sheet.drawings import Statements
from attnscope.render.sheet.heads import HeadGrid, HeadMatrices
from attnscope.render.sheets.sound import Timeline
from attnscope.render.sheets.worked import Steps
from attnscope.render.terminal.grid import Mosaic, cells_of, grid, shades
from attnscope.render.terminal.matrix import Picture, numbers
from attnscope.render.terminal.ranking import folded, lines_of_ranking
from attnscope.render.terminal.raster import Raster
from attnscope.render.terminal.statements import statements
from attnscope.render.terminal.steps import steps
from attnscope.render.terminal.timeline import timeline


@singledispatch
def lines_of(block: object, width: int) -> list[Text]:
    """A block in `width` cells."""
    raise TypeError(f"nothing is shown of {type(block).__name__}")


@lines_of.register
def _(block: Drawing, width: int) -> list[Text]:
    return [] if block.plain is None else lines_of(block.plain, width)


@lines_of.register
def _(block: Steps, width: int) -> list[Text]:
    return [each for long in steps(block, width) for each in folded(long, width)]


@lines_of.register
def _(block: Statements, width: int) -> list[Text]:
    return statements(block, width)


@lines_of.register
def _(block: Timeline, width: int) -> list[Text]:
    return [each for long in timeline(block, width) for each in folded(long, width)]


@lines_of.register
def _(block: Rows, width: int) -> list[Text]:
    return lines_of_ranking(block, width)


@lines_of.register
def _(block: HeadGrid, width: int) -> list[Text]:
    return [each for long in grid(block, width) for each in folded(long, width)]


@lines_of.register
def _(block: Matrix, width: int) -> list[Text]:
    title = folded(Text(block.title, style="bold"), width)
    if (lines := numbers(block, width)) is None:
        return title
    says = folded(Text(block.says, style=DIM), width) if block.says else []
    return [*title, *lines, *says]


@lines_of.register
def _(block: HeadMatrices, width: int) -> list[Text]:
    told = Text("too many heads for this screen: a wider one, or -o FILE.png, shows them", style=DIM)
    title = folded(Text(block.title, style="bold"), width)
    if not cells_of(block, width):
        return [*title, *folded(told, width)]
    says = block.says.replace("white", "faint").replace("dark", "strong")
    return [*title, *folded(Text(says, style=DIM), width), Text()]


def picture_of(block: object, width: int) -> Picture | Mosaic | Raster | None:
    """What stands below the lines of a block whose numbers have no room, or of many small matrices."""
    if isinstance(block, Drawing) and not isinstance(block, Timeline):
        return picture_of(block.plain, width)
    if isinstance(block, HeadGrid):
        return shades(block, width)
    if isinstance(block, HeadMatrices):
        return Mosaic(block, cells) if (cells := cells_of(block, width)) else None
    return Picture(block, width) if isinstance(block, Matrix) and numbers(block, width) is None else None
