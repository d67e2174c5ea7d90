"""Several measures on one page: a panel of layers by heads for each, with its own colours."""

import math

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import FAINT, INK, Words, lines_of
from attnscope.render.kit.figure.sheet import SUBTITLE, TITLE, Sheet, sheet
from attnscope.render.kit.numbers import short
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.overview.plot import cell_size, draw_overview, name_classes
from attnscope.render.overview.words import shades_words, shown
from attnscope.results import HeadScores, Overview

_MARGIN, _GUTTER = 0.3, 0.45
_TITLES, _TICKS, _UNDER = 0.4, 0.22, 0.55  # inches: title with subtitle, head numbers, the colour bar
_BAR = (1.6, 0.08)
_FOOT = 6.5
_SHAPE = 1.5  # of the page at most, width over height


def panels_figure(result: Overview, words: Words) -> Figure:
    """The page: heading and sentence, the panels in rows, the small print."""
    listed = shown(result)
    wide, high = _panel(result, listed)
    columns = _columns(len(listed), wide + _GUTTER, high)
    rows = math.ceil(len(listed) / columns)
    width = 2 * _MARGIN + columns * wide + (columns - 1) * _GUTTER
    inner = 0.99 * (width - 2 * _MARGIN)
    above, foot = lines_of(words, inner, most=3)
    head = sum(line_height(line.size) for line in above) + (0.15 if above else 0.0)
    page = sheet(width, 2 * _MARGIN + head + rows * high + sum(line_height(line.size) for line in foot))
    top = _MARGIN
    for line in above:
        page.write(_MARGIN, top + 0.75 * line_height(line.size), line.text, line.size, line.weight)
        top += line_height(line.size)
    for place, scores in enumerate(listed):
        row, column = divmod(place, columns)
        _draw(page, result, scores, _MARGIN + column * (wide + _GUTTER), _MARGIN + head + row * high)
    small = [line.text for line in foot]
    page.paragraph(_MARGIN, page.height - _MARGIN - len(foot) * line_height(_FOOT), small, _FOOT)
    return page.figure


def _panel(result: Overview, listed: list[HeadScores]) -> tuple[float, float]:
    """Width and height of a panel with what stands around it."""
    wide, high = cell_size(result, links=False)
    titles = [text_width(each.description.title, TITLE, bold=True) for each in listed]
    titles += [text_width(shades_words(each), SUBTITLE) for each in listed]
    grid = _layer_room(result) + wide * len(result.heads)
    return max(grid, *titles), _TITLES + _TICKS + high * len(result.layers) + _UNDER


def _layer_room(result: Overview) -> float:
    return text_width(f"L{max(result.layers)}", 8.0) + 0.1


def _columns(panels: int, wide: float, high: float) -> int:
    """As many side by side as leave the page not much wider than high; rows are filled evenly."""
    fits = [n for n in range(1, panels + 1) if n * wide <= _SHAPE * math.ceil(panels / n) * high]
    rows = math.ceil(panels / max(fits, default=1))
    return math.ceil(panels / rows)


def _draw(page: Sheet, result: Overview, scores: HeadScores, left: float, top: float) -> None:
    """One panel: title, what the shades mean, the grid, its colour bar."""
    page.title(left, top + _TITLES - 0.06, scores.description.title, shades_words(scores))
    wide, high = cell_size(result, links=False)
    first, above = left + _layer_room(result), top + _TITLES + _TICKS
    height = high * len(result.layers)
    axes = page.axes(first, above, wide * len(result.heads), height)
    drawn = draw_overview(result, axes, scores, links=False)
    axes.set(xlabel="", ylabel="")  # L and H say it, on every panel
    length = min(_BAR[0], wide * len(result.heads))
    bar = page.axes(first, above + height + 0.1, length, _BAR[1])
    _bar(page, drawn, bar)
    name_classes(scores, bar, horizontal=True)


def _bar(page: Sheet, drawn: ScalarMappable, axes: Axes) -> None:
    bar = page.figure.colorbar(drawn, cax=axes, orientation="horizontal")
    bar.outline.set_visible(False)  # type: ignore[operator]
    low, high = axes.get_xlim()
    bar.set_ticks([low, high], labels=[_bound(each) for each in (low, high)])
    axes.tick_params(labelsize=6.5, length=2, pad=1.5, colors=INK, labelcolor=FAINT)


def _bound(value: float) -> str:
    return short(value) if 0 < abs(value) < 0.1 else f"{value:.2f}".removesuffix(".00")
