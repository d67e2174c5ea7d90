"""Grids of all heads in a terminal, layers down and heads across: numbers, or small weight matrices.

Where the numbers would fill more than a screen, each head is a shade, unless the grid is `whole`.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, left, line, right, widest
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words import GLYPHS, STYLES
from attnscope.render.sheet.heads import Companion, HeadGrid, HeadMatrices
from attnscope.render.terminal.raster import Raster, Side, ink_of

_LEAST_CELL, _MOST_LINES = 6, 40
_LEAST_NAMES, _MOST_NAMES = 11, 16  # cells of a head whose names stand below its number
_BEYOND = "*"


def grid(block: HeadGrid, width: int) -> list[Text]:
    """Lines of a grid: title, cells, and legend; columns of heads without any number are left out."""
    title = Text(block.heading, style=HEADING)
    if shades(block, width) is not None:
        return [title]
    lines, looked, margin = [title], _looked(block), _margin(block)
    cell = _cell(block)
    room = (width - margin) // max(len(looked), 1)
    if (found := block.companion) is not None and looked:
        short = 1 + max(len(found.short(i, j)) for i, _ in block.places for j in looked)
        least = max(cell + short, _LEAST_NAMES if found.names else 0)
        if room >= least:
            across = min(room, _MOST_NAMES) if found.names else least
            lines += _accompanied(block, found, looked, margin, (across - short, short))
            told = "beside it, and below it" if found.names else "beside it"
            return [*lines, *(Text(each, style=DIM) for each in (f"{told}: {found.label}", *_meant(block)))]
    across = _across(block, width)
    for start in range(0, len(looked), across):
        lines += _plain(block, looked[start : start + across], margin, cell)
    return [*lines, *(Text(each, style=DIM) for each in _meant(block))]


def shades(block: HeadGrid, width: int) -> Raster | None:
    """The grid as shades, where its numbers would fill more than a screen; else None."""
    pieces = -(-len(_looked(block)) // _across(block, width))
    if block.whole or pieces * (len(block.layers) + 1) <= _MOST_LINES:
        return None
    strengths = np.vectorize(block.scale.strength, otypes=[float])(block.values)
    low, high = block.ends[::-1] if block.scale.kind == "falling" else block.ends
    return Raster(
        shares=strengths,
        plain=np.abs(strengths),
        title="",
        rows=_side("layer", "L", block.layers),
        columns=_side("head", "H", block.heads),
        ends=(low, high),
        plain_ends=("0", f"{high}, above or below 0") if block.scale.around_0 else (low, high),
        width=width,
        signed=block.scale.around_0,
        blank="no number" if np.isnan(block.values).any() else "",
        told=(*_told(block), "-v has the numbers"),
    )


def _side(noun: str, letter: str, numbers: tuple[int, ...]) -> Side:
    return Side(noun, [f"{letter}{each}" for each in numbers], [""] * len(numbers))


def _told(block: HeadGrid) -> Iterator[str]:
    verdicts = list(block.outlined.values())
    for each in dict.fromkeys(verdicts):
        yield f"{counted(verdicts.count(each), 'head')} {block.beyond[0] if each is None else each.value}"


def _looked(block: HeadGrid) -> list[int]:
    kept = {j for i, j in block.places if block.text(i, j) or (i, j) in block.outlined}
    return sorted(kept)


def _margin(block: HeadGrid) -> int:
    return len(f"L{max(block.layers)}") + 1


def _cell(block: HeadGrid) -> int:
    texts = [[block.text(i, j) for j in range(len(block.heads))] for i in range(len(block.layers))]
    return max(_LEAST_CELL, 1 + widest(texts) + bool(block.outlined))


def _across(block: HeadGrid, width: int) -> int:
    return max((width - _margin(block)) // _cell(block), 1)


def _plain(block: HeadGrid, columns: list[int], margin: int, cell: int) -> Iterator[Text]:
    mark = " " if block.outlined else ""
    names = "".join(right(f"H{block.heads[j]}{mark}", cell) for j in columns)
    yield line(" " * margin, (names, DIM))
    for i, layer in enumerate(block.layers):
        cells = [part for j in columns for part in _of_head(block, i, j, cell)]
        yield line((left(f"L{layer}", margin), DIM), *cells)


def _of_head(block: HeadGrid, i: int, j: int, cell: int) -> list[tuple[str, StyleType]]:
    if block.itself == (i, j):
        return [(right("■", cell), HEADING)]
    shade = block.scale.style(float(block.values[i, j]))
    mark = _mark(block, i, j, shade)
    return [(right(block.text(i, j), cell - len(mark)), shade), *mark]


def _mark(block: HeadGrid, i: int, j: int, shade: StyleType) -> list[tuple[str, StyleType]]:
    outlined = block.outlined
    if not outlined:
        return []
    if (i, j) not in outlined:
        return [(" ", shade)]
    verdict = outlined[i, j]
    return [(_BEYOND, HEADING) if verdict is None else (GLYPHS[verdict], STYLES[verdict])]


def _accompanied(
    block: HeadGrid, found: Companion, columns: list[int], margin: int, cells: tuple[int, int]
) -> Iterator[Text]:
    number, short = cells
    names = "".join(left(right(f"H{block.heads[j]}", number), number + short) for j in columns)
    yield line(" " * margin, (names, DIM))
    for i, layer in enumerate(block.layers):
        parts: list[tuple[str, StyleType]] = []
        for j in columns:
            shade = block.scale.style(float(block.values[i, j]))
            parts += [*_of_head(block, i, j, number), (right(found.short(i, j), short), shade)]
        yield line((left(f"L{layer}", margin), DIM), *parts)
        if found.names is not None:
            texts = (found.names(i, j, number + short - 1) for j in columns)
            yield line(" " * margin, "".join(right(each, number + short) for each in texts))


def _meant(block: HeadGrid) -> Iterator[str]:
    beyond, marked = block.beyond
    if shades := block.scale.meaning(block.form):
        yield shades
    if marked:
        yield f"{_BEYOND} {beyond}"


_MOST, _LEAST = 12, 2  # characters of a head


def cells_of(block: HeadMatrices, width: int) -> int:
    """Characters per head in `width` cells; 0 where the heads do not fit."""
    cells = (width - _names(block)) // len(block.heads) - 1
    return 0 if cells < _LEAST else min(cells, _MOST, block.values.shape[3])


def _names(block: HeadMatrices) -> int:
    return len(f"L{max(block.layers)}") + 1


class Mosaic:
    """Weight matrices of all heads side by side, `cells` characters wide each."""

    def __init__(self, block: HeadMatrices, cells: int) -> None:
        self.block, self.cells = block, cells

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ink, block = ink_of(console, options, False), self.block
        halves = bool(getattr(ink, "halves", False))
        margin, wide = _names(block), self.cells + 1
        heading = "".join(left(f"H{head}"[: self.cells], wide) for head in block.heads)
        yield line(" " * margin, (heading, HEADING))
        rows = min(self.cells if halves else -(-self.cells // 2), block.values.shape[2])
        step = 2 if halves else 1
        for i, layer in enumerate(block.layers):
            small = (_smaller(head, rows, self.cells) for head in block.values[i])
            shown = [block.scale.shades(each, [0] * len(each)) for each in small]
            for first in range(0, rows, step):
                name = left(f"L{layer}" if first == 0 else "", margin)
                text = Text.assemble((name, HEADING), no_wrap=True, overflow="crop")
                for head in shown:
                    pair = np.full((step, head.shape[1]), np.nan)
                    pair[: len(head[first : first + step])] = head[first : first + step]
                    drawn = ink.drawn(pair, 1)
                    text.append_text(drawn).append(" " * (wide - drawn.cell_len))
                yield text
            if i < len(block.layers) - 1:
                yield Text()
        masked = " · blank: masked" if np.isnan(block.values).any() else ""
        yield ink.key(block.scale).append(masked, DIM)


def _smaller(cells: Float[np.ndarray, "row column"], rows: int, columns: int) -> Float[np.ndarray, "r c"]:
    """Maxima of groups of cells, `rows` by `columns` groups; NaN for a group of NaN."""
    for axis, wanted in ((0, rows), (1, columns)):
        starts = np.arange(wanted) * cells.shape[axis] // wanted
        cells = np.fmax.reduceat(cells, starts, axis=axis)
    return cells
