"""One head as a matrix with a cursor in it: numbers where they fit, else shades, else a part of them."""

from dataclasses import dataclass
from math import isnan

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnscope.explore.drawing.grid import CURSOR
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.drawing.window import part_words, window
from attnscope.render.kit.cells import DIM, HEADING, cell_texts, row_heads, widest
from attnscope.render.kit.labels import left, right, settled, stacked
from attnscope.render.kit.stage import Panel
from attnscope.render.terminal.raster import SHADES
from attnscope.render.terminal.shading import Shading
from attnscope.tokens import Tokens

_ROW = Style(bold=True)
_WIDEST = 10  # cells of a column


@dataclass(frozen=True)
class Laid:
    """What of the matrix stands where: rows under `above` lines, columns of `cells` after a margin."""

    rows: range
    columns: range
    margin: int
    cells: int
    above: int

    def at(self, x: int, y: int) -> tuple[int, int] | None:
        """The row and the column at this cell of the pane."""
        row, column = y - self.above, (x - self.margin) // self.cells
        if not 0 <= row < len(self.rows) or x < self.margin or column >= len(self.columns):
            return None
        return self.rows[row], self.columns[column]


def lay(shown: Panel, row: int, column: int, width: int, height: int, tight: bool) -> Laid:
    """Cells with numbers where all columns fit, else of two, else of one, of which some may not fit.

    Numbers may stand close (`tight`) where their cells have colours of their own.
    """
    assert shown.column_tokens is not None, "a matrix of pairs"
    rows, columns = len(shown.row_tokens), len(shown.column_tokens)
    heads = row_heads(shown.row_tokens, width // 4)
    margin = heads.cells + 2
    least = widest(cell_texts(shown)) + 1 if columns <= 40 else 4
    room = max(width - margin, 1)
    cells = next(
        (each for each in (least, *([least - 1] if tight else []), 2) if each * columns <= room),
        2 if columns < 48 else 1,
    )
    if cells == least:
        longest = max(cell_len(settled(name)) for name in shown.column_tokens.names) + 1
        cells = min(max(longest, least), room // max(columns, 1), _WIDEST)
    above = 3 if cells > 2 and height - rows >= 3 else 2
    return Laid(
        window(rows, height - above, row), window(columns, room // cells, column), margin, cells, above
    )


def matrix(shown: Panel, shades: Shading, row: int, column: int | None, laid: Laid, surface: Surface) -> Text:
    """Rows are queries, columns are keys; the query's row is pointed at, the key's cell in brackets."""
    lines = _headings(shown, column, laid)
    heads = row_heads(shown.row_tokens, laid.margin * 2)
    texts = _texts(shown, laid)
    for place, number in enumerate(laid.rows):
        here = number == row
        name = left(heads.text(number), laid.margin - 2)
        line = Text(no_wrap=True)
        line.append("▸" if here else " ", _ROW).append(name + " ", _ROW if here else "")
        if not shown.answered[number]:
            lines.append(line.append(shown.unanswered, DIM))
            continue
        for at, key in enumerate(laid.columns):
            chosen = here and key == column
            line.append_text(_cell(shown, shades, number, key, texts[place][at], chosen, laid.cells, surface))
        lines.append(line)
    return Text("\n").join(lines)


def window_words(shown: Panel, laid: Laid) -> str:
    """Which part is shown, where that is not all."""
    assert shown.column_tokens is not None, "a matrix of pairs"
    sides = (
        part_words(laid.rows, len(shown.row_tokens), "queries"),
        part_words(laid.columns, len(shown.column_tokens), "keys"),
    )
    return ", ".join(each for each in sides if each)


def _texts(shown: Panel, laid: Laid) -> list[list[str]]:
    """The numbers, where cells have room for them."""
    if laid.cells <= 2:
        return [[""] * len(laid.columns) for _ in laid.rows]
    every = cell_texts(shown)
    return [[every[row][column] for column in laid.columns] for row in laid.rows]


def _headings(shown: Panel, column: int | None, laid: Laid) -> list[Text]:
    """Positions, then names above the columns; of narrow ones every few, and the chosen one."""
    keys = shown.column_tokens
    assert keys is not None, "a matrix of pairs"
    lead = f"  {shown.row_word} ↓ key →"
    lead = left(lead if laid.margin > len(lead) else f"  {shown.row_word} ↓", laid.margin)
    numbers = Text.assemble((lead, DIM), no_wrap=True)
    if laid.cells > 2:
        for each in laid.columns:
            numbers.append(right(str(keys.positions[each]), laid.cells), HEADING if each == column else DIM)
        return [numbers, *_names(keys, column, laid)]
    numbers.append(_marks(keys, laid), DIM)
    named = Text(" " * laid.margin, no_wrap=True)
    if column is not None and column in laid.columns:
        at = laid.columns.index(column) * laid.cells
        name = settled(keys.named(column))
        room = laid.cells * len(laid.columns)
        start = max(min(at, room - len(name) - 2), 0)
        named.append(" " * start).append(
            left(f"{'▾' if start == at else ''}{name}", max(room - start, 1)), HEADING
        )
        if start < at:
            named = Text(" " * laid.margin, no_wrap=True).append(right(f"{name} ▾", at + 1), HEADING)
    return [numbers, named]


def _names(keys: Tokens, column: int | None, laid: Laid) -> list[Text]:
    """The names in as many lines as there are for them, cut at the end."""
    lines = [Text(" " * laid.margin, no_wrap=True) for _ in range(laid.above - 1)]
    for each in laid.columns:
        parts = stacked(settled(keys.names[each]), laid.cells - 1)
        for i, line in enumerate(lines):
            text = parts[i] if i < len(parts) else ""
            line.append(
                " " + right(text, laid.cells - 1) if laid.cells > 3 else right(text, 3),
                HEADING if each == column else "",
            )
    return lines


def _marks(keys: Tokens, laid: Laid) -> str:
    """Every fifth position of narrow columns, as far as they do not touch."""
    marks = [" "] * (laid.cells * len(laid.columns))
    step = 5 if laid.cells == 2 else 10
    for at, each in enumerate(laid.columns):
        if each % step == 0:
            number = str(keys.positions[each])
            start = at * laid.cells
            if start + len(number) <= len(marks):
                marks[start : start + len(number)] = number
    return "".join(marks)


def _cell(
    shown: Panel, shades: Shading, row: int, key: int, text: str, chosen: bool, cells: int, surface: Surface
) -> Text:
    share = float(shades.shares[row, key])
    if isnan(share):
        return Text(
            ("[]" if cells > 1 else "◆").rjust(cells) if chosen else " " * cells, CURSOR if chosen else ""
        )
    if cells > 2:
        return Text(right(text, cells), CURSOR if chosen else shades.style(row, key))
    if chosen:
        return Text("[]" if cells == 2 else "◆", CURSOR)
    if not surface.shades:
        return Text(" " * cells, shades.style(row, key))
    plain = float(shades.plain[row, key])
    return Text(SHADES[min(int(plain * len(SHADES)), len(SHADES) - 1)] * cells)
