"""Queries, keys, values or outputs of a head: one row per token, one column per dimension."""

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, RowHeads, cell_style, cell_texts, line, row_heads, widest
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import signed_texts
from attnscope.render.kit.stage import Panel


def vectors(shown: Panel, width: int) -> RenderableType:
    """The Euclidean norm of each vector and as many of its first dimensions as fit in `width` cells."""
    texts = cell_texts(shown)
    norms = signed_texts(np.linalg.norm(shown.values, axis=1), 2).tolist()
    cell, norm = max(widest(texts), 3) + 1, max(widest([norms]), len("norm")) + 1
    heads = row_heads(shown.row_tokens, width // 4)
    dimensions = shown.values.shape[1]
    fitting = min(max((width - heads.cells - norm - 1) // cell, 1), dimensions)
    lines = _headings(shown, heads, norm, [right(str(i), cell) for i in range(fitting)])
    for row, cells in enumerate(texts):
        lead = heads.text(row) + (right(norms[row], norm) + " " if shown.answered[row] else "")
        lines.append(_row(shown, row, lead, cells[:fitting], cell))
    if fitting < dimensions:
        lines.append(
            Text(f"{dimensions - fitting} of {dimensions} dimensions left out: -o file.png shows all.")
        )
    return Group(*lines)


def _headings(shown: Panel, heads: RowHeads, norm: int, numbers: list[str]) -> list[Text]:
    return [
        line((left(shown.show, heads.cells), HEADING), (" " * (norm + 2) + "dimension →", DIM)),
        line((left(f"{shown.row_word} ↓", heads.cells) + right("norm", norm) + " " + "".join(numbers), DIM)),
    ]


def _row(shown: Panel, row: int, lead: str, cells: list[str], width: int) -> Text:
    if not shown.answered[row]:
        return line(lead, (" no valid key", DIM))
    styles = [cell_style(shown, float(value)) for value in shown.values[row]]
    return line(lead, *((right(text, width), style) for text, style in zip(cells, styles, strict=False)))
