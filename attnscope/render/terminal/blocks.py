"""Each block in a terminal, for any width, with and without colour: lines that are never wider than it."""

from functools import singledispatch

import numpy as np
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, headings, least_head, line, row_heads, widest
from attnscope.render.kit.labels import column_widths, left, right, settled
from attnscope.render.kit.numbers import counted
from attnscope.render.sheet.blocks import Column, HeadGrid, Matrix, Ranking

_MOST_ROWS = 40  # of a matrix
_LEAST_CELL = 6  # of a grid


@singledispatch
def lines_of(block: object, width: int) -> list[Text]:
    """A block in `width` cells."""
    raise TypeError(f"nothing is shown of {type(block).__name__}")


@lines_of.register
def _(block: Ranking, width: int) -> list[Text]:
    """Its columns as far as they have room, the lesser ones left out."""
    name, kept = _name(block), kept_columns(block, width)
    heading = left(block.of, name) + "".join(_fitted(each, each.heading, block) for each in kept)
    lines = [Text(each, style="bold") for each in (block.title,) if each]
    lines += [Text(each, style=DIM) for each in (block.says,) if each]
    lines.append(line((heading, HEADING)))
    for row, named in enumerate(block.names):
        faint = DIM if row in block.faint else ""
        cells = [_cell(each, row, block, faint) for each in kept]
        lines.append(line((left(named, name), faint or HEADING), *cells))
    if block.hidden:
        lines.append(Text(f"and {counted(block.hidden, block.of)} more (-o FILE.csv has all)", style=DIM))
    return [each for long in lines for each in _folded(long, width)]


def kept_columns(block: Ranking, width: int) -> list[Column]:
    """The columns that have room in `width` cells."""
    kept = list(block.table.headed)
    while _name(block) + sum(_cells(each, block) for each in kept) > width and (
        spared := [each for each in kept if each.spared]
    ):
        kept.remove(max(spared, key=lambda each: each.spared))
    while len(kept) > 1 and _name(block) + sum(_cells(each, block) for each in kept) > width:
        kept.pop()
    return kept


def _name(block: Ranking) -> int:
    return max(len(each) for each in (block.of, *block.names)) + 1


def _fitted(column: Column, text: str, block: Ranking) -> str:
    cells = _cells(column, block)
    return "  " + left(text, cells - 2) if column.words else right(text + _pad(column), cells)


def _pad(column: Column) -> str:
    return " " if column.scale else ""


def _cells(column: Column, block: Ranking) -> int:
    """As wide as its widest text, with a gap."""
    texts = (column.heading, *map(column.text, range(len(block.names))))
    return max(map(len, texts)) + 2 + len(_pad(column))


def _cell(column: Column, row: int, block: Ranking, faint: StyleType) -> tuple[str, StyleType]:
    text = column.text(row)
    shade = column.scale.style(column.values[row]) if column.scale and text else faint
    return _fitted(column, text, block), shade


def _folded(text: Text, width: int) -> list[Text]:
    """Lines of a table as they are, of words as many as they need."""
    if text.cell_len <= width or text.no_wrap:
        return [text]
    words, lines = text.plain.split(" "), [""]
    for word in words:
        joined = f"{lines[-1]} {word}".strip()
        lines = [*lines[:-1], joined] if len(joined) <= width else [*lines, word]
    return [Text(each, style=text.style) for each in lines if each]


@lines_of.register
def _(block: HeadGrid, width: int) -> list[Text]:
    """Every number, in pieces where the heads do not stand side by side; heads without any are left out."""
    margin = len(f"L{max(block.layers)}") + 1
    texts = [["" if np.isnan(each) else block.form(float(each)) for each in row] for row in block.values]
    cell = max(_LEAST_CELL, 1 + widest(texts))
    looked = [j for j in range(len(block.heads)) if any(row[j] for row in texts)]
    across = max((width - margin) // cell, 1)
    title = f"{block.title}, {block.unit}" if block.unit else block.title
    lines = _folded(Text(title, style=HEADING), width)
    for start in range(0, len(looked), across):
        columns = looked[start : start + across]
        names = "".join(right(f"H{block.heads[j]}", cell) for j in columns)
        lines.append(line(" " * margin, (names, DIM)))
        for i, layer in enumerate(block.layers):
            cells = [_of_head(block, i, j, texts[i][j], cell) for j in columns]
            lines.append(line((left(f"L{layer}", margin), DIM), *cells))
    return lines


def _of_head(block: HeadGrid, i: int, j: int, text: str, cell: int) -> tuple[str, StyleType]:
    if block.itself == (i, j):
        return right("■", cell), HEADING
    return right(text, cell), block.scale.style(float(block.values[i, j]))


@lines_of.register
def _(block: Matrix, width: int) -> list[Text]:
    """All numbers under stacked headings where these fit; else a line that says where they are."""
    texts = [["" if np.isnan(each) else block.form(float(each)) for each in row] for row in block.values]
    least, title = widest(texts) + 1, _folded(Text(block.title, style="bold"), width)
    if least_head(block.rows) + least * len(block.columns) > width or len(block.rows) > _MOST_ROWS:
        told = "too large for this screen: a wider one, or -o FILE.png, shows it"
        return [*title, *_folded(Text(told, style=DIM), width)]
    heads = row_heads(block.rows, width - least * len(block.columns))
    names = [settled(each) for each in block.columns.names]
    widths = column_widths(names, least, width - heads.cells)
    lines = headings(heads, ("", *block.words), block.columns.positions, names, widths)
    for i, row in enumerate(texts):
        cells = zip(row, widths, block.values[i].tolist(), strict=True)
        parts = [(right(text, wide), block.scale.style(value)) for text, wide, value in cells]
        lines.append(line(heads.text(i), *parts))
    return [*title, *lines, *_folded(Text(block.says, style=DIM), width)]
