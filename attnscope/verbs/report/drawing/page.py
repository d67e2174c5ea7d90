"""One head and one of its queries on one landscape page.

From left to right and down: the sentence and what the model says to it; scores, weights and the map; what
each key adds to the output, and the head in numbers; the small print. `pages` has them one a page.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from matplotlib.figure import Figure

from attnscope.render.kit.page import MARGIN, TITLE_ROOM, Sheet, sheet
from attnscope.render.kit.stage import Show
from attnscope.render.kit.typesetting import Sizes, drawing
from attnscope.render.look import look_now
from attnscope.verbs.report.drawing import header as header
from attnscope.verbs.report.drawing import panels
from attnscope.verbs.report.drawing.panels import (
    ON_PAGE,
    ON_SLIDE,
    REMARK,
    UNDER,
    Cells,
    Place,
    cells,
    facts_width,
    label_width,
)
from attnscope.verbs.report.result import Report
from attnscope.verbs.report.sheet import facts, shares, shares_remark

__all__ = ["figure", "named_pages", "pages"]

_GAP, _GUTTER, _BETWEEN = 0.3, 0.55, 0.3  # inches between heat maps, between columns, between rows
_BEFORE_FOOT = 0.08
_MOST_SHARES = 9
_LEAST_UPPER, _ELSE = 2.6, 3.6  # inches: the row of the maps at least, and all but both rows of panels
_NARROWEST_MAP, _WIDEST_MAP = 4.6, 7.0
_SHAPE, _STRETCH = 1.5, 1.25  # of the page, width over height, and how far the map may widen for it


@dataclass(frozen=True)
class Columns:
    """Where the two columns of the page begin and how wide they are; `labels` is the room of row labels."""

    labels: float
    first: float
    second: float

    @property
    def left(self) -> float:
        return MARGIN + self.labels

    @property
    def split(self) -> float:
        return self.left + self.first + _GUTTER

    @property
    def width(self) -> float:
        return self.split + self.second + MARGIN


@dataclass(frozen=True)
class HeatMaps:
    """Scores, and beside them the weights, which have rows of their own where they are by words."""

    scores: Cells
    weights: Cells
    labelled: bool

    @classmethod
    def of(cls, result: Report) -> "HeatMaps":
        scores, weights = (cells(panels.shown(result, show), ON_PAGE) for show in ("scaled", "weights"))
        return cls(scores, weights, labelled=result.view is not None)

    @property
    def height(self) -> float:
        return max(laid.above + laid.height for laid in (self.scores, self.weights))

    @property
    def second(self) -> float:
        """Where the weights begin, from the left edge of the scores."""
        return self.scores.width + _GAP + (self.weights.left if self.labelled else 0.0)

    @property
    def width(self) -> float:
        return self.second + self.weights.width

    def draw(self, page: Sheet, result: Report, left: float, top: float) -> None:
        first = Place(left, top, self.scores.width, self.height)
        second = Place(left + self.second, top, self.weights.width, self.height)
        panels.heat_map(page, result, "scaled", first, self.scores, labelled=True)
        panels.heat_map(page, result, "weights", second, self.weights, labelled=self.labelled)


def figure(result: Report) -> Figure:
    """The page of a report."""
    with drawing():
        maps = HeatMaps.of(result)
        listed = shares(result, _MOST_SHARES)
        upper = max(maps.height, _LEAST_UPPER)
        lower = max(panels.shares_height(listed), panels.facts_height(result))
        points = len(result.projection.queries) + len(result.projection.keys)
        suited = min(max(2.6 + 0.38 * math.sqrt(points), _NARROWEST_MAP), _WIDEST_MAP)
        needed = max(suited, facts_width(facts(result)))
        narrow = Columns(max(maps.scores.left, label_width(listed)), maps.width, needed)
        wider = min(max(_SHAPE * (_ELSE + upper + lower) - narrow.width, 0.0), (_STRETCH - 1) * needed)
        columns = Columns(narrow.labels, narrow.first, needed + wider)
        inner = columns.width - 2 * MARGIN
        texts, said = header.texts(result, inner), header.said(result, inner)
        told, foot = header.told(result, inner), header.foot(result, inner)
        texts_top = MARGIN + header.heading_room()
        said_top = texts_top + texts.height
        told_top = said_top + (said.height if said else 0.0)
        upper_top = told_top + header.told_height(told) + _BETWEEN + TITLE_ROOM
        lower_top = upper_top + upper + UNDER + _BETWEEN + TITLE_ROOM
        under = UNDER + _BEFORE_FOOT + (REMARK if shares_remark(result) else 0.0)
        page = sheet(columns.width, lower_top + lower + under + header.foot_height(foot) + MARGIN)
        header.draw_heading(page, result)
        texts.draw(page, texts_top)
        if said:
            said.draw(page, said_top)
        header.draw_told(page, told, told_top)
        maps.draw(page, result, columns.left, upper_top)
        panels.map_of(page, result, Place(columns.split, upper_top, columns.second, upper))
        panels.contributions(page, result, listed, Place(columns.left, lower_top, columns.first, lower))
        panels.in_numbers(page, result, Place(columns.split, lower_top, columns.second, lower))
        header.draw_foot(page, foot)
    return page.figure


ZOOM = 1.4
_LARGEST: Sizes = ((40.0, 36.0, 32.0), (32.0, 28.0), (28.0, 24.0), (22.0, 20.0), (18.0, 16.0, 14.0))
_WIDTH, _HEIGHT = 12.5, 4.8  # inches of a panel, at least
_BEFORE_PANEL, _BEFORE_SAID = 0.15, 0.5
_MOST_LARGE_SHARES = 17
_MOST_LARGER = 1.5  # of the numbers of the head, which are few

Draw = Callable[[Sheet, Report, Place], None]


def pages(result: Report) -> list[Figure]:
    """The text with the prediction, scores, weights, the map, contributions, the head in numbers.

    Of bare pages the first, which is nothing but text, is left out.
    """
    return list(named_pages(result).values())


def named_pages(result: Report) -> dict[str, Figure]:
    """The pages of a report, by what each is called where it is a file of its own."""
    with drawing():
        both = [_cells(result, "scaled"), _cells(result, "weights")]
        width = max(_WIDTH, *(laid.left + laid.width for laid in both))
        height = max(_HEIGHT, *(laid.above + laid.height for laid in both))
        first = {} if look_now().bare else {"text": _first(result, width, height)}
        return first | {name: _slide(result, draw, width, height) for name, draw in _PANELS.items()}


def _slide(result: Report, draw: Draw, width: float, height: float) -> Figure:
    texts = header.texts(result, width, header.SMALL)
    top = MARGIN + header.heading_room()
    page, place = _framed(result, top + texts.height + _BEFORE_PANEL + ZOOM * TITLE_ROOM, width, height)
    texts.draw(page, top)
    draw(page, result, place)
    return page.figure


def _first(result: Report, width: float, height: float) -> Figure:
    small = header.texts(result, width, header.SMALL)
    top = MARGIN + header.heading_room()
    page, _ = _framed(result, top + small.height + _BEFORE_PANEL + ZOOM * TITLE_ROOM, width, height)
    texts, said = header.texts(result, width, _LARGEST), header.said(result, width, ZOOM)
    gap = _BEFORE_SAID if said else 0.0
    needed = texts.height + gap + (said.height if said else 0.0)
    spare = height + small.height + _BEFORE_PANEL + TITLE_ROOM - needed
    top += max(spare, 0.0) * 0.4
    texts.draw(page, top)
    if said:
        said.draw(page, top + texts.height + gap)
    return page.figure


def _framed(result: Report, top: float, width: float, height: float) -> tuple[Sheet, Place]:
    foot = header.foot(result, width)
    page = sheet(width + 2 * MARGIN, top + height + UNDER + header.foot_height(foot) + MARGIN)
    header.draw_heading(page, result)
    header.draw_foot(page, foot)
    return page, Place(MARGIN, top, width, height)


def _cells(result: Report, show: Show) -> Cells:
    shown = panels.shown(result, show)
    return cells(shown, replace(ON_SLIDE, wide=_WIDTH - cells(shown, ON_SLIDE).left))


def _heat_map(show: Show) -> Draw:
    def draw(page: Sheet, result: Report, place: Place) -> None:
        laid = _cells(result, show)
        inner = Place(place.left + laid.left, place.top, place.width - laid.left, place.height)
        panels.heat_map(page, result, show, inner, laid, labelled=True, zoom=ZOOM)

    return draw


def _contributions(page: Sheet, result: Report, place: Place) -> None:
    listed = shares(result, _MOST_LARGE_SHARES)
    labels = label_width(listed, ZOOM)
    inner = Place(place.left + labels, place.top, place.width - labels, place.height - ZOOM * REMARK)
    panels.contributions(page, result, listed, inner, ZOOM)


def _in_numbers(page: Sheet, result: Report, place: Place) -> None:
    zoom = ZOOM * min(_MOST_LARGER, place.width / facts_width(facts(result), ZOOM))
    height = min(1.2 * panels.facts_height(result, zoom), place.height)
    panels.in_numbers(page, result, Place(place.left, place.top, place.width, height), zoom)


_PANELS: dict[str, Draw] = {
    "scores": _heat_map("scaled"),
    "weights": _heat_map("weights"),
    "map": partial(panels.map_of, zoom=ZOOM),
    "contributions": _contributions,
    "numbers": _in_numbers,
}
