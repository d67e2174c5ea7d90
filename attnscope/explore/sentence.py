"""Draws the sentence, its tokens shaded by a row or a column of the head, in a few lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isnan

from rich.cells import cell_len
from rich.style import Style, StyleType

from attnscope.explore.grid import CURSOR
from attnscope.explore.surface import Cells, Line, Part, Surface
from attnscope.render.kit.cells import DIM, fit, left, settled
from attnscope.render.kit.palette import sequential
from attnscope.render.terminal.raster import SHADES
from attnscope.tokens import Tokens

UNDERLINED = Style(underline=True, bold=True)
_LONGEST = 24
_MORE, _GOES_ON = " …", "##"
_MARKS = " " + SHADES[1:]  # behind a word nothing is enough for next to nothing


@dataclass(frozen=True)
class Run:
    """A token laid out in the sentence: its number, line, first cell and text."""

    token: int
    line: int
    start: int
    text: str


@dataclass(frozen=True)
class Set:
    """Layout of the visible part of a sentence: its runs, from line `first` on, after a margin.

    `before` and `more` say whether tokens before and after these are left out.
    """

    runs: tuple[Run, ...]
    first: int
    lines: int
    margin: int
    more: bool = False
    before: bool = False

    def at(self, x: int, y: int) -> int | None:
        """The token at this cell, None between tokens."""
        for run in self.runs:
            start = self.margin + run.start
            if run.line - self.first == y and start <= x < start + cell_len(run.text):
                return run.token
        return None


def set_sentence(tokens: Tokens, cursor: int, margin: int, width: int, lines: int, marks: bool) -> Set:
    """Lay tokens out in lines of `width` cells, and keep `lines` of them around the cursor."""
    room = max(width - margin - len(_MORE), 8)
    runs = _runs(tokens.names, room, marks)
    last = runs[-1].line if runs else 0
    at = runs[cursor].line if cursor < len(runs) else 0
    first = min(max(at - lines // 2, 0), max(last + 1 - lines, 0))
    if 0 < first == last + 1 - lines:
        return Set(_end(tokens.names, room, marks, lines), 0, lines, margin, before=True)
    shown = tuple(run for run in runs if first <= run.line < first + lines)
    return Set(shown, first, min(lines, last + 1), margin, first + lines <= last, first > 0)


@lru_cache(maxsize=32)
def _end(names: tuple[str, ...], room: int, marks: bool, lines: int) -> tuple[Run, ...]:
    begin, kept = len(names), tuple[Run, ...]()
    while begin > 0:
        runs = _runs(names, room, marks, begin - 1)
        if runs[-1].line >= lines:
            break
        begin, kept = begin - 1, runs
    return kept


@lru_cache(maxsize=256)
def _runs(names: tuple[str, ...], room: int, marks: bool, begin: int = 0) -> tuple[Run, ...]:
    runs: list[Run] = []
    line = start = 0
    for number, name in enumerate(names[begin:], begin):
        goes_on = number > 0 and name.startswith(_GOES_ON) and name != _GOES_ON
        told = name.removeprefix(_GOES_ON) if goes_on else name
        text = fit(settled(told), min(_LONGEST, room - marks)) + (" " if marks else "")
        gap = 0 if not start or goes_on else 1
        if start + gap + cell_len(text) > room:
            line, start, gap = line + 1, 0, 0
        runs.append(Run(number, line, start + gap, text))
        start += gap + cell_len(text)
    return tuple(runs)


def sentence(
    title: str,
    laid: Set,
    shares: Sequence[float] | None,
    cursor: int | None,
    other: int | None,
    surface: Surface,
) -> Cells:
    """Draw the sentence shaded by `shares`: NaN is masked and dim, `other` is underlined."""
    lines = []
    for number in range(laid.first, laid.first + laid.lines):
        before = "…" if number == laid.first and laid.before else ""
        words = left(title if number == laid.first else "", laid.margin - 1)
        line, used = Line((words + left(before, 1), DIM)), 0
        for run in laid.runs:
            if run.line == number:
                line.append(" " * (run.start - used))
                used = run.start + cell_len(run.text)
                for text, style in _run(run, shares, cursor, other, surface):
                    line.append(text, style)
        if laid.more and number == laid.first + laid.lines - 1:
            line.append(_MORE, DIM)
        lines.append(line)
    return Cells(lines)


def _run(
    run: Run, shares: Sequence[float] | None, cursor: int | None, other: int | None, surface: Surface
) -> list[Part]:
    share = None if shares is None else shares[run.token]
    masked = share is not None and isnan(share)
    word = run.text.rstrip()
    room = len(run.text) - len(word)
    style: StyleType = DIM if masked else ""
    mark = ""
    if share is not None and not masked:
        if surface.shades:
            mark = _MARKS[min(int(share * len(_MARKS)), len(_MARKS) - 1)]
        else:
            style = sequential(share)
    if run.token == cursor:
        style = CURSOR
    elif run.token == other:
        known = not style or isinstance(style, Style)
        style = UNDERLINED if known else surface.console.get_style(style) + UNDERLINED
    return [(word, style), (left(mark, room), "")]
