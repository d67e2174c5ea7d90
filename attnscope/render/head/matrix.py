"""One stage of a head as a heat-coloured table; what to show instead where the table does not fit."""

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.head.strongest import strongest_keys
from attnscope.render.head.vectors import vectors
from attnscope.render.kit.cells import (
    DIM,
    cell_style,
    cell_texts,
    headings,
    least_head,
    line,
    row_heads,
    widest,
)
from attnscope.render.kit.labels import column_widths, right, settled
from attnscope.render.kit.stage import Panel, Show, panel
from attnscope.render.kit.weights_words import head_of, special_words, sums_words, view_words
from attnscope.results import HeadAttention, HeadView, HeadWeights

MOST_ROWS = 60


def matrix(result: HeadWeights | HeadView, show: Show, width: int) -> RenderableType:
    """Rows are queries, columns are keys, masked cells blank; `width` in terminal cells.

    Where the table does not fit, the strongest keys of each query. Vectors have their dimensions as columns.
    """
    shown = panel(result, show)
    if shown.column_tokens is None:
        return Group(vectors(shown, width), *_captions(result, shown))
    if len(shown.row_tokens) <= MOST_ROWS:
        for decimals in (2, 1, 0) if shown.extent >= 10 else (2, 1):
            texts = cell_texts(shown, decimals)
            needed = least_head(shown.row_tokens) + len(shown.column_tokens) * (widest(texts) + 1)
            if needed <= width:
                return Group(_table(shown, texts, width), *_captions(result, shown))
        wider = f"a terminal of {needed} columns or "
    else:
        wider = ""
    size = f"{len(shown.row_tokens)} queries x {len(shown.column_tokens)} keys"
    notice = Text(f"The matrix ({size}) does not fit here: {wider}-o file.png shows it.")
    return Group(strongest_keys(shown, width), *_captions(result, shown, listed=True), notice)


def _table(shown: Panel, texts: list[list[str]], width: int) -> RenderableType:
    assert shown.column_tokens is not None, "vectors have no names for their columns"
    names, positions = shown.column_tokens.names, shown.column_tokens.positions
    least = widest(texts) + 1
    heads = row_heads(shown.row_tokens, width - least * len(names))
    widths = column_widths([settled(name) for name in names], least, width - heads.cells)
    lines = headings(heads, (shown.show, shown.row_word, shown.column_word), positions, names, widths)
    for row, cells in enumerate(texts):
        lines.append(_row(shown, row, heads.text(row), cells, widths))
    return Group(*lines)


def _row(shown: Panel, row: int, head: str, cells: list[str], widths: list[int]) -> Text:
    if not shown.answered[row]:
        return line(head, (f" {shown.unanswered}", DIM))
    styles = [cell_style(shown, float(value)) for value in shown.values[row]]
    coloured = [
        (right(text, width), style) if text else " " * width
        for text, width, style in zip(cells, widths, styles, strict=True)
    ]
    return line(head, *coloured)


def _captions(result: HeadWeights | HeadView, shown: Panel, listed: bool = False) -> list[Text]:
    """What a reader has to know about the numbers above; `listed` where there is no table."""
    weights = shown.show == "weights"
    told = [sums_words(result)] if weights else _formula(head_of(result), shown)
    if shown.column_tokens is not None and shown.masked:
        told.insert(1, "masked keys left out" if listed else "blank: masked")
    further = [special_words(head_of(result).special_mass), " · ".join(view_words(result))] if weights else []
    return [Text(line, style=DIM) for line in (" · ".join(told), *further) if line]


def _formula(result: HeadWeights, shown: Panel) -> list[str]:
    if not isinstance(result, HeadAttention):
        return []
    if shown.show == "scores":
        return [f"q·k before the scale of {result.scale:.4g}"]
    if shown.show == "scaled":
        capped = "" if result.softcap is None else f", capped at ±{result.softcap:g}"
        return [f"what enters the softmax: q·k x {result.scale:.4g}{capped}, with any bias of the model"]
    return []
