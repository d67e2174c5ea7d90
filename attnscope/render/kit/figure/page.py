"""The page around a picture: heading, text, axes, colour bar and small print, placed to the inch.

Sizes follow from what has to be read: the page grows with its labels, so that nothing is cut or overlaps.
Where a size is asked for, the axes take what the words leave; where that is too little, all is made smaller.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from rich.color_triplet import ColorTriplet

from attnscope.render.kit.figure.shown_figure import ShownFigure
from attnscope.render.kit.palette import readable_on
from attnscope.render.kit.typesetting import line_height, shortened, wrapped
from attnscope.render.look import DPI, Size, look_now

INK, FAINT = "#222222", "#666666"
_MARGIN, _GAP = 0.2, 0.12
_BARE_MARGIN = 0.1
_LEAST_WIDTH = 5.4
_STEP = 0.98  # from one size of the letters to the next smaller one
EDGE = 1 + 1e-9  # so that no side ends a hair below a whole number of dots
_MOST_LINES = 4  # of the sentence
_BAR_WIDTH, _BAR_ROOM, _LEAST_BAR, _TALLEST_BAR = 0.16, 0.95, 1.5, 4.0
_HEADING, _SENTENCE, _FOOT = 11.0, 9.0, 6.5


Inches: TypeAlias = tuple[float, float, float, float]  # left, bottom, width, height


@dataclass(frozen=True)
class Frame:
    """Width and height of the axes, and the room for tick labels and axis words around them.

    On a page that is too small they may have this share of both, and what is drawn on them has room still.
    """

    width: float
    height: float
    left: float
    top: float
    bottom: float = 0.0
    share: float = 1.0


@dataclass(frozen=True)
class Words:
    """What is written around the axes: heading and sentence above, one paragraph per `foot` below."""

    heading: str
    sentence: str
    foot: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One line around a picture, its size in points."""

    text: str
    size: float
    weight: str = "normal"
    color: str = INK


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
    laid = _to_size(frames, words, beside, look_now().sides)
    figure = ShownFigure(figsize=(laid.width, laid.height), dpi=DPI, facecolor="white")
    figure.zoom = laid.zoom
    write_lines(figure, laid.above, laid.margin, laid.height - laid.margin)
    write_lines(figure, laid.below, laid.margin, laid.margin + _height(laid.below))
    places, left = [], laid.margin + laid.spare / 2
    for frame in laid.frames:
        left += frame.left
        places.append((left, laid.top - frame.height, frame.width, frame.height))
        left += frame.width
    return figure, places


@dataclass(frozen=True)
class _Laid:
    """A page before it is drawn: its sides, how much larger it is written, its lines and its frames.

    `top` is that of the axes, from the bottom, `block` their height with what stands below them, `spare` what
    the frames leave of the width.
    """

    width: float
    height: float
    zoom: float
    margin: float
    above: list[Line]
    below: list[Line]
    frames: Sequence[Frame]
    top: float
    block: float
    spare: float


def _to_size(frames: Sequence[Frame], words: Words, beside: float, size: Size | None) -> _Laid:
    """The page of `frames` as large as they need, or in `size` with the largest letters that this allows."""
    if size is None:
        return _natural(frames, words, beside, None)
    zoom = 1.0
    while True:
        inner = (EDGE * size[0] / zoom, EDGE * size[1] / zoom)
        if (laid := _stretched(frames, words, beside, inner)) is not None:
            return replace(laid, zoom=zoom)
        zoom *= _STEP


def _stretched(frames: Sequence[Frame], words: Words, beside: float, size: Size) -> _Laid | None:
    """The page in exactly this size, its axes wider or higher for it; None where they have no room."""
    laid = _natural(frames, words, beside, size[0])
    axes = sum(frame.width for frame in frames)
    across = (axes + size[0] - laid.width + laid.spare) / axes
    block = laid.block + size[1] - laid.height
    down = min((block - frame.bottom) / frame.height for frame in frames)
    if min(across, down) < max(frame.share for frame in frames) or block < _least_block(beside):
        return None
    fitted = [replace(each, width=across * each.width, height=down * each.height) for each in frames]
    top = laid.top + size[1] - laid.height
    return replace(laid, width=size[0], height=size[1], frames=fitted, top=top, spare=0.0)


def _natural(frames: Sequence[Frame], words: Words, beside: float, width: float | None) -> _Laid:
    """The page as large as its frames need, with lines as wide as it is, or as `width`."""
    look = look_now()
    margin = _BARE_MARGIN if look.bare else _MARGIN
    needed = 2 * margin + sum(frame.left + frame.width for frame in frames) + beside
    page_width = max(needed, 0.0 if look.bare else _LEAST_WIDTH)
    above, below = lines_of(words, 0.99 * ((width or page_width) - 2 * margin))
    head = _height(above) + (_GAP if above else 0.0) + max(frame.top for frame in frames)
    block = max(_least_block(beside), *(frame.height + frame.bottom for frame in frames))
    height = 2 * margin + head + block + (_height(below) + _GAP if below else 0.0)
    return _Laid(
        width=page_width,
        height=height,
        zoom=1.0,
        margin=margin,
        above=above,
        below=below,
        frames=frames,
        top=height - margin - head,
        block=block,
        spare=page_width - needed,
    )


def _least_block(beside: float) -> float:
    """How high the axes with what stands below them are at least: a colour bar has to be read."""
    return 0.0 if look_now().bare and not beside else _LEAST_BAR


def lines_of(words: Words, width: float, most: int = _MOST_LINES) -> tuple[list[Line], list[Line]]:
    """What stands above and below a picture that has `width` inches, as its look will have it."""
    look, above, below = look_now(), [], []
    heading = look.heading(words.heading)
    if heading:
        above += [Line(text, _HEADING, "bold", INK) for text in wrapped(heading, width, _HEADING, bold=True)]
    if not look.bare:
        above += [Line(text, _SENTENCE) for text in shortened(words.sentence, width, _SENTENCE, most)]
    if look.captioned:
        foot = [text for paragraph in words.foot if paragraph for text in wrapped(paragraph, width, _FOOT)]
        below += [Line(text, _FOOT, color=FAINT) for text in foot]
    return above, below


def _axes(figure: Figure, inches: Inches) -> Axes:
    width, height = figure.get_size_inches()
    left, bottom, wide, high = inches
    return figure.add_axes((left / width, bottom / height, wide / width, high / height))


def _height(lines: Sequence[Line]) -> float:
    return sum(line_height(line.size) for line in lines)


def write_lines(figure: Figure, lines: Sequence[Line], left: float, top: float) -> None:
    """Lines one under the other from `top`, in inches from the lower left corner of the page."""
    width, height = figure.get_size_inches()
    for line in lines:
        top -= line_height(line.size)
        place = (left / width, (top + 0.25 * line_height(line.size)) / height)
        figure.text(*place, line.text, size=line.size, weight=line.weight, color=line.color, parse_math=False)


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
