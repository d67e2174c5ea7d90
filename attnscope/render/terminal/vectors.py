"""Queries, keys, values or outputs of a head: one row per token, one column per dimension."""

import numpy as np
from rich.text import Text

from attnscope.render.kit.cells import DIM, RowHeads, cell_style, cell_texts, line, row_heads, widest
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import alike_texts
from attnscope.render.kit.stage import Panel


def vectors(shown: Panel, width: int) -> list[Text]:
    """The Euclidean norm of each vector and as many of its first dimensions as fit in `width` cells."""
    texts = cell_texts(shown)
    norms = alike_texts(np.linalg.norm(shown.values, axis=1), 2).tolist()
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
    return lines


def vector(shown: Panel, width: int) -> list[Text]:
    """All dimensions of one vector; a line begins with the number of its first one."""
    if not shown.answered[0]:
        return [Text(f"it has {shown.unanswered}", style=DIM)]
    values, texts = shown.values[0], cell_texts(shown)
    cell, margin = widest(texts) + 1, len(str(len(values))) + 1
    fitting = max((width - margin) // cell, 1)
    across = 10 if fitting >= 10 else 5 if fitting >= 5 else fitting
    lines = []
    for first in range(0, len(values), across):
        styled = [
            (right(text, cell), cell_style(shown, float(value)))
            for text, value in zip(
                texts[0][first : first + across], values[first : first + across], strict=True
            )
        ]
        lines.append(line((right(str(first), margin - 1) + " ", DIM), *styled))
    return lines


def _headings(shown: Panel, heads: RowHeads, norm: int, numbers: list[str]) -> list[Text]:
    return [
        line((" " * (heads.cells + norm + 2) + "dimension →", DIM)),
        line((left(f"{shown.row_word} ↓", heads.cells) + right("norm", norm) + " " + "".join(numbers), DIM)),
    ]


def _row(shown: Panel, row: int, lead: str, cells: list[str], width: int) -> Text:
    if not shown.answered[row]:
        return line(lead, (" no valid key", DIM))
    styles = [cell_style(shown, float(value)) for value in shown.values[row]]
    return line(lead, *((right(text, width), style) for text, style in zip(cells, styles, strict=False)))
