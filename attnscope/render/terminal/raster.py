"""Numbers as a picture of characters: half blocks in colour, shades where there is no colour.

A `Raster` is laid out when it is printed, because only then the console is known. In colour one line holds
two rows, since half a block is as high as wide. Without colour a character is a shade, a blank is nothing.
Attention over a sound is a line of bars over time for each row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, isnan

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, left, line, settled
from attnscope.render.kit.numbers import counted, number, parameter, pooled, significant
from attnscope.render.kit.palette import BAR, Scale, diverging, sequential
from attnscope.render.sheets.media import Timeline

SHADES, ASCII_SHADES = "·░▒▓█", ".:-=+*#%@"
_MOST_LINES, _FEW_ROWS = 60, 30
_GAP = "·"
_TICK = 10  # cells from one name above the columns to the next
_RAMP = 24  # cells of the ramp in the legend
_MOST_LABEL, _LEAST_LABEL = 24, 5

Shares = Float[np.ndarray, "row column"]


@dataclass(frozen=True)
class Side:
    """Labels of rows or columns: a noun, and each one's position (as text) and name."""

    noun: str
    positions: Sequence[str]
    names: Sequence[str]

    @cached_property
    def digits(self) -> int:
        return max(map(len, self.positions), default=0)

    def called(self, first: int, last: int) -> str:
        """Label of pooled rows: `12 door`; two names for two rows; positions and the first name for more."""
        name = self.names[first]
        if last - first > 1:
            ends = f"{self.positions[first]}-{self.positions[last]}"
            return f"{ends:>{2 * self.digits + 1}} {name}".rstrip()
        if last > first and name:
            name += f"·{self.names[last]}"
        return f"{self.positions[first]:>{self.digits}} {name}".rstrip()


@dataclass(frozen=True)
class Plan:
    """Pooling of a raster: rows and columns per cell, characters per column, two rows per line or one."""

    rows: int
    columns: int
    cells: int
    halved: bool

    @property
    def per_line(self) -> int:
        """Rows of the matrix per line."""
        return self.rows * (2 if self.halved else 1)


def plan(rows: int, columns: int, room: int, halves: bool) -> Plan:
    """Choose the pooling: two characters per pair if they fit, else one or half of one, else pooled pairs."""
    if rows <= _MOST_LINES and 2 * columns <= room:
        return Plan(1, 1, 2, False)
    halved = halves and rows > _FEW_ROWS
    most = _MOST_LINES * (2 if halved else 1)
    return Plan(ceil(rows / most), ceil(columns / max(room, 1)), 1, halved)


@dataclass(frozen=True, eq=False)
class Raster:
    """A matrix of shares, 0 to 1, or -1 to 1 around 0 where `signed`; NaN is left blank.

    `plain` are the shares from 0 to 1, for characters. `ends` are the texts of the least and the largest
    share, `scale` is that of weights. `blank` is the legend of NaN, empty where there is none; the notes
    `told` follow it.
    """

    shares: Shares
    plain: Shares
    title: str
    rows: Side
    columns: Side
    ends: tuple[str, str]
    plain_ends: tuple[str, str]
    width: int
    signed: bool = False
    scale: Scale | None = None
    blank: str = ""
    told: tuple[str, ...] = ()

    @property
    def height(self) -> int:
        """Estimated number of lines."""
        return min(len(self.rows.names), _MOST_LINES)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ink = ink_of(console, options, self.signed)
        halves = isinstance(ink, _Blocks) and ink.halves
        above = max(cell_len(self.title), cell_len(self.rows.noun) + 2)
        least = max(self.rows.digits + (_LEAST_LABEL if any(self.rows.names) else 0), above) + 1
        laid = plan(len(self.rows.names), len(self.columns.names), self.width - least, halves)
        cells = pooled(self.shares if isinstance(ink, _Blocks) else self.plain, laid.rows, laid.columns)
        rows, each = len(self.shares), laid.per_line
        heads = [self.rows.called(first, min(first + each, rows) - 1) for first in range(0, rows, each)]
        most = min(_MOST_LABEL, self.width - laid.cells * cells.shape[1] - 1)
        margin = min(max(above, *map(cell_len, heads)), most) + 1
        yield from self._headings(laid, margin, cells.shape[1])
        step = 2 if laid.halved else 1
        cells = np.pad(cells, ((0, len(cells) % step), (0, 0)), constant_values=np.nan)
        for i, head in enumerate(heads):
            text = Text.assemble((left(head, margin - 1) + " ", HEADING), no_wrap=True, overflow="crop")
            yield text.append_text(ink.drawn(cells[step * i : step * (i + 1)], laid.cells))
        yield self._legend(ink, laid)

    def _headings(self, laid: Plan, margin: int, count: int) -> Iterator[Text]:
        every = ceil(_TICK / laid.cells)
        room = {place: self.width - margin - place * laid.cells for place in range(0, count, every)}
        for names in (self.columns.positions, self.columns.names):
            marks = {place: left(names[place * laid.columns], min(_TICK, room[place]) - 1) for place in room}
            ticks = "".join(left(mark, every * laid.cells) for mark in marks.values())
            if names is self.columns.positions:
                yield line((left(self.title, margin), HEADING), (f"{self.columns.noun} →", DIM))
                yield line((left(f"{self.rows.noun} ↓", margin), DIM), (ticks, DIM))
            elif ticks.strip():
                yield line(" " * margin, (ticks, HEADING))

    def _legend(self, ink: "_Blocks | _Shades", laid: Plan) -> Text:
        low, high = self.ends if isinstance(ink, _Blocks) else self.plain_ends
        text = Text.assemble((f"{low} ", DIM), ink.ramp(), (f" {high}", DIM))
        if self.scale is not None:
            text = ink.key(self.scale)
        sides = ((laid.rows, self.rows.noun), (laid.columns, self.columns.noun))
        many = [counted(count, noun) for count, noun in sides if count > 1]
        pooled_words = (f"each cell the largest of {' x '.join(many)}",) if many else ()
        blank = (f"{'dots' if ink.gap.strip() else 'blank'}: {self.blank}",) if self.blank else ()
        return text.append("".join(f" · {each}" for each in (*blank, *self.told, *pooled_words)), DIM)


def ink_of(console: Console, options: ConsoleOptions, signed: bool) -> "_Blocks | _Shades":
    """Coloured cells where the console knows our styles, else shade characters."""
    if console.color_system is not None and not console.no_color:
        name = diverging if signed else sequential
        shares = np.linspace(-1.0 if signed else 0.0, 1.0, _RAMP)
        if console.get_style(name(0.0, 1.0), default=Style.null()).bgcolor is not None:
            few = console.color_system not in ("truecolor", "256")
            gap = _GAP if few and not options.ascii_only else " "
            return _Blocks(console, signed, [float(each) for each in shares], not options.ascii_only, gap)
    return _Shades(ASCII_SHADES if options.ascii_only else SHADES)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Cells as colours of the console; `halves` where it has characters for half a cell.

    `gap` is drawn for NaN, because with 16 colours the colour of 0 is the background.
    """

    console: Console
    signed: bool
    shares: list[float]
    halves: bool
    gap: str

    def drawn(self, rows: Shares, cells: int) -> Text:
        text = Text(no_wrap=True, overflow="crop")
        for upper, lower in zip(rows[0].tolist(), rows[-1].tolist(), strict=True):
            above, below = self._colour(upper), self._colour(lower)
            if above is None and below is None:
                text.append(self.gap * cells, DIM)
            elif above == below:
                text.append(" " * cells, Style(bgcolor=above))
            elif above is None:
                text.append("▄" * cells, Style(color=below))
            else:
                text.append("▀" * cells, Style(color=above, bgcolor=below))
        return text

    def ramp(self) -> Text:
        return self.drawn(np.array([self.shares]), 1)

    def key(self, scale: Scale) -> Text:
        cells = [" "] * len(self.shares)
        for place, written in scale.ticks:
            start = round(scale.shade(place) * (len(cells) - len(written)))
            cells[start : start + len(written)] = written
        styles = map(sequential, self.shares)
        return Text.assemble(*zip(cells, styles, strict=True), no_wrap=True)

    def _colour(self, share: float) -> Color | None:
        name = diverging(share, 1.0) if self.signed else sequential(share)
        return self.console.get_style(name).bgcolor if name else None


@dataclass(frozen=True)
class _Shades:
    characters: str
    gap: str = " "

    def drawn(self, rows: Shares, cells: int) -> Text:
        drawn = "".join(self._shade(share) * cells for share in rows[0].tolist())
        return Text(drawn.rstrip(), no_wrap=True)

    def ramp(self) -> Text:
        return Text(self.characters)

    def key(self, scale: Scale) -> Text:
        least = (scale.weight(i / len(self.characters)) for i in range(len(self.characters)))
        told = (f"{each} {parameter(from_, 2)}" for each, from_ in zip(self.characters, least, strict=True))
        return Text("  ".join(told), DIM)

    def _shade(self, share: float) -> str:
        most = len(self.characters)
        return " " if isnan(share) else self.characters[min(int(share * most), most - 1)]


_LEVELS = " ▁▂▃▄▅▆▇█"
_MOST_NAME, _MOST_ROWS = 21, 160
_NUMBER = 7  # cells of a number at the end of a line: 5.8e-4


def timeline(block: Timeline, width: int) -> Iterator[Text]:
    """Lines of bars over time, one for each row, scaled to the row's largest bar, whose value ends the line.

    Heights are rounded to eighths. Where the frames outnumber the cells, every bar is the sum of equally many
    frames, so that even weights make even bars; only the last one may have fewer.
    """
    rows, step = block.plain.values[:_MOST_ROWS], block.result.seconds
    names = [settled(each) for each in block.plain.rows.names[:_MOST_ROWS]]
    names = ["weight"] if len(names) == 1 else names
    label = min(max(map(cell_len, names)), _MOST_NAME)
    margin, frames = label + 1, rows.shape[1]
    together = -(-frames // max(width - margin - _NUMBER, 8))  # frames of a bar
    starts = np.arange(0, frames, together)
    yield Text(block.plain.title, style="bold")
    for name, row in zip(names, rows, strict=True):
        summed = np.add.reduceat(np.nan_to_num(row), starts)
        largest = float(summed.max())
        levels = np.rint(8 * summed / (largest or 1.0)).astype(int)
        bars = "".join(_LEVELS[level] for level in levels)
        yield line((left(name, label) + " ", HEADING), (bars, BAR), f" {significant(largest)}")
    yield _axis(margin, len(starts), step * together)
    bar = "a frame" if together == 1 else f"{number(1000 * step * together, 0)} ms, weights summed"
    last = frames - int(starts[-1])
    fewer = f" (the last: {number(1000 * step * last, 0)} ms)" if last < together else ""
    yield Text(f"each bar: {bar}{fewer}; a full bar is the number at the end of its line", style=DIM)
    if more := len(block.plain.rows) - len(rows):
        yield Text(f"and {counted(more, block.plain.words[0])} more (-o FILE.png shows them)", style=DIM)


def _axis(margin: int, cells: int, lasts: float) -> Text:
    every = max(8, cells // 8)
    marks = [left(f"{cell * lasts:.2f}s", every) for cell in range(0, cells, every)]
    whole = [mark for i, mark in enumerate(marks) if i * every + len(mark.rstrip()) <= cells or not i]
    return line(" " * margin, ("".join(whole), DIM))
