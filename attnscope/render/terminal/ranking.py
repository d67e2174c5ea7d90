"""A ranking in a terminal: its columns as far as they fit, and bars where there is room.

If there is too little room, headings are folded, then `spared` columns dropped, columns of words folded, and
the last columns dropped.
"""

import re

from rich.cells import cell_len
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, bar, left, line, right
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.palette import BAR
from attnscope.render.sheet.blocks import Ranking, Rows
from attnscope.render.sheet.table import Column, Mark, missing

_GAP = 2  # cells before a column
_LEAST_BAR, _LONGEST_BAR = 8, 40
_BREAK = re.compile(r" (?!%)")  # where a line may end

Columns = list[tuple[Column, int]]  # with the cells that each has


def lines_of_ranking(block: Rows, width: int, longest: int = _LONGEST_BAR) -> list[Text]:
    """Lines of a ranking: title, headings, rows with bars up to `longest` cells, and what is left out."""
    columns = _laid_out(block, width)
    lines = [Text(each, style="bold") for each in (block.title,) if each]
    lines += [Text(each, style=DIM) for each in (block.says,) if each]
    lines += _headings(block, columns, width)
    room = min(_spare(block, columns, width), longest)
    bars = _bars(block) if room >= _LEAST_BAR else ()
    begun = dict(block.sections)
    for row in range(len(block.names)):
        lines += [Text(begun[row], style=DIM)] if row in begun else []
        lines += _row(block, row, columns, _bar(block, bars, row, room))
    if block.hidden:
        more = f"and {counted(block.hidden, block.of)} more ({block.elsewhere or '-o FILE.csv has all'})"
        lines.append(Text(block.unshown or more, style=DIM))
    kept = {column.name for column, _ in columns}
    if names := [column.heading for column in block.table.headed if column.name not in kept]:
        shown = block.elsewhere or f"a terminal {_needed(block)} characters wide shows all"
        told = f"left out here: {', '.join(names)} ({shown})"
        lines.append(Text(told, style=DIM))
    return [each for long in lines for each in folded(long, width)]


def kept_columns(block: Rows, width: int) -> list[Column]:
    """The columns that fit in `width` cells."""
    return [column for column, _ in _laid_out(block, width)]


def room_of_bars(block: Rows, width: int) -> int:
    """Cells of the longest bar beside all columns; 0 where no bar fits."""
    columns = _laid_out(block, width)
    room = _spare(block, columns, width)
    drawn = len(columns) == len(block.table.headed) and room >= _LEAST_BAR and _bars(block)
    return min(room, _LONGEST_BAR) if drawn else 0


def _spare(block: Rows, columns: Columns, width: int) -> int:
    return width - _name(block) - sum(cells for _, cells in columns) - _GAP


def folded(text: Text, width: int) -> list[Text]:
    """The text folded into lines of `width` cells; lines marked `no_wrap` stay whole."""
    if text.cell_len <= width or text.no_wrap:
        return [text]
    return [Text(each, style=text.style) for each in _words(text.plain, width)]


def parted(text: Text, width: int) -> list[Text]:
    """The text folded into lines of `width` cells, its styles kept."""
    lines, begin = list[Text](), 0
    for each in folded(Text(text.plain), width):
        lines.append(text[begin : begin + len(each.plain)])
        begin += len(each.plain) + 1  # a space
    return lines


def _words(text: str, cells: int) -> list[str]:
    """Lines of at most `cells` cells, broken at spaces, but not in numbers such as `3.2 %`."""
    first, *others = _BREAK.split(text)
    lines = [first]
    for word in others:
        joined = f"{lines[-1]} {word}"
        lines = [*lines[:-1], joined] if cell_len(joined) <= cells else [*lines, word]
    return [each for each in lines if each] or [""]


def _laid_out(block: Rows, width: int) -> Columns:
    room, kept = width - _name(block), list(block.table.headed)
    while sum(map(_headed, kept)) > room and (spared := [each for each in kept if each.spared]):
        kept.remove(max(spared, key=lambda each: each.spared))
    while len(kept) > 1 and sum(map(_least, kept)) > room:
        kept.pop()
    cells = [_cells(each) for each in kept]
    least = [_least(each) for each in kept]
    while sum(cells) > room and (wider := [i for i in range(len(kept)) if cells[i] > least[i]]):
        cells[max(wider, key=cells.__getitem__)] -= 1
    return list(zip(kept, cells, strict=True))


def _needed(block: Rows) -> int:
    every = block.table.headed
    cells = _headed if any(column.spared for column in every) else _least
    return _name(block) + sum(map(cells, every))


def _name(block: Rows) -> int:
    return max(cell_len(each) for each in (block.of, *block.names)) + 1


def _texts(column: Column) -> list[str]:
    return [column.heading, *map(column.text, range(len(column.values)))]


def _cells(column: Column) -> int:
    return max(map(cell_len, _texts(column))) + _GAP + len(_pad(column))


def _headed(column: Column) -> int:
    if column.words:
        return _cells(column)
    heading, *texts = _texts(column)
    return max(map(cell_len, [*heading.split(" "), *texts])) + _GAP + len(_pad(column))


def _least(column: Column) -> int:
    if not column.words:
        return _headed(column)
    return max(cell_len(word) for text in _texts(column) for word in text.split(" ")) + _GAP


def _fitted(column: Column, text: str, cells: int) -> str:
    return " " * _GAP + left(text, cells - _GAP) if column.words else right(text + _pad(column), cells)


def _pad(column: Column) -> str:
    return " " if column.scale else ""


def _headings(block: Rows, columns: Columns, width: int) -> list[Text]:
    texts = [_words(each.heading, cells - _GAP - len(_pad(each))) for each, cells in columns]
    depth = max(map(len, texts), default=1)
    lowered = [[""] * (depth - len(each)) + each for each in texts]
    lines = _common(block, columns, width)
    for i in range(depth):
        named = left(block.of if i == depth - 1 else "", _name(block))
        parts = (_fitted(each, text[i], cells) for (each, cells), text in zip(columns, lowered, strict=True))
        lines.append(line((named + "".join(parts), HEADING)))
    return lines


def _common(block: Rows, columns: Columns, width: int) -> list[Text]:
    starts, place, before = list[tuple[int, str]](), _name(block), ""
    for column, cells in columns:
        if column.under and column.under != before:
            starts.append((place + _GAP, column.under))
        place, before = place + cells, column.under
    ends = [*(start - _GAP for start, _ in starts[1:]), width]
    texts = [_words(told, end - start) for (start, told), end in zip(starts, ends, strict=False)]
    depth = max(map(len, texts), default=0)
    lines = [""] * depth
    for (start, _), text in zip(starts, texts, strict=True):
        for i, words in enumerate(text, depth - len(text)):
            lines[i] = left(lines[i], start) + words
    return [line((each, DIM)) for each in lines]


def _row(block: Rows, row: int, columns: Columns, bar: str) -> list[Text]:
    faint: StyleType = DIM if row in block.faint else ""
    strong: StyleType = HEADING if row in block.chosen or not block.chosen else ""
    texts = [
        _words(each.text(row), cells - _GAP) if each.words else [each.text(row)] for each, cells in columns
    ]
    lines = []
    for i in range(max(map(len, texts), default=1)):
        parts = [
            _cell(each, row, text[i] if i < len(text) else "", cells, faint)
            for (each, cells), text in zip(columns, texts, strict=True)
        ]
        named = left(block.names[row] if i == 0 else "", _name(block))
        lines.append(line((named, faint or strong), *parts, (bar if i == 0 else "", BAR)))
    return lines


def _cell(column: Column, row: int, text: str, cells: int, faint: StyleType) -> tuple[str, StyleType]:
    shade = column.scale.style(column.values[row]) or faint if column.scale and text else faint
    return _fitted(column, text, cells), shade


def _bars(block: Rows) -> tuple[Mark, ...]:
    """Bars to draw, where all begin at 0 and no control or interval belongs beside them; else none.

    Bands over a given axis are drawn too.
    """
    if not isinstance(block, Ranking):
        return ()
    if block.axis and (stretches := tuple(each for each in block.marks if each.shape == "band" and each.to)):
        return stretches
    alone = all(each.shape in ("bar", "line") for each in block.marks)
    return tuple(each for each in block.marks if each.shape == "bar" and alone and block.extent()[0] >= 0)


def _bar(block: Rows, bars: tuple[Mark, ...], row: int, room: int) -> str:
    values = [float(value) for each in bars for value in each.at if not missing(value)]
    full = block.axis[1] if isinstance(block, Ranking) and block.axis else max(values, default=0.0)
    own = next((float(each.at[row]) for each in bars if not missing(each.at[row])), 0.0)
    if to := [float(each.to[row]) for each in bars if each.to and not missing(each.to[row])]:
        begins, ends = (int(each / full * room + 0.5) for each in (own, to[0]))
        return " " * (_GAP + begins) + "█" * max(ends - begins, 1)
    return " " * _GAP + bar(own / full, room) if own else ""
