"""Draws one head's matrix with a cursor: numbers where they fit, else shades, else only a part."""

from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import Any
from weakref import WeakKeyDictionary

from rich.cells import cell_len
from rich.style import Style

from attnscope.explore.grid import CURSOR
from attnscope.explore.state import State
from attnscope.explore.surface import Cells, Line, Part, Surface, part_words, window
from attnscope.render.kit.cells import DIM, HEADING, cell_texts, fit, left, right, row_heads, settled, widest
from attnscope.render.kit.numbers import descending
from attnscope.render.kit.palette import sequential
from attnscope.render.kit.stage import Panel, panel
from attnscope.render.terminal.matrix import Shading, shading
from attnscope.render.terminal.raster import SHADES
from attnscope.results import HeadView, HeadWeights
from attnscope.tokens import Tokens

Shown = HeadWeights | HeadView


@dataclass(frozen=True, eq=False)
class Prepared:
    """A head prepared for drawing: its panel, the shade of each weight, the number of each cell as text."""

    panel: Panel
    shades: Shading
    lines: dict[Any, Line] = field(default_factory=dict)  # rows that were drawn, by what they depend on

    @cached_property
    def widest(self) -> int:
        """The width of the widest number, in cells."""
        return widest(self.texts)

    @cached_property
    def texts(self) -> list[list[str]]:
        return cell_texts(self.panel)

    @cached_property
    def shares(self) -> list[list[float]]:
        """The shade strength of each cell by row and column, NaN where the pair is masked."""
        listed: list[list[float]] = self.shades.shares.tolist()
        return listed


_PREPARED: WeakKeyDictionary[Shown, Prepared] = WeakKeyDictionary()


def prepared(shown: Shown) -> Prepared:
    """The `Prepared` head, cached as long as the head itself is kept."""
    ready = _PREPARED.get(shown)
    if ready is None:
        of = panel(shown, "weights")
        ready = _PREPARED[shown] = Prepared(of, shading(of))
    return ready


def row_of(shown: Shown, query: int) -> int | None:
    """The row of the query at this position; None where a view leaves it out."""
    if isinstance(shown, HeadView):
        return shown.query_row(query)
    return query if query < len(shown.query_tokens) else None


def column_of(shown: Shown, key: int) -> int | None:
    """The column of the key at this position; None where a view leaves it out."""
    if isinstance(shown, HeadView):
        return next((i for i, group in enumerate(shown.key_groups) if key in group), None)
    return key if key < len(shown.key_tokens) else None


def strongest(shown: Shown, row: int | None) -> int | None:
    """The column of the largest visible weight of a row; None where the row has no key."""
    if row is None or not shown.answered[row]:
        return None
    ranked = (column for column in descending(shown.weights[row]) if shown.allowed[row, column])
    return next(ranked, None)


def cursor(shown: Shown, state: State) -> tuple[int | None, int | None]:
    """Row and column of the cursor: the chosen key, or else the strongest key of the row."""
    row = row_of(shown, state.query)
    column = None if state.key is None else column_of(shown, state.key)
    return row, strongest(shown, row) if column is None else column


def query_at(shown: Shown, row: int) -> int:
    """The position of the first query token of a row."""
    return shown.query_groups[row][0] if isinstance(shown, HeadView) else row


def key_at(shown: Shown, column: int) -> int:
    return shown.key_groups[column][0] if isinstance(shown, HeadView) else column


_ROW = Style(bold=True)
_WIDEST = 10  # cells of a column
_TALLEST, _TALL = 3, 16  # lines of a row; of a pane where a row may have more than one
_WORDS = 4  # lines under a matrix that say what its weights are
_MOST_NUMBERS, _FEW = 40, 48  # columns whose numbers are looked at, and that get two cells
_MOST_NAMES = 3  # lines of names above the columns


@dataclass(frozen=True)
class Laid:
    """Layout of the matrix in its pane: visible rows and columns, left margin, heading lines, cell size."""

    rows: range
    columns: range
    margin: int
    cells: int
    above: int
    lines: int = 1

    def at(self, x: int, y: int) -> tuple[int, int] | None:
        """The row and the column at this cell of the pane, None outside the matrix."""
        row, column = (y - self.above) // self.lines, (x - self.margin) // self.cells
        if not 0 <= row < len(self.rows) or x < self.margin or column >= len(self.columns):
            return None
        return self.rows[row], self.columns[column]


def lay(of: Prepared, row: int, column: int, width: int, height: int, tight: bool) -> Laid:
    """Lay the matrix out: cells wide enough for numbers where all columns fit, else two cells or one.

    With `tight`, numbers may touch, because their cells have colours.
    """
    shown = of.panel
    rows, columns = len(shown.row_tokens), len(shown.keys)
    least = of.widest + 1 if columns <= _MOST_NUMBERS else 4
    for share in (3, 4):  # of the width for the names of rows: numbers come before the ends of long names
        margin = row_heads(shown.row_tokens, width // share).cells + 2
        room = max(width - margin, 1)
        sizes = (least, *([least - 1] if tight else []), 2, 1)
        cells = next((size for size in sizes if size * columns <= room), 2 if columns < _FEW else 1)
        if cells > 2:
            break
    else:
        margin = row_heads(shown.row_tokens, 2 * width // 5).cells + 2
        room = max(width - margin, 1)
    longest = max((cell_len(settled(name)) for name in shown.keys.names), default=0) + 1
    if cells == least:
        cells = min(max(longest, least), room // max(columns, 1), _WIDEST)
    above = 1 + min(-(-longest // cells), _MOST_NAMES) if cells > 2 else 2
    visible = window(columns, room // cells, column)
    lines = min(max((height - above - _WORDS) // max(rows, 1), 1), _TALLEST) if height >= _TALL else 1
    lines = min(lines, max(cells // 2, 1))  # no cell is higher than it is wide
    return Laid(window(rows, height - above, row), visible, margin, cells, above, lines)


def lines_needed(rows: int, columns: int) -> int:
    """Pane height that a whole matrix needs, with its headings, notes and frame."""
    return rows + 1 + _MOST_NAMES + _WORDS - 1 + 2


def matrix(of: Prepared, row: int | None, column: int | None, laid: Laid, surface: Surface) -> Cells:
    """Draw the matrix: rows are queries, columns are keys; a mark at the query, brackets at the key."""
    names = row_heads(of.panel.row_tokens, laid.margin * 2)
    lines = _headings(of.panel, column, laid)
    for number in laid.rows:
        here = number == row
        pointed = column if here else None
        for part in range(laid.lines):
            is_middle = part == (laid.lines - 1) // 2
            place = (number, here, pointed, laid.columns, laid.cells, laid.margin, is_middle)
            line = of.lines.get(place)
            if line is None:
                name = left(names.text(number).rstrip(), laid.margin - 2)
                drawn = _row(of, number, here, pointed, name, laid, surface)
                line = of.lines[place] = drawn if is_middle else _untold(drawn, surface)
            lines.append(line)
    return Cells(lines)


def _untold(line: Line, surface: Surface) -> Line:
    kept = {*SHADES, " "}
    return Line(
        *(
            (text if set(text) <= kept else " " * cell_len(text), style if i else "")
            for i, (text, style) in enumerate(line.parts)
        )
    )


def _row(
    of: Prepared, number: int, here: bool, column: int | None, name: str, laid: Laid, surface: Surface
) -> Line:
    line = Line(("▸" if here else " ", _ROW), (f"{name} ", _ROW if here else ""))
    if not of.panel.answered[number]:
        return line.append(of.panel.unanswered, DIM)
    for key in laid.columns:
        line.append(*_cell(of, number, key, key == column, laid.cells, surface))
    return line


def window_words(shown: Panel, laid: Laid) -> str:
    """The visible part, `queries 40-62 of 251`; empty where the whole matrix is shown."""
    sides = (
        part_words(laid.rows, len(shown.row_tokens), "queries"),
        part_words(laid.columns, len(shown.keys), "keys"),
    )
    return ", ".join(side for side in sides if side)


def _headings(shown: Panel, column: int | None, laid: Laid) -> list[Line]:
    keys = shown.keys
    lead = f"  {shown.row_word} ↓ key →"
    lead = left(lead if laid.margin > len(lead) else f"  {shown.row_word} ↓", laid.margin)
    numbers = Line((lead, DIM))
    if laid.cells <= 2:
        return [numbers.append(_marks(keys, laid), DIM), _named(keys, column, laid)]
    for place in laid.columns:
        numbers.append(right(str(keys.positions[place]), laid.cells), HEADING if place == column else DIM)
    return [*_names(keys, column, laid), numbers]


def _named(keys: Tokens, column: int | None, laid: Laid) -> Line:
    line = Line((" " * laid.margin, ""))
    if column is None or column not in laid.columns:
        return line
    at = laid.columns.index(column) * laid.cells
    name, room = settled(keys.named(column)), laid.cells * len(laid.columns)
    if at + cell_len(name) + 1 <= room:
        return line.append(" " * at).append(f"▾{name}", HEADING)
    return line.append(right(f"{name} ▾", at + 1), HEADING)


def _names(keys: Tokens, column: int | None, laid: Laid) -> list[Line]:
    count = laid.above - 1
    lines = [Line() for _ in range(count)]
    used = [0] * count
    for number, place in enumerate(laid.columns):
        at, end = number % count, laid.margin + (number + 1) * laid.cells
        name = fit(settled(keys.names[place]), count * laid.cells - 1)
        start = max(end - cell_len(name), used[at])
        lines[at].append(" " * (start - used[at]))
        lines[at].append(name, HEADING if place == column else "")
        used[at] = start + cell_len(name)
    return lines


def _marks(keys: Tokens, laid: Laid) -> str:
    marks = [" "] * (laid.cells * len(laid.columns))
    step = 5 if laid.cells == 2 else 10
    for at, column in enumerate(laid.columns):
        number, start = str(keys.positions[column]), at * laid.cells
        if column % step == 0 and start + len(number) <= len(marks):
            marks[start : start + len(number)] = number
    return "".join(marks)


def _cell(of: Prepared, row: int, key: int, chosen: bool, cells: int, surface: Surface) -> Part:
    share = of.shares[row][key]
    if cells > 2 and not isnan(share):
        return right(of.texts[row][key], cells), CURSOR if chosen else sequential(share)
    if chosen:
        return ("[]" if cells > 1 else "◆").rjust(cells), CURSOR
    if isnan(share):
        return " " * cells, ""
    if not surface.shades:
        return " " * cells, sequential(share)
    return SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)] * cells, ""
