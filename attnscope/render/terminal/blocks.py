"""Each block in a terminal, for any width, with and without colour: lines that are never wider than it."""

from functools import singledispatch

import numpy as np
from rich.text import Text

from attnscope.render.kit.cells import DIM, headings, least_head, line, row_heads, widest
from attnscope.render.kit.labels import column_widths, right, settled
from attnscope.render.sheet.blocks import HeadGrid, Matrix, Ranking
from attnscope.render.terminal.grid import grid
from attnscope.render.terminal.ranking import folded, lines_of_ranking

_MOST_ROWS = 40  # of a matrix


@singledispatch
def lines_of(block: object, width: int) -> list[Text]:
    """A block in `width` cells."""
    raise TypeError(f"nothing is shown of {type(block).__name__}")


@lines_of.register
def _(block: Ranking, width: int) -> list[Text]:
    return lines_of_ranking(block, width)


@lines_of.register
def _(block: HeadGrid, width: int) -> list[Text]:
    return [each for long in grid(block, width) for each in folded(long, width)]


@lines_of.register
def _(block: Matrix, width: int) -> list[Text]:
    """All numbers under stacked headings where these fit; else a line that says where they are."""
    texts = [["" if np.isnan(each) else block.form(float(each)) for each in row] for row in block.values]
    least, title = widest(texts) + 1, folded(Text(block.title, style="bold"), width)
    if least_head(block.rows) + least * len(block.columns) > width or len(block.rows) > _MOST_ROWS:
        told = "too large for this screen: a wider one, or -o FILE.png, shows it"
        return [*title, *folded(Text(told, style=DIM), width)]
    heads = row_heads(block.rows, width - least * len(block.columns))
    names = [settled(each) for each in block.columns.names]
    widths = column_widths(names, least, width - heads.cells)
    lines = headings(heads, ("", *block.words), block.columns.positions, names, widths)
    for i, row in enumerate(texts):
        cells = zip(row, widths, block.values[i].tolist(), strict=True)
        parts = [(right(text, wide), block.scale.style(value)) for text, wide, value in cells]
        lines.append(line(heads.text(i), *parts))
    return [*title, *lines, *folded(Text(block.says, style=DIM), width)]
