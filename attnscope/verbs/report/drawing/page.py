"""Draws a report of one query of one head on a landscape page.

From left to right and down: text and prediction; scores, weights and the map; contributions of keys and the
statistics of the head; the small print. `pages` draws each panel on a page of its own.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from attnscope.render.kit.page import MARGIN, TITLE_ROOM, Sheet, sheet
from attnscope.render.kit.stage import Show
from attnscope.render.kit.typesetting import Sizes, drawing
from attnscope.render.look import look_now
from attnscope.verbs.report.drawing import header, panels
from attnscope.verbs.report.drawing.header import Part
from attnscope.verbs.report.drawing.panels import ON_PAGE, ON_SLIDE, REMARK, UNDER, Place, cells, label_width
from attnscope.verbs.report.result import Report
from attnscope.verbs.report.sheet import facts, shares, shares_remark

__all__ = ["figure", "named_pages", "pages"]

_SHOWN: tuple[Show, Show] = ("scaled", "weights")
_GAP, _GUTTER, _BETWEEN = 0.3, 0.55, 0.3  # inches between heat maps, between columns, between rows
_BEFORE_FOOT = 0.08
_MOST_SHARES = 9
_LEAST_UPPER, _ELSE = 2.6, 3.6  # inches: least height of the upper panels; all but both rows of panels
_NARROWEST_MAP, _WIDEST_MAP = 4.6, 7.0
_SHAPE, _STRETCH = 1.5, 1.25  # width over height of the page; most widening of the map for it


def figure(result: Report) -> Figure:
    """Draw a report as one page."""
    with drawing():
        scores, weights = (cells(panels.shown(result, show), ON_PAGE) for show in _SHOWN)
        labelled = result.view is not None  # the weights have rows of their own where they are by words
        listed = shares(result, _MOST_SHARES)
        high = max(laid.above + laid.height for laid in (scores, weights))
        upper = max(high, _LEAST_UPPER)
        lower = max(panels.SHARE_ROW * len(listed), panels.FACT_ROW * len(facts(result)))
        left = MARGIN + max(scores.left, label_width(listed))
        second = scores.width + _GAP + (weights.left if labelled else 0.0)  # where the weights begin
        first = second + weights.width
        split = left + first + _GUTTER
        points = len(result.projection.queries) + len(result.projection.keys)
        suited = min(max(2.6 + 0.38 * math.sqrt(points), _NARROWEST_MAP), _WIDEST_MAP)
        needed = max(suited, panels.facts_width(facts(result)))
        wider = _SHAPE * (_ELSE + upper + lower) - (split + needed + MARGIN)
        other = needed + min(max(wider, 0.0), (_STRETCH - 1) * needed)
        width = split + other + MARGIN
        above, foot = _above(result, width), header.foot(result, width - 2 * MARGIN)
        upper_top = MARGIN + sum(part.height for part in above) + _BETWEEN + TITLE_ROOM
        lower_top = upper_top + upper + UNDER + _BETWEEN + TITLE_ROOM
        under = UNDER + _BEFORE_FOOT + (REMARK if shares_remark(result) else 0.0)
        page = sheet(width, lower_top + lower + under + foot.height + MARGIN)
        _draw(page, above, foot)
        places = (
            Place(left, upper_top, scores.width, high),
            Place(left + second, upper_top, weights.width, high),
        )
        panels.heat_map(page, result, "scaled", places[0], scores, labelled=True)
        panels.heat_map(page, result, "weights", places[1], weights, labelled=labelled)
        panels.map_of(page, result, Place(split, upper_top, other, upper))
        panels.contributions(page, result, listed, Place(left, lower_top, first, lower))
        panels.in_numbers(page, result, Place(split, lower_top, other, lower))
    return page.figure


def _above(result: Report, width: float) -> list[Part]:
    inner = width - 2 * MARGIN
    return [
        header.heading(result),
        *(each(result, inner) for each in (header.texts, header.said, header.told)),
    ]


def _draw(page: Sheet, above: Sequence[Part], foot: Part) -> None:
    top = MARGIN
    for part in above:
        part.draw(page, top)
        top += part.height
    foot.draw(page, page.height - 0.7 * MARGIN - foot.height)


ZOOM = 1.4  # enlargement of a page with one panel, letters and lines included
_LARGEST: Sizes = ((28.0, 25.0, 22.0), (22.0, 20.0), (20.0, 17.0), (15.5, 14.0), (13.0, 11.5, 10.0))
_SMALL: Sizes = ((9.3, 8.6), (8.6, 7.9))
_WIDTH, _HEIGHT = 8.9, 3.4  # least inches of a panel before enlargement
_BEFORE_PANEL, _BEFORE_SAID = 0.1, 0.35
_MOST_LARGE_SHARES = 17


def pages(result: Report) -> list[Figure]:
    """Draw a report as pages: text and prediction, scores, weights, map, contributions, statistics.

    With bare pages the first, which is only text, is left out.
    """
    return list(named_pages(result).values())


def named_pages(result: Report) -> dict[str, Figure]:
    """Pages of a report, by the name that each has as a separate file."""
    with drawing():
        stages = [panels.shown(result, show) for show in _SHOWN]
        laid = [cells(each, replace(ON_SLIDE, wide=_WIDTH - cells(each, ON_SLIDE).left)) for each in stages]
        width = max(_WIDTH, *(each.left + each.width for each in laid))
        height = max(_HEIGHT, *(each.above + each.height for each in laid))
        heading, small = header.heading(result), header.texts(result, width, _SMALL)
        listed, foot = shares(result, _MOST_LARGE_SHARES), header.foot(result, width)
        top = MARGIN + heading.height + small.height + _BEFORE_PANEL + TITLE_ROOM

        def slide(above: Sequence[Part], draw: Callable[[Sheet, Place], None]) -> Figure:
            page = sheet(width + 2 * MARGIN, top + height + UNDER + foot.height + MARGIN)
            if look_now().sides is None:
                page.figure.zoom = ZOOM  # type: ignore[attr-defined]
            _draw(page, above, foot)
            draw(page, Place(MARGIN, top, width, height))
            return page.figure

        def heat_map(at: int) -> Callable[[Sheet, Place], None]:
            def draw(page: Sheet, place: Place) -> None:
                inner = place.within(laid[at].left)
                panels.heat_map(page, result, _SHOWN[at], inner, laid[at], labelled=True)

            return draw

        def contributions(page: Sheet, place: Place) -> None:
            inner = place.within(label_width(listed), REMARK)
            panels.contributions(page, result, listed, inner)

        drawn = (
            {} if look_now().bare else {"text": slide(_first(result, width, top + height), lambda *_: None)}
        )
        above = [heading, small]
        return drawn | {
            "scores": slide(above, heat_map(0)),
            "weights": slide(above, heat_map(1)),
            "map": slide(above, lambda page, place: panels.map_of(page, result, place)),
            "contributions": slide(above, contributions),
            "numbers": slide(above, lambda page, place: panels.in_numbers(page, result, place)),
        }


def _first(result: Report, width: float, bottom: float) -> list[Part]:
    """Parts of the first page: the text as large as fits, and below it the prediction."""
    heading, texts, said = (
        header.heading(result),
        header.texts(result, width, _LARGEST),
        header.said(result, width),
    )
    gap = _BEFORE_SAID if said.height else 0.0
    spare = bottom - MARGIN - heading.height - texts.height - gap - said.height
    return [heading, Part(0.4 * max(spare, 0.0)), texts, Part(gap), said]
