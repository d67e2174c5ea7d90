"""Heads as small pictures of their weights in a terminal: a few characters each, all on one scale."""

import numpy as np
from jaxtyping import Float
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left
from attnscope.render.sheet.heads import HeadMatrices
from attnscope.render.terminal.raster import ink_of

_MOST, _LEAST = 12, 2  # characters of a head


def cells_of(block: HeadMatrices, width: int) -> int:
    """How many characters each head has in `width` cells; 0 where all of them do not fit."""
    cells = (width - _margin(block)) // len(block.heads) - 1
    return 0 if cells < _LEAST else min(cells, _MOST, block.values.shape[3])


def _margin(block: HeadMatrices) -> int:
    return len(f"L{max(block.layers)}") + 1


class Mosaic:
    """The heads side by side, each so many characters wide and about as high."""

    def __init__(self, block: HeadMatrices, cells: int) -> None:
        self.block, self.cells = block, cells

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ink, block = ink_of(console, options, False), self.block
        halves = bool(getattr(ink, "halves", False))
        margin, wide = _margin(block), self.cells + 1
        heading = "".join(left(f"H{head}"[: self.cells], wide) for head in block.heads)
        yield line(" " * margin, (heading, HEADING))
        rows = min(self.cells if halves else -(-self.cells // 2), block.values.shape[2])
        step = 2 if halves else 1
        for i, layer in enumerate(block.layers):
            shown = [_shades(block, _smaller(head, rows, self.cells)) for head in block.values[i]]
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


def _shades(block: HeadMatrices, cells: Float[np.ndarray, "row column"]) -> Float[np.ndarray, "row column"]:
    return block.scale.shades(cells, [0] * len(cells))


def _smaller(cells: Float[np.ndarray, "row column"], rows: int, columns: int) -> Float[np.ndarray, "r c"]:
    """The largest of each group of cells, `rows` by `columns` of them; NaN where all are."""
    for axis, wanted in ((0, rows), (1, columns)):
        starts = np.arange(wanted) * cells.shape[axis] // wanted
        cells = np.fmax.reduceat(cells, starts, axis=axis)
    return cells
