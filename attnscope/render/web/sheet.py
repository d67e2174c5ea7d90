"""Markup of a sheet: its answer, its blocks, and notes; needs no script."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnscope.render.kit.numbers import counted
from attnscope.render.kit.palette import by_root
from attnscope.render.sheet.blocks import (
    Block,
    Drawing,
    Heap,
    Linked,
    Matrix,
    Passage,
    Rows,
    Statement,
    Statements,
)
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.steps import Steps, shape_words, spelled_out, texts
from attnscope.render.sheet.table import Scale, legend
from attnscope.render.sheets.media import Original
from attnscope.render.terminal.sheet import lines_of
from attnscope.render.web.blocks import escape, original, paragraph, shaded
from attnscope.render.web.matrix import grid, matrix
from attnscope.render.web.passage import linked, passage
from attnscope.render.web.ranking import heap, ranking
from attnscope.results.steps import Step


def statements(block: Statements) -> str:
    """Markup of statements, one below the other, all text escaped."""
    title = f"<h2>{escape(block.title)}</h2>" if block.title else ""
    return title + "".join(map(_told, block.statements))


def _told(told: Statement) -> str:
    command = f'<p class="told"><code>{escape(told.command)}</code></p>' if told.command else ""
    said = f'<p class="said">{escape(told.sentence)}</p>{paragraph(told.figures, "told")}'
    return f'<div class="statement"><h2>{escape(told.question)}</h2>{said}{command}</div>'


_CELLS = 100  # of a line


def section(
    sheet: Sheet, *, answer: bool = True, blocks: bool = True, leads: bool = False, after: str = ""
) -> str:
    """The page's `<section>` with the sheet's blocks, answer, notes and next command.

    Texts come first, other blocks in the order of the sheet, side by side where there is room. With `leads`,
    names of heads are links. `after` is markup behind the first block. All text is escaped.
    """
    every = sorted(
        (*sheet.every, *sheet.more) if blocks else (), key=lambda each: not isinstance(each, Passage)
    )
    drawn = [each for each in every if isinstance(each, Rows) and each.names]
    said = legend(column for each in drawn for column in each.table.headed)
    told = "".join(paragraph(each, "told") for each in (said, *sheet.told))
    if told:
        told = f"<details><summary>What this rests on, and what the words mean</summary>{told}</details>"
    first = paragraph(sheet.answer, "answer") if answer else ""
    shown = [(_kind(each), _block(each, leads)) for each in every]
    shown.insert(1, ("", after))
    drawing = "".join(f'<div class="block{kind}">{markup}</div>' for kind, markup in shown if markup)
    if drawing:
        drawing = f'<div class="blocks">{drawing}</div>'
    return f'<section id="sheet" aria-label="The result">{first}{drawing}{told}{_next(sheet)}</section>\n'


def _kind(block: Block) -> str:
    return " across" if isinstance(block, Passage | Statements | Steps) else ""


def _next(sheet: Sheet) -> str:
    if sheet.next is None:
        return ""
    return (
        f'<p class="next">Next: {escape(sheet.next.question)} <code>{escape(sheet.next.command)}</code></p>'
    )


def _block(block: Block, leads: bool) -> str:
    match block:
        case Rows():
            return ranking(block, leads) if block.names else ""
        case HeadGrid():
            return grid(block, leads)
        case Matrix():
            return matrix(block)
        case Drawing() if type(block) in _DRAWINGS:
            return _DRAWINGS[type(block)](block)
        case Drawing():
            return _written(block) if block.plain is None else _block(block.plain, leads)
    return ""


def _written(block: Drawing) -> str:
    text = "\n".join(escape(each.plain) for each in lines_of(block, _CELLS))
    return f'<div class="wide"><pre>{text}</pre></div>' if text else ""


_MOST, _ROWS, _COLUMNS = 24, 6, 12  # rows or columns of a table that are all there; of more so many


def steps(block: Steps) -> str:
    """Markup of the steps, one below the other."""
    title = f'<h2 class="failed">{escape(block.title)}</h2>' if block.title else ""
    made = "".join(_step(each, block.decimals) for each in block.steps)
    return f'{title}<div class="steps">{made}</div>'


def _step(step: Step, decimals: int) -> str:
    matrix = step.matrix
    named = f"{matrix.symbol} = {step.formula}" if step.formula else matrix.symbol
    told = " · ".join(each for each in (shape_words(step), step.meaning) if each)
    (rows, columns), cell = matrix.values.shape, spelled_out(step, decimals)
    high, wide = _shown(step)
    rest = [counted(rows - high, "more row")] if rows > high else []
    rest += [counted(columns - wide, "more column")] if columns > wide else []
    left = f'<p class="told">{escape(", ".join(rest))}, among the numbers</p>' if rest else ""
    spelled = f'<p class="told"><code>{escape(cell)}</code></p>' if cell else ""
    return (
        f'<div class="step"><h2>{escape(named)}</h2><p class="told">{escape(told)}</p>'
        f'<div class="wide">{_table(step, decimals)}</div>{left}{spelled}</div>'
    )


def _shown(step: Step) -> tuple[int, int]:
    rows, columns = step.matrix.values.shape
    return _ROWS if rows > _MOST else rows, _COLUMNS if columns > _MOST else columns


def _table(step: Step, decimals: int) -> str:
    matrix, allowed = step.matrix, step.allowed
    high, wide = _shown(step)
    values = matrix.values[:high, :wide]
    written = texts(matrix.values, decimals)
    finite = matrix.values[np.isfinite(matrix.values)]
    scale, root = Scale(0.0, 1.0) if step.weights else Scale.around(finite), by_root()
    names = "".join(f'<th scope="col">{escape(each)}</th>' for each in matrix.columns.names[:wide])
    body = []
    for row, name in enumerate(matrix.rows.names[:high]):
        cells = []
        for column, value in enumerate(values[row]):
            if allowed is not None and not allowed[row, column]:
                cells.append("<td>masked</td>")
                continue
            share = root.shade(value) if step.weights else float(value)
            shade = f' class="shade" style="{shaded(scale, share)}"' if np.isfinite(value) else ""
            cells.append(f"<td{shade}>{escape(str(written[row, column]))}</td>")
        body.append(f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>')
    head = f"<thead><tr><td></td>{names}</tr></thead>"
    return f'<table class="heads numbered">{head}<tbody>{"".join(body)}</tbody></table>'


_DRAWINGS: dict[type, Callable[[Any], str]] = {
    Passage: passage,
    Heap: heap,
    Linked: linked,
    Original: original,
    Statements: statements,
    Steps: steps,
}
