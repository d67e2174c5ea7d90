"""One head and one of its queries on one landscape page.

From left to right and down: the sentence and what the model says to it; scores, weights and the map; what
each key adds to the output, and the head in numbers; the small print.
"""

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from attnscope.render import report_header as header
from attnscope.render.map_words import DISCLAIMER
from attnscope.render.numbers import counted
from attnscope.render.page import FAINT
from attnscope.render.panels import panel
from attnscope.render.plot_contributions import NUMBERS, draw_contributions
from attnscope.render.plot_contributions import ROW as SHARE_ROW
from attnscope.render.plot_facts import ROW as FACT_ROW
from attnscope.render.plot_facts import draw_facts, facts_width
from attnscope.render.plot_map import draw_map
from attnscope.render.plot_pair import BAR, Cells, cells, draw_cells
from attnscope.render.report_sheet import MARGIN, TITLE, TITLE_ROOM, Sheet, sheet
from attnscope.render.report_text import facts, query_name, shares, shares_remark
from attnscope.render.typesetting import drawing, text_width
from attnscope.results import Report

_GAP, _GUTTER, _BETWEEN = 0.3, 0.55, 0.26  # inches between heat maps, between columns, between rows
_MOST_SHARES = 9
_UNDER = 0.3  # inches for what stands under a heat map or a map
_LEAST_UPPER = 2.6
_SHAPE, _STRETCH = 1.5, 1.25  # of the page, width over height, and how far the map may widen for it


@dataclass(frozen=True)
class Columns:
    """Where the two columns of the page begin and how wide they are; `labels` is the room of row labels."""

    labels: float
    first: float
    second: float

    @property
    def split(self) -> float:
        return MARGIN + self.labels + self.first + _GUTTER

    @property
    def width(self) -> float:
        return self.split + self.second + MARGIN


def report_figure(result: Report) -> Figure:
    """The page of a report."""
    with drawing():
        laid = cells(panel(result.head, "weights"))
        upper = max(laid.above + laid.height, _LEAST_UPPER)
        lower = max(len(shares(result, _MOST_SHARES)) * SHARE_ROW, len(facts(result)) * FACT_ROW)
        columns = _columns(result, laid, 3.6 + upper + lower)
        inner = columns.width - 2 * MARGIN
        texts, said, foot = (
            header.texts(result, inner),
            header.said(result, inner),
            header.foot(result, inner),
        )
        answer_top = MARGIN + header.HEADING_ROOM + texts.height
        upper_top = answer_top + (said.height if said else 0.0) + _BETWEEN + TITLE_ROOM
        lower_top = upper_top + upper + _UNDER + _BETWEEN + TITLE_ROOM
        page = sheet(columns.width, lower_top + lower + _UNDER + header.foot_height(foot) + MARGIN)
        header.draw_heading(page, result)
        texts.draw(page, MARGIN + header.HEADING_ROOM)
        if said:
            said.draw(page, answer_top)
        _draw_pair(page, result, laid, columns, upper_top)
        _draw_map(page, result, columns, upper_top, upper)
        _draw_shares(page, result, columns, lower_top, lower)
        _draw_facts(page, result, columns, lower_top, lower)
        header.draw_foot(page, foot)
    return page.figure


def report_pages(result: Report) -> list[Figure]:
    return [report_figure(result)]


def _columns(result: Report, laid: Cells, height: float) -> Columns:
    """Columns as wide as their labels need; the second widens for a landscape page of about `height`."""
    names = [each.name for each in shares(result, _MOST_SHARES)]
    labels = max(laid.left, *(text_width(name, 8.0) + 0.06 for name in names), 0.0)
    points = len(result.projection.queries) + len(result.projection.keys)
    needed = max(min(2.6 + 0.45 * math.sqrt(points), 8.0), facts_width(facts(result)), 4.6)
    narrow = Columns(labels, 2 * laid.width + _GAP, needed)
    wider = min(max(_SHAPE * height - narrow.width, 0.0), (_STRETCH - 1) * needed)
    return Columns(labels, narrow.first, needed + wider)


def _draw_pair(page: Sheet, result: Report, laid: Cells, columns: Columns, top: float) -> None:
    head = result.head
    left = MARGIN + columns.labels
    sums = "every row sums to 1" if head.sink is None else "rows sum to less than 1: the sink takes the rest"
    for show, title, subtitle in (
        ("scaled", "what enters the softmax", f"scaled scores, q·k x {head.scale:.3g}"),
        ("weights", "weights: softmax of the scores", sums),
    ):
        shown = panel(head, show)  # type: ignore[arg-type]
        axes = page.axes(left, top + laid.above, laid.width, laid.height)
        bar = page.axes(left, top + laid.above + laid.height + 0.09, min(laid.width, 1.8), BAR)
        draw_cells(shown, axes, bar, laid, result.query, labelled=show == "scaled")
        page.title(left, top, title, subtitle)
        left += laid.width + _GAP


def _draw_map(page: Sheet, result: Report, columns: Columns, top: float, height: float) -> None:
    axes = page.axes(columns.split, top, columns.second, height)
    draw_map(result.projection, axes, result.query)
    named = axes.get_title(loc="left")
    axes.set_title(f"t-SNE map of queries and keys: {named}", loc="left", size=TITLE, weight="bold", pad=17)
    page.write(columns.split, top + height + 0.15, DISCLAIMER, 6.5, color=FAINT)


def _draw_shares(page: Sheet, result: Report, columns: Columns, top: float, height: float) -> None:
    left = MARGIN + columns.labels
    listed, remark = shares(result, _MOST_SHARES), shares_remark(result)
    subtitle = "share of the output vector, all keys together 100 %"
    subtitle = " · ".join([subtitle, *([remark] if remark else [])]) if listed else remark
    page.title(left, top, f"how each key's value adds to the output of {query_name(result)}", subtitle)
    if listed:
        axes = page.axes(left, top, columns.first - NUMBERS, height)
        draw_contributions(listed, axes)


def _draw_facts(page: Sheet, result: Report, columns: Columns, top: float, height: float) -> None:
    listed = facts(result)
    queries = counted(int(result.head.answered.sum()), "query")
    page.title(columns.split, top, "the head in numbers", f"{queries}, the map, and the two together")
    draw_facts(listed, page.axes(columns.split, top, columns.second, height))
