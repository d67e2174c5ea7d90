"""A sheet in a page: its answer, its blocks, and what has to be known. Nothing of it needs a script."""

from attnscope.render.sheet.blocks import Block, Drawing, Matrix, Rows
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import legend
from attnscope.render.sheets.picture import Original
from attnscope.render.terminal.blocks import lines_of
from attnscope.render.web.blocks import escape
from attnscope.render.web.grid import grid
from attnscope.render.web.matrix import matrix
from attnscope.render.web.media import original
from attnscope.render.web.ranking import paragraph, ranking

_CELLS = 100  # of a line


def section(sheet: Sheet, *, answer: bool = True, blocks: bool = True, after: str = "") -> str:
    """The element of the page, with its `answer` and its `blocks` where these stand nowhere else.

    All text is escaped. `after` is markup behind the first block.
    """
    every = (*sheet.every, *sheet.more) if blocks else ()
    drawn = [each for each in every if isinstance(each, Rows) and each.names]
    said = legend(column for each in drawn for column in each.table.headed)
    told = "".join(paragraph(each, "told") for each in (said, *sheet.told))
    if told:
        told = f"<details><summary>What this rests on, and what the words mean</summary>{told}</details>"
    first = paragraph(sheet.answer, "answer") if answer else ""
    drawing = [f'<div class="block">{drawn}</div>' for drawn in map(_block, every) if drawn]
    drawing.insert(1, after)
    inside = "".join((first, *drawing, told, _next(sheet)))
    return f'<section id="sheet" aria-label="The result">{inside}</section>\n'


def _next(sheet: Sheet) -> str:
    if sheet.next is None:
        return ""
    return (
        f'<p class="next">Next: {escape(sheet.next.question)} <code>{escape(sheet.next.command)}</code></p>'
    )


def _block(block: Block) -> str:
    if isinstance(block, HeadGrid):
        return grid(block)
    if isinstance(block, Matrix):
        return matrix(block)
    if isinstance(block, Original):
        return original(block)
    if isinstance(block, Drawing):
        return _written(block) if block.plain is None else _block(block.plain)
    return ranking(block) if isinstance(block, Rows) and block.names else ""


def _written(block: Drawing) -> str:
    """What a terminal writes of a drawing, in letters of one width; nothing of what only a picture shows."""
    text = "\n".join(escape(each.plain) for each in lines_of(block, _CELLS))
    return f'<div class="wide"><pre>{text}</pre></div>' if text else ""
