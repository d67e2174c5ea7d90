"""The panels of a report, each under its title: on one page together, or larger on a page of its own."""

from dataclasses import dataclass

import numpy as np

from attnscope.render.kit.figure.sheet import TITLE, Sheet
from attnscope.render.kit.numbers import counted, parameter
from attnscope.render.kit.palette import FAINT
from attnscope.render.kit.stage import Panel, Show, panel
from attnscope.render.kit.typesetting import text_width
from attnscope.render.kit.words.weights import sums_words
from attnscope.render.plot.map import draw as draw_map
from attnscope.render.report.plot_pair import Cells, draw_cells
from attnscope.render.report.plot_shares import (
    FACT_ROW,
    SHARE_ROW,
    draw_contributions,
    draw_facts,
    numbers_width,
)
from attnscope.render.sheets.map import DISCLAIMER, Map
from attnscope.render.sheets.report import Share, facts, query_name, shares_remark
from attnscope.results import HeadAttention, Report

UNDER, REMARK = 0.24, 0.12  # inches for what stands under a panel, and for a remark below that
_BAR = (1.8, 0.07)  # inches of a colour bar
_TALLEST = 1.8  # rows of bars that one bar may take where they are few
_NOTE = 6.5
_TITLE_ZOOM = 1.4  # at most


@dataclass(frozen=True)
class Place:
    """A rectangle in inches from the upper left corner of the page; the title stands above it."""

    left: float
    top: float
    width: float
    height: float


def heat_map(
    page: Sheet, result: Report, show: Show, place: Place, laid: Cells, *, labelled: bool, zoom: float = 1.0
) -> None:
    """Scores or weights. `place` is that of the cells and of the labels above them, without row labels."""
    weights = show == "weights"
    title, subtitle = ("what enters the softmax", scores_words(result.head))
    if weights:
        title, subtitle = ("weights: softmax of the scores", sums_words(result.weights))
    top = place.top + laid.above
    axes = page.axes(place.left, top, laid.width, laid.height)
    length, thick = _BAR
    bar = page.axes(place.left, top + laid.height + 0.09, min(laid.width, zoom * length), thick)
    row = result.row if weights else result.query
    draw_cells(shown(result, show), axes, bar, laid, row, labelled=labelled)
    page.title(place.left, place.top, title, subtitle, zoom)


def shown(result: Report, show: Show) -> Panel:
    """Weights as they are looked at; everything else by tokens."""
    return panel(result.weights if show == "weights" else result.head, show)


def map_of(page: Sheet, result: Report, place: Place, zoom: float = 1.0) -> None:
    """The map with the query linked to its strongest keys."""
    axes = page.axes(place.left, place.top, place.width, place.height)
    block = Map(result.projection, result.query)
    draw_map(block, axes)
    named = "t-SNE map of queries and keys" if result.projection.settled else "t-SNE map, not settled"
    longer = f"{named}: {block.title}"
    title = longer if text_width(longer, zoom * TITLE, bold=True) <= place.width else named
    page.title(place.left, place.top, title, block.says, zoom)
    page.write(place.left, place.top + place.height + 0.15, DISCLAIMER, _NOTE, color=FAINT)


def contributions(page: Sheet, result: Report, listed: list[Share], place: Place, zoom: float = 1.0) -> None:
    """What each key adds; the labels stand at the left of `place`, the numbers within it."""
    remark = shares_remark(result)
    subtitle = "share of the output vector, all keys together 100 %" if listed else remark
    title = f"how each key's value adds to the output of {query_name(result)}"
    page.title(place.left, place.top, title, subtitle, zoom)
    if listed:
        height = min(place.height, _TALLEST * zoom * SHARE_ROW * len(listed))
        axes = page.axes(place.left, place.top, place.width - numbers_width(zoom), height)
        draw_contributions(listed, axes, zoom)
        page.write(place.left, place.top + height + zoom * 0.31, remark, zoom * _NOTE, color=FAINT)


def in_numbers(page: Sheet, result: Report, place: Place, zoom: float = 1.0) -> None:
    """The statistics of the head, and how far its map can be trusted."""
    queries = counted(int(result.head.answered.sum()), "query")
    by = "" if result.view is None else ", all by tokens"
    subtitle = f"{queries}, the map, and the two together{by}"
    page.title(place.left, place.top, "the head in numbers", subtitle, min(zoom, _TITLE_ZOOM))
    draw_facts(facts(result), page.axes(place.left, place.top, place.width, place.height), zoom)


def facts_height(result: Report, zoom: float = 1.0) -> float:
    return zoom * FACT_ROW * len(facts(result))


def shares_height(listed: list[Share], zoom: float = 1.0) -> float:
    return zoom * SHARE_ROW * len(listed)


def scores_words(head: HeadAttention) -> str:
    """How the scores that enter the softmax come about."""
    words = f"scaled scores, q·k x {parameter(head.scale)}"
    if head.softcap is not None:
        words += f", capped at ±{parameter(head.softcap)}"
    elif not np.allclose(head.scaled[head.allowed], head.scale * head.scores[head.allowed], atol=1e-6):
        words += ", and what the model adds to them"
    return words
