"""The page around a picture: heading, text, axes, colour bar and small print, placed to the inch.

Sizes follow from what has to be read: the page grows with its labels, so that nothing is cut or overlaps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from rich.color_triplet import ColorTriplet

from attnscope.render.kit.palette import readable_on
from attnscope.render.kit.shown_figure import ShownFigure
from attnscope.render.kit.typesetting import line_height, shortened, wrapped

DPI = 200
INK, FAINT = "#222222", "#666666"
_MARGIN, _GAP = 0.2, 0.12
_LEAST_WIDTH = 5.4
_MOST_LINES = 4  # of the sentence
_BAR_WIDTH, _BAR_ROOM, _LEAST_BAR, _TALLEST_BAR = 0.16, 0.95, 1.5, 4.0
_HEADING, _SENTENCE, _FOOT = 11.0, 9.0, 6.5


Inches: TypeAlias = tuple[float, float, float, float]  # left, bottom, width, height


@dataclass(frozen=True)
class Frame:
    """Width and height of the axes, and the room for tick labels and axis words around them."""

    width: float
    height: float
    left: float
    top: float
    bottom: float = 0.0


@dataclass(frozen=True)
class Words:
    """What is written around the axes: heading and sentence above, one paragraph per `foot` below."""

    heading: str
    sentence: str
    foot: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    figure: Figure
    axes: Axes
    bar: Axes


def page(frame: Frame, words: Words) -> Page:
    """An empty page; the axes are `frame.width` by `frame.height`, the colour bar stands at their right."""
    figure, (place,) = _laid_out([frame], words, beside=_BAR_ROOM)
    left, bottom, width, height = place
    bar_height = min(max(height, _LEAST_BAR), _TALLEST_BAR)
    bar = (left + width + _GAP, bottom + height - bar_height, _BAR_WIDTH, bar_height)
    return Page(figure, _axes(figure, place), _axes(figure, bar))


def sheet(frames: Sequence[Frame], words: Words) -> tuple[Figure, list[Axes]]:
    """An empty page with axes side by side, one for each frame, and no colour bar."""
    figure, places = _laid_out(frames, words)
    return figure, [_axes(figure, place) for place in places]


def _laid_out(frames: Sequence[Frame], words: Words, beside: float = 0.0) -> tuple[Figure, list[Inches]]:
    """A page with `words` above and below, and the places of its axes, with `beside` free at their right."""
    needed = 2 * _MARGIN
    for frame in frames:
        needed += frame.left
        needed += frame.width
    needed += beside
    width = max(needed, _LEAST_WIDTH)
    inner = 0.99 * (width - 2 * _MARGIN)
    above = [(line, _HEADING, "bold", INK) for line in wrapped(words.heading, inner, _HEADING, bold=True)]
    sentence = shortened(words.sentence, inner, _SENTENCE, _MOST_LINES)
    above += [(line, _SENTENCE, "normal", INK) for line in sentence]
    foot = [line for paragraph in words.foot for line in wrapped(paragraph, inner, _FOOT)]
    below = [(line, _FOOT, "normal", FAINT) for line in foot]
    head = sum(line_height(size) for _, size, *_ in above) + _GAP
    top, block = (
        max(frame.top for frame in frames),
        max(_LEAST_BAR, *(frame.height + frame.bottom for frame in frames)),
    )
    height = 2 * _MARGIN + head + top + block + _GAP + len(below) * line_height(_FOOT)
    figure = ShownFigure(figsize=(width, height), dpi=DPI, facecolor="white")
    _write(figure, above, height - _MARGIN)
    _write(figure, below, _MARGIN + len(below) * line_height(_FOOT))
    places, left = [], _MARGIN + frames[0].left + (width - needed) / 2
    for i, frame in enumerate(frames):
        left += frames[i - 1].width + frame.left if i else 0.0
        places.append((left, height - _MARGIN - head - top - frame.height, frame.width, frame.height))
    return figure, places


def _axes(figure: Figure, inches: Inches) -> Axes:
    width, height = figure.get_size_inches()
    left, bottom, wide, high = inches
    return figure.add_axes((left / width, bottom / height, wide / width, high / height))


def _write(figure: Figure, lines: list[tuple[str, float, str, str]], top: float) -> None:
    """Lines of (text, size, weight, colour) one under the other from `top`, in inches from the bottom."""
    width, height = figure.get_size_inches()
    for text, size, weight, colour in lines:
        top -= line_height(size)
        place = (_MARGIN / width, (top + 0.25 * line_height(size)) / height)
        figure.text(*place, text, size=size, weight=weight, color=colour, parse_math=False)


def ink_on(drawn: ScalarMappable, value: float) -> str:
    """Black or white, whichever is easier to read on the colour of `value`."""
    red, green, blue, _ = drawn.to_rgba(np.array([value]), bytes=True)[0].tolist()
    return readable_on(ColorTriplet(red, green, blue)).hex


def colour_bar(made: Page, drawn: ScalarMappable, label: str) -> None:
    """The colour bar of what was drawn, with its label at the right."""
    bar = made.figure.colorbar(drawn, cax=made.bar)
    bar.outline.set_visible(False)  # type: ignore[operator]
    made.bar.tick_params(labelsize=7, length=2, colors=INK)
    made.bar.set_ylabel(label, size=8, color=INK)
