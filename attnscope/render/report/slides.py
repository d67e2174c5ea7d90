"""A report with one panel a page: each page has the same size, the heading, the text and the small print."""

from collections.abc import Callable
from dataclasses import replace

from matplotlib.figure import Figure

from attnscope.render.kit.figure.sheet import MARGIN, TITLE_ROOM, Sheet, sheet
from attnscope.render.kit.sentence import Sizes
from attnscope.render.kit.stage import Show
from attnscope.render.kit.typesetting import drawing
from attnscope.render.look import look_now
from attnscope.render.report import header as header
from attnscope.render.report import panels as panels
from attnscope.render.report.panels import REMARK, UNDER, Place
from attnscope.render.report.plot_contributions import label_width
from attnscope.render.report.plot_facts import facts_width
from attnscope.render.report.plot_pair import ON_SLIDE, Cells, cells
from attnscope.render.report.words import facts, shares
from attnscope.results import Report

ZOOM = 1.4
_LARGEST: Sizes = ((40.0, 36.0, 32.0), (32.0, 28.0), (28.0, 24.0), (22.0, 20.0), (18.0, 16.0, 14.0))
_WIDTH, _HEIGHT = 12.5, 4.8  # inches of a panel, at least
_BETWEEN, _BEFORE_SAID = 0.15, 0.5
_MOST_SHARES = 17
_MOST_LARGER = 1.5  # of the numbers of the head, which are few

Draw = Callable[[Sheet, Report, Place], None]


def report_pages(result: Report) -> list[Figure]:
    """The text with the prediction, scores, weights, the map, contributions, the head in numbers.

    Of bare pages the first, which is nothing but text, is left out.
    """
    return list(report_panels(result).values())


def report_panels(result: Report) -> dict[str, Figure]:
    """The same pages by what they are called where each is a file of its own."""
    with drawing():
        both = [_cells(result, "scaled"), _cells(result, "weights")]
        width = max(_WIDTH, *(laid.left + laid.width for laid in both))
        height = max(_HEIGHT, *(laid.above + laid.height for laid in both))
        first = {} if look_now().bare else {"text": _first(result, width, height)}
        return first | {name: _slide(result, draw, width, height) for name, draw in _PANELS.items()}


def _slide(result: Report, draw: Draw, width: float, height: float) -> Figure:
    """A page with the text small above the panel, which has `width` by `height` inches."""
    texts = header.texts(result, width, header.SMALL)
    top = MARGIN + header.heading_room()
    page, place = _framed(result, top + texts.height + _BETWEEN + ZOOM * TITLE_ROOM, width, height)
    texts.draw(page, top)
    draw(page, result, place)
    return page.figure


def _first(result: Report, width: float, height: float) -> Figure:
    """A page with the text as large as it can be, and the prediction."""
    small = header.texts(result, width, header.SMALL)
    top = MARGIN + header.heading_room()
    page, _ = _framed(result, top + small.height + _BETWEEN + ZOOM * TITLE_ROOM, width, height)
    texts, said = header.texts(result, width, _LARGEST), header.said(result, width, ZOOM)
    gap = _BEFORE_SAID if said else 0.0
    spare = (
        height + small.height + _BETWEEN + TITLE_ROOM - texts.height - gap - (said.height if said else 0.0)
    )
    top += max(spare, 0.0) * 0.4
    texts.draw(page, top)
    if said:
        said.draw(page, top + texts.height + gap)
    return page.figure


def _framed(result: Report, top: float, width: float, height: float) -> tuple[Sheet, Place]:
    """A page with heading and small print, and the place of its panel."""
    foot = header.foot(result, width)
    page = sheet(width + 2 * MARGIN, top + height + UNDER + header.foot_height(foot) + MARGIN)
    header.draw_heading(page, result)
    header.draw_foot(page, foot)
    return page, Place(MARGIN, top, width, height)


def _cells(result: Report, show: Show) -> Cells:
    """Cells that, with the labels of their rows, take the whole width."""
    shown = panels.shown(result, show)
    return cells(shown, replace(ON_SLIDE, wide=_WIDTH - cells(shown, ON_SLIDE).left))


def _heat_map(show: Show) -> Draw:
    def draw(page: Sheet, result: Report, place: Place) -> None:
        laid = _cells(result, show)
        inner = Place(place.left + laid.left, place.top, place.width - laid.left, place.height)
        panels.heat_map(page, result, show, inner, laid, labelled=True, zoom=ZOOM)

    return draw


def _map(page: Sheet, result: Report, place: Place) -> None:
    panels.map_of(page, result, place, ZOOM)


def _contributions(page: Sheet, result: Report, place: Place) -> None:
    listed = shares(result, _MOST_SHARES)
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
    "map": _map,
    "contributions": _contributions,
    "numbers": _in_numbers,
}
