"""A text set large, with one of its tokens marked, in as many lines as it has room for.

Lengths are inches, font sizes points. Call everything here within `typesetting.drawing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from attnscope.printable import printable
from attnscope.render.kit.labels import clusters
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.tokens import Tokens

_PAD = 0.18  # left and right of the marked token, in parts of the font size
_LEADING = 1.12  # of a line, in line heights
_ELLIPSIS = "…"
_BEFORE = 6  # words left in front of a marked token that stands far behind

Sizes: TypeAlias = tuple[tuple[float, ...], ...]  # in which to set one line, two lines and so on


@dataclass(frozen=True)
class Run:
    """Characters that stand together; `spaced` after a blank, `chosen` where they are the marked token."""

    text: str
    chosen: bool
    spaced: bool

    def pad(self, size: float) -> float:
        """Room at either side of a marked token."""
        return _PAD * size / 72 if self.chosen else 0.0

    def width(self, size: float) -> float:
        return text_width(self.text, size, self.chosen) + 2 * self.pad(size)


@dataclass(frozen=True)
class SetText:
    """Lines of runs, each run with its distance from the left edge."""

    size: float
    lines: tuple[tuple[tuple[float, Run], ...], ...]

    @property
    def pitch(self) -> float:
        return _LEADING * line_height(self.size)

    @property
    def base(self) -> float:
        """From the top to the first base line."""
        return 0.76 * self.pitch

    @property
    def height(self) -> float:
        return len(self.lines) * self.pitch


def set_text(tokens: Tokens, chosen: int | None, width: float, sizes: Sizes) -> SetText:
    """The text of `tokens` in the fewest lines, in the largest of their `sizes` that has room, else cut."""
    words = _words(runs(tokens, chosen))
    for most, several in enumerate(sizes, start=1):
        for size in several:
            lines = _lines(words, width, size)
            if len(lines) <= most:
                count = len(lines)
                low, high = width / count / 2, width
                for _ in range(8 if count > 1 else 0):
                    middle = (low + high) / 2
                    low, high = (low, middle) if len(_lines(words, middle, size)) <= count else (middle, high)
                lines = _lines(words, high, size)
                return SetText(size, tuple(_placed(line, size) for line in lines))
    lines = _cut(_from_chosen(words, lines, most, width, size), most, width, size)
    return SetText(size, tuple(_placed(line, size) for line in lines))


def runs(tokens: Tokens, chosen: int | None) -> list[Run]:
    """The text cut at blanks and around the token `chosen`, texts of a pair with a bar between them.

    An arrow leads to what the model went on to write.

    A token that the tokenizer added goes in front of the text of its part, or behind it.
    """
    runs: list[Run] = []
    for part, text in enumerate(tokens.texts):
        between = "→" if tokens.written and part == len(tokens.texts) - 1 else "|"
        bar = [Run(between, False, True)] if part else []
        mine = chosen is not None and tokens.items[chosen].part == part
        runs += bar + (_around(tokens, chosen, text) if mine and chosen is not None else _plain(text, True))
    return runs


def _around(tokens: Tokens, chosen: int, text: str) -> list[Run]:
    item = tokens.items[chosen]
    if item.span is None:
        mark = [Run(item.name, True, True)]
        behind = any(each.span and each.part == item.part for each in tokens.items[:chosen])
        return _plain(text, True) + mark if behind else mark + _plain(text, True)
    start, end = item.span
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    mark = [Run(printable(inside.strip()) or item.name, True, not text[:start] or text[start - 1] == " ")]
    return _plain(text[:start], True) + mark + _plain(text[end:], False)


def _plain(text: str, spaced: bool) -> list[Run]:
    pieces = printable(text).split(" ")
    return [Run(piece, False, spaced or i > 0) for i, piece in enumerate(pieces) if piece]


def _words(runs: Sequence[Run]) -> list[list[Run]]:
    words: list[list[Run]] = []
    for run in runs:
        if run.spaced or not words:
            words.append([])
        words[-1].append(run)
    return words


def _lines(words: list[list[Run]], width: float, size: float) -> list[list[Run]]:
    blank = _blank(size)
    lines: list[list[Run]] = [[]]
    used = 0.0
    for word in words:
        pieces = [word] if _width(word, size) <= width else _broken(word)
        for i, piece in enumerate(pieces):
            wide, before = _width(piece, size), blank if used and not i else 0.0
            if used and used + before + wide > width:
                lines.append([])
                used, before = 0.0, 0.0
            lines[-1] += piece
            used += before + wide
    return lines


def _broken(word: list[Run]) -> list[list[Run]]:
    pieces: list[list[Run]] = []
    for run in word:
        texts = [run.text] if run.chosen else clusters(run.text)
        pieces += [[Run(text, run.chosen, run.spaced and not i)] for i, text in enumerate(texts)]
    return pieces


def _from_chosen(
    words: list[list[Run]], lines: list[list[Run]], most: int, width: float, size: float
) -> list[list[Run]]:
    if any(run.chosen for line in lines[:most] for run in line):
        return lines
    marked = next((i for i, word in enumerate(words) if any(run.chosen for run in word)), 0)
    if not marked:
        return lines
    return _lines([[Run(_ELLIPSIS, False, True)], *words[max(marked - _BEFORE, 0) :]], width, size)


def _cut(lines: list[list[Run]], most: int, width: float, size: float) -> list[list[Run]]:
    if len(lines) <= most:
        return lines
    last = list(lines[most - 1])
    mark = Run(_ELLIPSIS, False, True)
    while last and _placed([*last, mark], size)[-1][0] + mark.width(size) > width:
        last.pop()
    return [*lines[: most - 1], [*last, mark]]


def _blank(size: float) -> float:
    return 0.32 * size / 72


def _width(word: Sequence[Run], size: float) -> float:
    return sum(run.width(size) for run in word)


def _placed(line: Sequence[Run], size: float) -> tuple[tuple[float, Run], ...]:
    placed: list[tuple[float, Run]] = []
    left = 0.0
    for run in line:
        left += _blank(size) if placed and run.spaced else 0.0
        placed.append((left, run))
        left += run.width(size)
    return tuple(placed)
