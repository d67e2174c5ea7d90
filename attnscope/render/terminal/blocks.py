"""Each block in a terminal, for any width, with and without colour: lines that are never wider than it."""

from functools import singledispatch

import numpy as np
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, headings, least_head, line, row_heads, widest
from attnscope.render.kit.labels import column_widths, left, right, settled
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.sheet.blocks import HeadGrid, Matrix, Ranking
from attnscope.render.terminal.ranking import folded, lines_of_ranking

_MOST_ROWS = 40  # of a matrix
_LEAST_CELL = 6  # of a grid


@singledispatch
def lines_of(block: object, width: int) -> list[Text]:
    """A block in `width` cells."""
    raise TypeError(f"nothing is shown of {type(block).__name__}")


@lines_of.register
def _(block: Ranking, width: int) -> list[Text]:
    return lines_of_ranking(block, width)


@lines_of.register
def _(block: HeadGrid, width: int) -> list[Text]:
    """Every number, in pieces where the heads do not stand side by side; heads without any are left out."""
    margin = len(f"L{max(block.layers)}") + 1
    texts = [[_head_text(block, i, j) for j in range(len(block.heads))] for i in range(len(block.layers))]
    cell = max(_LEAST_CELL, 1 + widest(texts))
    looked = [j for j in range(len(block.heads)) if any(row[j] for row in texts)]
    across = max((width - margin) // cell, 1)
    title = f"{block.title}, {block.unit}" if block.unit else block.title
    lines = folded(Text(title, style=HEADING), width)
    for start in range(0, len(looked), across):
        columns = looked[start : start + across]
        names = "".join(right(f"H{block.heads[j]}", cell) for j in columns)
        lines.append(line(" " * margin, (names, DIM)))
        for i, layer in enumerate(block.layers):
            cells = [_of_head(block, i, j, texts[i][j], cell) for j in columns]
            lines.append(line((left(f"L{layer}", margin), DIM), *cells))
    return lines


def _head_text(block: HeadGrid, i: int, j: int) -> str:
    """Its number, the glyph of its verdict before it where it is not certified."""
    value, doubt = float(block.values[i, j]), block.doubt(i, j)
    mark = "" if doubt is None else GLYPHS[doubt]
    return mark if np.isnan(value) else f"{mark} {block.form(value)}".strip()


def _of_head(block: HeadGrid, i: int, j: int, text: str, cell: int) -> tuple[str, StyleType]:
    if block.itself == (i, j):
        return right("■", cell), HEADING
    return right(text, cell), block.scale.style(float(block.values[i, j]))


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
