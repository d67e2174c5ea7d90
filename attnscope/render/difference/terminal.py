"""Two runs held against each other, in a terminal: heads that differ most, then the first of these."""

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.difference.words import (
    against_rounding,
    certified_words,
    control_words,
    differing_words,
    nats,
    run_words,
    shown_words,
    signed_panel,
    subject,
)
from attnscope.render.kit import palette
from attnscope.render.kit.cells import (
    DIM,
    HEADING,
    cell_style,
    cell_texts,
    headings,
    least_head,
    line,
    row_heads,
    widest,
)
from attnscope.render.kit.labels import column_widths, left, right, settled
from attnscope.render.kit.numbers import short
from attnscope.render.kit.words.certificate import GLYPHS, STYLES
from attnscope.results import Difference
from attnscope.tokens import printable

_LISTED = 10  # heads, and rows of a head whose numbers do not fit
_MOST_ROWS = 40


def difference(result: Difference, width: int) -> RenderableType:
    """Header, control, ranking, the head that differs most, and what is certified."""
    told = [each for each in (differing_words(result),) if each]
    return Group(
        Text.assemble((subject(result), "bold")),
        Text(f"A {printable(result.a.name)} · {run_words(result.a, result.b)}", style=DIM),
        Text(f"B {printable(result.b.name)} · {run_words(result.b, result.a)}", style=DIM),
        *(Text(each) for each in told),
        "",
        *_ranking(result),
        Text(control_words(result), style=DIM),
        "",
        Text(shown_words(result), style="bold"),
        *(_shown(result, width) if result.largest[result.shown] else []),
        "",
        *(
            Text(f"{GLYPHS[verdict]} {each}", style=STYLES[verdict])
            for verdict, each in certified_words(result)
        ),
    )


def _ranking(result: Difference) -> list[Text]:
    """One line a head, those that differ most first."""
    order = result.ranking[:_LISTED]
    names = [result.name(i) for i in order]
    wide = max(4, *map(len, names))
    top = float(np.log(2))
    lines = [line((left("head", wide) + "  divergence  largest  of a weight", HEADING))]
    for i, name in zip(order, names, strict=True):
        value = float(result.divergences[i])
        lines.append(
            line(
                left(name, wide + 2),
                (right(nats(value), 10), palette.sequential(value, top)),
                right(short(float(result.largest[i])), 9),
                (f"  {against_rounding(result, i)}", DIM),
            )
        )
    if more := len(result.ranking) - len(order):
        lines.append(Text(f"{more} more (-o FILE.csv has all)", style=DIM))
    return lines


def _shown(result: Difference, width: int) -> list[Text]:
    """The signed table where it fits, else the queries that differ most."""
    shown = signed_panel(result)
    texts = cell_texts(shown)
    least = widest(texts) + 1
    names = shown.column_tokens.names if shown.column_tokens is not None else ()
    fits = least_head(shown.row_tokens) + least * len(names) <= width
    if not fits or len(shown.row_tokens) > _MOST_ROWS:
        return _rows(result)
    heads = row_heads(shown.row_tokens, width - least * len(names))
    widths = column_widths([settled(name) for name in names], least, width - heads.cells)
    positions = shown.row_tokens.positions if shown.column_tokens is None else shown.column_tokens.positions
    lines = headings(heads, ("B less A", "query", "key"), positions, names, widths)
    for row, cells in enumerate(texts):
        parts = [
            (right(text, size), cell_style(shown, float(shown.values[row, column]))) if text else " " * size
            for column, (text, size) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append(line(heads.text(row), *parts))
    told = "above 0: B gives more, below: less; blank: neither gives anything"
    return [*lines, Text(told, style=DIM)]


def _rows(result: Difference) -> list[Text]:
    """The queries whose rows differ most, with the keys that gain and lose most."""
    rows = np.nan_to_num(result.rows[result.shown], nan=-1.0)
    order = np.argsort(-rows, kind="stable")[:_LISTED]
    signed = np.nan_to_num(result.signed)
    lines = []
    for row in order.tolist():
        most, least = int(signed[row].argmax()), int(signed[row].argmin())
        keys = result.a.key_tokens
        query = left(printable(result.a.query_tokens.named(row)), 18)
        gains = ((keys.named(key), float(signed[row, key])) for key in (most, least))
        told = "  ".join(f"{printable(name)} {value:+.2f}" for name, value in gains)
        lines.append(line(query, right(nats(rows[row]), 8), f"  {told}"))
    if more := len(rows) - len(order):
        lines.append(Text(f"{more} more queries (-o FILE.csv has all)", style=DIM))
    return lines
