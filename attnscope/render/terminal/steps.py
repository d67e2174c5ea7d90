"""The steps of a worked example in a terminal: coloured numbers with the names of rows and columns."""

from itertools import product, zip_longest

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from attnscope.render.kit import palette
from attnscope.render.kit.cells import (
    DIM,
    HEADING,
    column_widths,
    left,
    line,
    right,
    settled,
    stacked,
    widest,
)
from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.kit.palette import by_root
from attnscope.render.kit.words import STYLES
from attnscope.render.sheet.steps import Steps, shape_words, spelled_out, texts
from attnscope.results import Verdict
from attnscope.results.steps import Step

INDENT = "  "
_FEWEST_DECIMALS = 2
_MOST_ROWS, _FIRST_ROWS, _MOST_PAIR_ROWS = 12, 4, 60
_MOST_LABEL, _MOST_HEADING = 20, 12
_NARROWEST = 2  # cells of a column


def steps(block: Steps, width: int) -> list[Text]:
    """Each with its shape, its numbers, and one cell spelled out."""
    lines = [Text(block.title, style=STYLES[Verdict.FAILED])] if block.title else []
    for step in block.steps:
        lines += [*([Text()] if lines else []), _heading(step), *grid(step, width, block.decimals)]
        if spelled := spelled_out(step, block.decimals):
            lines.append(Text(INDENT + spelled, style=DIM))
    return lines


def _heading(step: Step) -> Text:
    """`scores = Q Kᵀ   1 x 3 (queries x keys) · how well each key fits each query`."""
    made = f" = {step.formula}" if step.formula else ""
    meaning = f" · {step.meaning}" if step.meaning else ""
    shape = (shape_words(step), HEADING)
    return Text.assemble((step.matrix.symbol, HEADING), made, "   ", shape, (meaning, DIM))


def grid(step: Step, width: int, decimals: int) -> list[Text]:
    """The matrix of `step` in lines of at most `width` cells; what does not fit is counted, not hidden."""
    matrix = step.matrix
    rows, columns = matrix.values.shape
    most = _MOST_PAIR_ROWS if matrix.columns.word == "key" else _MOST_ROWS
    shown = rows if rows <= most else _FIRST_ROWS
    head = min(max(cell_len(settled(name)) for name in matrix.rows.names[:shown]), _MOST_LABEL)
    room = width - len(INDENT) - head
    fewest = 0 if matrix.columns.word == "key" and not step.weights else min(decimals, _FEWEST_DECIMALS)
    tried = [*product(range(decimals, fewest - 1, -1), (2, 1))]
    if (_NARROWEST + 1) * columns > room:
        tried = tried[-1:]  # no number of decimals lets all columns fit
    for places, gap in tried:
        cells = texts(matrix.values, places, shown)
        cells = (cells if step.allowed is None else np.where(step.allowed[:shown], cells, "")).tolist()
        least = max(widest(cells), _NARROWEST) + gap
        if least * columns <= room:
            break
    fitting = max(room // least, 1)
    names = [settled(name) for name in matrix.columns.names[:fitting]]
    widths = column_widths([left(name, _MOST_HEADING).rstrip() for name in names], least, room)
    lines = _headings(names, head, widths)
    for name, values, row in zip(matrix.rows.names, matrix.values, cells, strict=False):
        coloured = [
            (right(text, width), _style(step, float(value))) if text else " " * width
            for text, value, width in zip(row, values, widths, strict=False)
        ]
        lines.append(line(INDENT + left(settled(name), head), *coloured))
    left_out = [f"{rows - shown} more rows"] if shown < rows else []
    left_out += [f"{columns - len(widths)} more columns"] if len(widths) < columns else []
    if left_out:
        lines.append(Text(f"{INDENT}… {', '.join(left_out)} (-o FILE.csv has all)", style=DIM))
    return lines


def _headings(names: list[str], head: int, widths: list[int]) -> list[Text]:
    stacks = [stacked(name, width - 1)[:3] for name, width in zip(names, widths, strict=True)]
    lines = []
    for level in zip_longest(*stacks, fillvalue=""):
        words = "".join(right(part, width) for part, width in zip(level, widths, strict=True))
        lines.append(line(INDENT + " " * head, (words, DIM)))
    return [each for each in lines if each.plain.strip()]


def _style(step: Step, value: float) -> str:
    if step.weights:
        return palette.sequential(by_root().shade(value))
    return palette.diverging(value, largest_magnitude(step.matrix.values))
