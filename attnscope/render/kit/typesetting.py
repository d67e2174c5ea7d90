"""Text in pictures: the fonts that are installed, how wide a text is, where it wraps, what cannot be drawn.

All widths and heights are inches, font sizes points. Nothing here reads text as mathematics, and what could
steer is measured and wrapped as it is written, as an escape.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.text import Text

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.kit.labels import clusters
from attnscope.render.kit.numbers import parameter

_NEXT_TO_NOTHING = 1e-12  # where an axis means 0 and rounding made a little of it
_FIRST = "DejaVu Sans"
_FURTHER = (
    *("Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR"),
    *("Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "IPAGothic", "Unifont"),
    *("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    *("Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil"),
    *("Noto Sans Thai", "Arial Unicode MS", "Noto Emoji", "Symbola", "Segoe UI Emoji", "Segoe UI Symbol"),
)
_ALIKE = ("Bitstream Vera Sans", "Verdana", "Geneva", "Arial")  # for who looks at an SVG without the first
_DPI = 200
_BREAK = re.compile(r"(?<!:) (?!%|H\d)|(?<=:) (?!\.\d)")  # but not within `8.3 %`, `L3 H11`, `: .98`


@lru_cache
def families() -> tuple[str, ...]:
    """Font families to fall back through, those of the list that this machine has."""
    installed = {font.name for font in fontManager.ttflist}
    return (_FIRST, *(name for name in _FURTHER if name in installed))


@contextmanager
def drawing() -> Iterator[None]:
    """The settings under which every figure is made and saved, whatever a user's matplotlibrc says.

    matplotlib's warnings about glyphs are left out here, since `missing_glyphs` tells the same.
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
    """What stands at a place of an axis or a colour bar, for matplotlib to ask: `−.25`, `0`, `1.5`."""
    return "0" if abs(value) < _NEXT_TO_NOTHING else parameter(value)


def percent_tick(value: float, _place: object = None) -> str:
    """A tick of a probability: `0 %`, `25 %`."""
    return f"{tick(100 * value)} %"


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of one line of `text`; call it within `drawing`."""
    paper, shown = _paper(), printable(text, LEFT_TO_RIGHT)
    drawn = paper.figure.text(0, 0, shown, size=size, weight="bold" if bold else "normal", parse_math=False)
    width = float(drawn.get_window_extent(paper.get_renderer()).width)  # type: ignore[no-untyped-call]
    drawn.remove()
    return width / _DPI


@lru_cache
def _paper() -> FigureCanvasAgg:
    """What widths are measured on: made once, since a renderer takes longer than a word."""
    return FigureCanvasAgg(Figure(dpi=_DPI))


def line_height(size: float) -> float:
    """From one base line to the next."""
    return size * 1.3 / 72


def wrapped(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """`text` in lines of at most `width`, broken at blanks, within a word only where it is too long."""
    lines = [""]
    for word in _BREAK.split(printable(text, LEFT_TO_RIGHT)):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(joined, size, bold) <= width:
            lines[-1] = joined
            continue
        lines += _broken(word, width, size, bold)
    return [line for line in lines if line]


def shortened(text: str, width: float, size: float, most: int) -> list[str]:
    """`text` wrapped in at most `most` lines, the last one ending in an ellipsis where more follows."""
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
    """The characters of the figure, in order of first use, that no installed font can draw; `""` if none."""
    texts = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    used = dict.fromkeys("".join(texts))
    return "".join(character for character in used if character > " " and not _drawable(character))


@lru_cache(maxsize=4096)
def _drawable(character: str) -> bool:
    return any(get_font(path).get_char_index(ord(character)) for path in _font_files())


@lru_cache
def _font_files() -> tuple[str, ...]:
    return tuple(fontManager.findfont(FontProperties(family=[name])) for name in families())
