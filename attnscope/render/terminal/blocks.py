"""Each block in a terminal, for any width, with and without colour: lines that are never wider than it."""

from functools import singledispatch

import numpy as np
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line, widest
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.sheet.blocks import HeadGrid, Matrix, Rows
from attnscope.render.terminal.matrix import Picture, numbers
from attnscope.render.terminal.ranking import folded, lines_of_ranking

_LEAST_CELL = 6  # of a grid


@singledispatch
def lines_of(block: object, width: int) -> list[Text]:
    """A block in `width` cells."""
    raise TypeError(f"nothing is shown of {type(block).__name__}")


@lines_of.register
def _(block: Rows, width: int) -> list[Text]:
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
    """All numbers under stacked headings where these fit, else a picture of them."""
    title = folded(Text(block.title, style="bold"), width)
    if (lines := numbers(block, width)) is None:
        return title
    says = folded(Text(block.says, style=DIM), width) if block.says else []
    return [*title, *lines, *says]


def picture_of(block: object, width: int) -> Picture | None:
    """What stands below the lines of a matrix whose numbers have no room."""
    return Picture(block, width) if isinstance(block, Matrix) and numbers(block, width) is None else None
