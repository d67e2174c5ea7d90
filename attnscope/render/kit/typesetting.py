"""Text in pictures: installed fonts, text width, line breaks, and missing glyphs.

Widths and heights are inches, font sizes points. Text is never parsed as mathematics; control characters are
measured and wrapped as their escapes.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.text import Text

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.kit.cells import clusters
from attnscope.render.kit.numbers import parameter
from attnscope.tokens import Tokens

_NEXT_TO_NOTHING = 1e-12  # tick values below this are rounding errors of 0
_FIRST = "DejaVu Sans"
_FURTHER = (
    *("Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR"),
    *("Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "IPAGothic", "Unifont"),
    *("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    *("Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil"),
    *("Noto Sans Thai", "Arial Unicode MS", "Noto Emoji", "Symbola", "Segoe UI Emoji", "Segoe UI Symbol"),
)
_ALIKE = ("Bitstream Vera Sans", "Verdana", "Geneva", "Arial")  # for viewers of an SVG without the first font
_DPI = 200
_BREAK = re.compile(r"(?<!:) (?!%|H\d)|(?<=:) (?!\.\d)")  # but not within `8.3 %`, `L3 H11`, `: .98`


@lru_cache
def families() -> tuple[str, ...]:
    """Installed font families, in order of fallback."""
    installed = {font.name for font in fontManager.ttflist}
    return (_FIRST, *(name for name in _FURTHER if name in installed))


@contextmanager
def drawing() -> Iterator[None]:
    """Context manager: fixed matplotlib settings for every figure, whatever the user's matplotlibrc says.

    It silences matplotlib's warnings about glyphs, since `missing_glyphs` reports these.
    """
    settings: dict[Any, Any] = {
        "font.family": [*families(), "sans-serif"],
        "font.sans-serif": [_FIRST, *_ALIKE],
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "text.hinting": "none",
        "svg.hashsalt": "attnscope",
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
    }
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        warnings.filterwarnings("ignore", message=r"(?s)Glyph \d+ .* missing from")
        warnings.filterwarnings("ignore", message=r"(?s)Matplotlib currently does not support")
        yield


def tick(value: float, _place: object = None) -> str:
    """Tick formatter for matplotlib: `−.25`, `0`, `1.5`."""
    return "0" if abs(value) < _NEXT_TO_NOTHING else parameter(value)


def percent_tick(value: float, _place: object = None) -> str:
    """Tick formatter of probabilities: `0 %`, `25 %`."""
    return f"{tick(100 * value)} %"


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of one line of `text` in inches; call it within `drawing`."""
    paper, shown = _paper(), printable(text, LEFT_TO_RIGHT)
    drawn = paper.figure.text(0, 0, shown, size=size, weight="bold" if bold else "normal", parse_math=False)
    width = float(drawn.get_window_extent(paper.get_renderer()).width)  # type: ignore[no-untyped-call]
    drawn.remove()
    return width / _DPI


@lru_cache
def _paper() -> FigureCanvasAgg:
    """Canvas for measuring widths, made once because a renderer is slow to make."""
    return FigureCanvasAgg(Figure(dpi=_DPI))


def line_height(size: float) -> float:
    """Inches between two base lines."""
    return size * 1.3 / 72


def wrapped(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """`text` in lines of at most `width`, broken at blanks, or within a word that is too long."""
    lines = [""]
    for word in _BREAK.split(printable(text, LEFT_TO_RIGHT)):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(joined, size, bold) <= width:
            lines[-1] = joined
            continue
        lines += _broken(word, width, size, bold)
    return [line for line in lines if line]


def shortened(text: str, width: float, size: float, most: int) -> list[str]:
    """`text` wrapped in at most `most` lines, with an ellipsis where text was cut."""
    lines = wrapped(text, width, size)
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    while last and text_width(f"{last} …", size) > width:
        last = last[:-1]
    return [*lines[: most - 1], f"{last.rstrip()} …"]


def _broken(word: str, width: float, size: float, bold: bool) -> list[str]:
    lines = [""]
    if text_width(word, size, bold) <= width:
        return [word]
    for cluster in clusters(word):
        if lines[-1] and text_width(lines[-1] + cluster, size, bold) > width:
            lines.append("")
        lines[-1] += cluster
    return lines


def missing_glyphs(figure: Figure) -> str:
    """The figure's characters, in order of first use, that no installed font can draw; `""` if none."""
    texts = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    used = dict.fromkeys("".join(texts))
    return "".join(character for character in used if character > " " and not _drawable(character))


@lru_cache(maxsize=4096)
def _drawable(character: str) -> bool:
    return any(get_font(path).get_char_index(ord(character)) for path in _font_files())


@lru_cache
def _font_files() -> tuple[str, ...]:
    return tuple(fontManager.findfont(FontProperties(family=[name])) for name in families())


_PAD = 0.18  # left and right of the marked token, in parts of the font size
_LEADING = 1.12  # of a line, in line heights
_ELLIPSIS = "…"
_BEFORE = 6  # words left in front of a marked token that stands far behind

Sizes: TypeAlias = tuple[tuple[float, ...], ...]  # in which to set one line, two lines and so on


@dataclass(frozen=True)
class Run:
    """A run of characters: `spaced` after a blank, `chosen` where it is the marked token."""

    text: str
    chosen: bool
    spaced: bool

    def pad(self, size: float) -> float:
        """Inches of padding at either side of a marked token."""
        return _PAD * size / 72 if self.chosen else 0.0

    def width(self, size: float) -> float:
        return text_width(self.text, size, self.chosen) + 2 * self.pad(size)


@dataclass(frozen=True)
class SetText:
    """Typeset text: lines of runs, each run with its distance from the left edge."""

    size: float
    lines: tuple[tuple[tuple[float, Run], ...], ...]

    @property
    def pitch(self) -> float:
        return _LEADING * line_height(self.size)

    @property
    def base(self) -> float:
        """Inches from the top to the first base line."""
        return 0.76 * self.pitch

    @property
    def height(self) -> float:
        return len(self.lines) * self.pitch


def set_text(tokens: Tokens, chosen: int | None, width: float, sizes: Sizes) -> SetText:
    """Typeset `tokens` in the fewest lines, in the largest of `sizes` that fits, else cut."""
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
    """The text as runs: cut at blanks and around the token `chosen`, with a bar between the texts of a pair.

    An arrow stands before generated text. A token that the tokenizer added is put before or behind its text.
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
        pieces = [word] if _width(word, size) <= width else _in_lines(word)
        for i, piece in enumerate(pieces):
            wide, before = _width(piece, size), blank if used and not i else 0.0
            if used and used + before + wide > width:
                lines.append([])
                used, before = 0.0, 0.0
            lines[-1] += piece
            used += before + wide
    return lines


def _in_lines(word: list[Run]) -> list[list[Run]]:
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
