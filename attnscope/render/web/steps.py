"""The steps of a worked example in a page: each a table of its numbers, and one of them spelled out."""

import numpy as np

from attnscope.render.kit.numbers import counted
from attnscope.render.kit.scale import by_root
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheets.arithmetic import shape_words, spelled_out, texts
from attnscope.render.sheets.worked import Steps
from attnscope.render.web.blocks import escape, shaded
from attnscope.results.worked import Step

_MOST, _ROWS, _COLUMNS = 24, 6, 12  # rows or columns of a table that are all there; of more so many


def steps(block: Steps) -> str:
    """One below the other, as they follow from one another."""
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
