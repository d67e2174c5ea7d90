"""The steps of a worked example in a terminal: coloured numbers with the names of rows and columns."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line, widest
from attnscope.render.kit.labels import column_widths, left, right, settled, stacked
from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.kit.scale import by_root
from attnscope.render.kit.words.certificate import STYLES
from attnscope.render.sheets.arithmetic import shape_words, spelled_out, texts
from attnscope.render.sheets.worked import Steps
from attnscope.results import Verdict
from attnscope.results.worked import Step

INDENT = "  "
_FEWEST_DECIMALS = 2
_MOST_ROWS, _FIRST_ROWS, _MOST_PAIR_ROWS = 12, 4, 60
_MOST_LABEL, _MOST_HEADING = 20, 12
_NARROWEST = 2  # cells of a column


@dataclass(frozen=True, eq=False)
class _Laid:
    cells: list[list[str]]
    head: int
    widths: list[int]


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
    rows, columns = step.matrix.values.shape
    laid = _laid(step, width, decimals)
    shown = len(laid.widths)
    lines = _headings(step, laid)
    for row, cells in enumerate(laid.cells):
        lines.append(_row(step, row, cells, laid))
    left_out = []
    if len(laid.cells) < rows:
        left_out.append(f"{rows - len(laid.cells)} more rows")
    if shown < columns:
        left_out.append(f"{columns - shown} more columns")
    if left_out:
        lines.append(Text(f"{INDENT}… {', '.join(left_out)} (-o FILE.csv has all)", style=DIM))
    return lines


def _laid(step: Step, width: int, decimals: int) -> _Laid:
    matrix = step.matrix
    rows = len(matrix.values)
    most = _MOST_PAIR_ROWS if matrix.columns.word == "key" else _MOST_ROWS
    shown = rows if rows <= most else _FIRST_ROWS
    head = min(max(cell_len(_name(name)) for name in matrix.rows.names[:shown]), _MOST_LABEL)
    room = width - len(INDENT) - head
    fewest = 0 if matrix.columns.word == "key" and not step.weights else min(decimals, _FEWEST_DECIMALS)
    tried = [*product(range(decimals, fewest - 1, -1), (2, 1))]
    if (_NARROWEST + 1) * matrix.values.shape[1] > room:
        tried = tried[-1:]  # no number of decimals lets all columns fit
    for places, gap in tried:
        cells = _texts(step, places, shown)
        least = max(widest(cells), _NARROWEST) + gap
        if least * matrix.values.shape[1] <= room:
            break
    fitting = max(room // least, 1)
    names = [_name(name) for name in matrix.columns.names[:fitting]]
    widths = column_widths([left(name, _MOST_HEADING).rstrip() for name in names], least, room)
    return _Laid([row[: len(names)] for row in cells], head, widths)


def _texts(step: Step, decimals: int, rows: int) -> list[list[str]]:
    written = texts(step.matrix.values, decimals, rows)
    if step.allowed is not None:
        written = np.where(step.allowed[:rows], written, "")
    shown: list[list[str]] = written.tolist()
    return shown


def _headings(step: Step, laid: _Laid) -> list[Text]:
    names = step.matrix.columns.names[: len(laid.widths)]
    stacks = [stacked(_name(name), width - 1)[:3] for name, width in zip(names, laid.widths, strict=True)]
    depth = max(map(len, stacks))
    lines = []
    for level in range(depth):
        parts = [
            right(stack[level] if level < len(stack) else "", width)
            for stack, width in zip(stacks, laid.widths, strict=True)
        ]
        lines.append(line(INDENT + " " * laid.head, ("".join(parts), DIM)))
    return [each for each in lines if each.plain.strip()]


def _row(step: Step, row: int, cells: list[str], laid: _Laid) -> Text:
    values = step.matrix.values[row]
    coloured = [
        (right(text, width), _style(step, float(value))) if text else " " * width
        for text, value, width in zip(cells, values, laid.widths, strict=False)
    ]
    return line(INDENT + left(_name(step.matrix.rows.names[row]), laid.head), *coloured)


def _style(step: Step, value: float) -> str:
    if step.weights:
        return palette.sequential(by_root().shade(value))
    return palette.diverging(value, largest_magnitude(step.matrix.values))


def _name(name: str) -> str:
    return settled(name)
