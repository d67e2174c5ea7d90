"""Attention over a sound in a terminal: a line of bars over time for each row."""

from collections.abc import Iterator

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, settled
from attnscope.render.kit.numbers import counted, number, significant
from attnscope.render.kit.palette import BAR
from attnscope.render.sheets.sound import Timeline

_LEVELS = " ▁▂▃▄▅▆▇█"
_MOST_LABEL, _MOST_ROWS = 21, 160
_NUMBER = 7  # cells of a number at the end of a line: 5.8e-4


def timeline(block: Timeline, width: int) -> Iterator[Text]:
    """One line of bars for each row, each from 0 to its own largest bar; at its end what that is.

    Heights are rounded to the nearest eighth, so that less than half of one is blank. Where the frames
    outnumber the cells, every bar is the sum of equally many of them, so that even weights make even bars;
    only the last one may have fewer.
    """
    rows, step = block.plain.values[:_MOST_ROWS], block.result.seconds
    names = [settled(each) for each in block.plain.rows.names[:_MOST_ROWS]]
    names = ["weight"] if len(names) == 1 else names
    label = min(max(map(cell_len, names)), _MOST_LABEL)
    margin, frames = label + 1, rows.shape[1]
    together = -(-frames // max(width - margin - _NUMBER, 8))  # frames of a bar
    starts = np.arange(0, frames, together)
    yield Text(block.plain.title, style="bold")
    for name, row in zip(names, rows, strict=True):
        summed = np.add.reduceat(np.nan_to_num(row), starts)
        largest = float(summed.max())
        levels = np.rint(8 * summed / (largest or 1.0)).astype(int)
        bars = "".join(_LEVELS[level] for level in levels)
        yield line((left(name, label) + " ", HEADING), (bars, BAR), f" {significant(largest)}")
    yield _axis(margin, len(starts), step * together)
    bar = "a frame" if together == 1 else f"{number(1000 * step * together, 0)} ms, weights summed"
    last = frames - int(starts[-1])
    fewer = f" (the last: {number(1000 * step * last, 0)} ms)" if last < together else ""
    yield Text(f"each bar: {bar}{fewer}; a full bar is the number at the end of its line", style=DIM)
    if more := len(block.plain.rows) - len(rows):
        yield Text(f"and {counted(more, block.plain.words[0])} more (-o FILE.png shows them)", style=DIM)


def _axis(margin: int, cells: int, lasts: float) -> Text:
    every = max(8, cells // 8)
    marks = [left(f"{cell * lasts:.2f}s", every) for cell in range(0, cells, every)]
    whole = [mark for i, mark in enumerate(marks) if i * every + len(mark.rstrip()) <= cells or not i]
    return line(" " * margin, ("".join(whole), DIM))
