"""Draws the panels of a report, each under its title: heat maps, map, contributions, statistics.

Contributions of keys to one query's output are bars, hollow where a key pulls back.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attnscope.render.kit.numbers import counted, parameter, percent, weight
from attnscope.render.kit.page import RULE, TITLE, Sheet
from attnscope.render.kit.palette import FAINT, INK, INKS
from attnscope.render.kit.stage import Panel, Show, panel
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.kit.words import sums_words
from attnscope.render.plot.heat import Grid, draw_head, sparse, token_labels
from attnscope.render.plot.map import draw as draw_map
from attnscope.render.sheets.projection import DISCLAIMER, Map
from attnscope.results import HeadAttention
from attnscope.verbs.report.result import Report
from attnscope.verbs.report.sheet import Fact, Share, facts, query_name, shares_remark
from attnscope.vocabulary import Scaling

_LEAST_SIZE = 4.5  # points of a label
_WORD = 0.2  # inches for the word of an axis


@dataclass(frozen=True)
class Room:
    """Room of a heat map: inches of a dozen rows and columns; more may take up to `further` inches more.

    Cells are at most `largest` inches, and at least `smallest` unless the heat map would pass `most`. A
    heat map is at least `narrowest` inches wide, so that its title has room. `size` is in points, for the
    labels of large cells.
    """

    wide: float
    high: float
    further: float
    largest: float
    size: float
    smallest: float = 0.07
    most: float = 7.0
    narrowest: float = 2.5


ON_PAGE = Room(wide=3.2, high=2.85, further=1.5, largest=0.6, size=8.5)
# for a page that is then enlarged
ON_SLIDE = Room(
    wide=7.8, high=2.9, further=0.0, largest=0.86, size=7.9, smallest=0.05, most=7.1, narrowest=2.9
)


@dataclass(frozen=True)
class Cells:
    """The layout of both heat maps: a cell is `wide` by `high` inches, `row_size` is in points."""

    grid: Grid
    rows: list[str]
    row_size: float
    row_step: int

    @property
    def width(self) -> float:
        return self.grid.wide * len(self.grid.columns)

    @property
    def height(self) -> float:
        return self.grid.high * len(self.rows)

    @property
    def left(self) -> float:
        """Inches for row labels and the axis word."""
        return max(text_width(label, self.row_size, True) for label in self.rows) + 0.05 + _WORD

    @property
    def above(self) -> float:
        """Inches for column labels and the axis word."""
        return self.grid.above + 0.08 + _WORD


def cells(shown: Panel, room: Room) -> Cells:
    """Lay out cells and labels of a heat map within `room`."""
    assert shown.column_tokens is not None
    rows, columns = token_labels(shown.row_tokens), token_labels(shown.column_tokens)
    high = _side(len(rows), room.high, room)
    wide = max(_side(len(columns), room.wide, room), room.narrowest / len(columns))
    column_size, row_size = _font_size(wide, room), _font_size(high, room)
    rotated = max(text_width(label, column_size) for label in columns) > wide - 0.05
    step = _step(column_size, wide) if rotated else 1
    laid = Grid(wide, high, [], sparse(columns, step), column_size, rotated)
    return Cells(laid, rows, row_size, _step(row_size, high))


def _side(count: int, dozen: float, room: Room) -> float:
    """Side of one of `count` cells in inches, where a dozen cells take `dozen` inches."""
    side = (dozen + room.further * min(max(count - 12, 0) / 48, 1.0)) / count
    return min(max(side, min(room.smallest, room.most / count)), room.largest)


def _font_size(side: float, room: Room) -> float:
    return min(max(side * 72 * 0.72, _LEAST_SIZE), room.size)


def _step(size: float, side: float) -> int:
    return max(1, round(line_height(size) * 0.8 / side + 0.49))


def draw_cells(shown: Panel, axes: Axes, bar: Axes, laid: Cells, query: int, *, labelled: bool) -> None:
    """Draw a heat map with the row of `query` outlined, and its colour bar."""
    drawn = draw_head(shown, axes, laid.grid)
    axes.set_xlabel(shown.column_word, size=7.5, color=FAINT, labelpad=3, loc="left")
    axes.set_ylabel("")
    if labelled:
        axes.set_ylabel(shown.row_word, size=7.5, color=FAINT, labelpad=3, loc="top")
        _row_labels(axes, laid, query)
    columns = shown.values.shape[1]
    outline = {"fill": False, "edgecolor": INKS["query"], "linewidth": 1.4, "clip_on": False, "zorder": 5}
    axes.add_patch(Rectangle((0, query), columns, 1, label="query", **outline))  # type: ignore[arg-type]
    made = bar.figure.colorbar(drawn, cax=bar, orientation="horizontal")
    made.outline.set_visible(False)  # type: ignore[operator]
    places, texts = zip(*_marks(drawn, shown), strict=True)
    made.set_ticks(places, labels=texts)
    made.minorticks_off()
    bar.tick_params(labelsize=6.5, length=0, pad=2, colors=INK)
    ends = bar.get_xticklabels()
    ends[0].set_horizontalalignment("left")
    ends[-1].set_horizontalalignment("right")


def _row_labels(axes: Axes, laid: Cells, query: int) -> None:
    shown = sorted({*range(0, len(laid.rows), laid.row_step), query})
    if laid.row_step > 1:
        shown = [row for row in shown if row == query or abs(row - query) >= laid.row_step]
    axes.set_yticks(
        [row + 0.5 for row in shown], [laid.rows[row] for row in shown], size=laid.row_size, parse_math=False
    )
    chosen = axes.get_yticklabels()[shown.index(query)]
    chosen.set(color=INKS["query"], weight="bold")


def _marks(drawn: ScalarMappable, shown: Panel) -> list[tuple[float, str]]:
    if shown.show == "weights" and shown.scale.kind is Scaling.LOG:
        first, *decades, last = shown.scale.ticks
        middle = math.sqrt(first[0] * last[0])
        return [first, *sorted(decades, key=lambda each: abs(math.log(each[0] / middle)))[:1], last]
    if shown.show == "weights":
        return shown.scale.ticks
    low, high = (end or 0.0 for end in drawn.get_clim())
    places = np.linspace(low, high, 3).tolist()
    return [(place, parameter(place, 2)) for place in places]


UNDER, REMARK = 0.24, 0.12  # inches below a panel, and for a remark below that
_BAR = (1.8, 0.07)  # inches of a colour bar
_TALLEST = 1.8  # most rows that one bar takes where there are few bars
_NOTE = 6.5


@dataclass(frozen=True)
class Place:
    """Rectangle of a panel in inches from the upper left corner of the page, without its title."""

    left: float
    top: float
    width: float
    height: float

    def within(self, left: float, below: float = 0.0) -> "Place":
        """The rectangle without these inches at the left and at the bottom."""
        return Place(self.left + left, self.top, self.width - left, self.height - below)


def heat_map(page: Sheet, result: Report, show: Show, place: Place, laid: Cells, *, labelled: bool) -> None:
    """Draw scores or weights; `place` covers the cells and the labels above them, without row labels."""
    weights = show == "weights"
    title, subtitle = ("what enters the softmax", scores_words(result.head))
    if weights:
        title, subtitle = ("weights: softmax of the scores", sums_words(result.weights))
    top = place.top + laid.above
    axes = page.axes(place.left, top, laid.width, laid.height)
    length, thick = _BAR
    bar = page.axes(place.left, top + laid.height + 0.09, min(laid.width, length), thick)
    row = result.row if weights else result.query
    draw_cells(shown(result, show), axes, bar, laid, row, labelled=labelled)
    page.title(place.left, place.top, title, subtitle)


def shown(result: Report, show: Show) -> Panel:
    """Data of a heat map: weights as the report shows them, everything else by tokens."""
    return panel(result.weights if show == "weights" else result.head, show)


def map_of(page: Sheet, result: Report, place: Place) -> None:
    """Draw the t-SNE map with the query linked to its strongest keys."""
    axes = page.axes(place.left, place.top, place.width, place.height)
    block = Map(result.projection, result.query)
    draw_map(block, axes)
    named = "t-SNE map of queries and keys" if result.projection.settled else "t-SNE map, not settled"
    longer = f"{named}: {block.title}"
    title = longer if text_width(longer, TITLE, bold=True) <= place.width else named
    page.title(place.left, place.top, title, block.says)
    page.write(place.left, place.top + place.height + 0.15, DISCLAIMER, _NOTE, color=FAINT)


def contributions(page: Sheet, result: Report, listed: list[Share], place: Place) -> None:
    """Draw the contribution of each key; labels go to the left of `place`, numbers within it."""
    remark = shares_remark(result)
    subtitle = "share of the output vector, all keys together 100 %" if listed else remark
    title = f"how each key's value adds to the output of {query_name(result)}"
    page.title(place.left, place.top, title, subtitle)
    if listed:
        height = min(place.height, _TALLEST * SHARE_ROW * len(listed))
        axes = page.axes(place.left, place.top, place.width - NUMBERS_WIDTH, height)
        draw_contributions(listed, axes)
        page.write(place.left, place.top + height + 0.31, remark, _NOTE, color=FAINT)


def in_numbers(page: Sheet, result: Report, place: Place) -> None:
    """Draw the statistics of the head and of its map."""
    queries = counted(int(result.head.answered.sum()), "query")
    by = "" if result.view is None else ", all by tokens"
    subtitle = f"{queries}, the map, and the two together{by}"
    page.title(place.left, place.top, "the head in numbers", subtitle)
    listed = facts(result)
    height = min(1.2 * FACT_ROW * len(listed), place.height)
    draw_facts(listed, page.axes(place.left, place.top, place.width, height))


def scores_words(head: HeadAttention) -> str:
    """Words for the scores that enter the softmax: scale, cap, and added terms."""
    words = f"scaled scores, q·k x {parameter(head.scale)}"
    if head.softcap is not None:
        words += f", capped at ±{parameter(head.softcap)}"
    elif not np.allclose(head.scaled[head.allowed], head.scale * head.scores[head.allowed], atol=1e-6):
        words += ", and what the model adds to them"
    return words


SHARE_ROW, FACT_ROW = 0.19, 0.25  # inches for one bar, and for one fact
_SHARE, _REST, _DOT = INKS["key"], "#9aa4b1", "#111111"
_SIZE, _VALUE, _SMALL, _TICKS = 8.0, 10.5, 7.5, 7.0  # points
_WEIGHT_AT, _SHARE_AT = 92.0, 48.0  # points from the right edge of the axes to the end of each column
_BETWEEN_COLUMNS = 0.14
NUMBERS_WIDTH = (_WEIGHT_AT + 1.5) / 72  # inches that the two columns of numbers take


def label_width(listed: Sequence[Share]) -> float:
    """Inches of the widest label at the left of the axes."""
    return max((text_width(each.name, _SIZE) for each in listed), default=0.0) + 0.06


def draw_contributions(listed: Sequence[Share], axes: Axes) -> None:
    """Draw a bar for each share and a dot for its weight on one scale, with numbers beside them."""
    rows, given = np.arange(len(listed)), [each.share for each in listed]
    weights = [each.weight for each in listed]
    inks = [_REST if each.key is None else _SHARE for each in listed]
    fills = [ink if share >= 0 else "white" for ink, share in zip(inks, given, strict=True)]
    axes.barh(rows, given, 0.62, color=fills, edgecolor=inks, linewidth=0.9, label="share", zorder=2)
    axes.plot(
        weights, rows, "o", color=_DOT, mec="white", mew=0.7, ms=5.0, label="weight", zorder=3, clip_on=False
    )
    low, high = min(0.0, *given, *weights), max(*given, *weights)
    room = 0.03 * (high - low)
    low, high = low - (room if low < -room else 0), high + room
    ticks = [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    axes.set(xlim=(low, high), ylim=(len(listed) - 0.4, -0.6))
    axes.set_xticks(ticks, [percent(tick) for tick in ticks])
    axes.tick_params(axis="x", labelsize=_TICKS, length=0, pad=3, colors=FAINT)
    axes.grid(axis="x", color="#e8e8e8", linewidth=0.7, zorder=0)
    axes.axvline(0, color=INK, linewidth=0.8, zorder=2.5)
    axes.spines[:].set_visible(False)
    axes.set_yticks(rows, [each.name for each in listed], size=_SIZE, parse_math=False)
    axes.tick_params(axis="y", length=0, pad=4)
    heads = [(-0.6, "■ share", _SHARE_AT, _SHARE, "normal"), (-0.6, "● weight", _WEIGHT_AT, _DOT, "normal")]
    cells = list[tuple[float, str, float, str, str]]()
    for row, (each, label) in enumerate(zip(listed, axes.get_yticklabels(), strict=True)):
        label.set_color(FAINT if each.key is None else _SHARE)
        ink = FAINT if each.key is None else INK
        cells.append((row, percent(each.share), _SHARE_AT, ink, "bold"))
        cells.append((row, weight(each.weight, 3), _WEIGHT_AT, ink, "normal"))
    for written, size, up in ((cells, _SIZE, 0), (heads, _SMALL, 7)):
        for at, text, place, ink, boldness in written:
            axes.annotate(
                text, (1, at), (place, up), size=size, color=ink, weight=boldness, va="center", ha="right",
                xycoords=("axes fraction", "data"), textcoords="offset points",
            )  # fmt: skip


def facts_width(listed: Sequence[Fact]) -> float:
    """Inches that the table of statistics needs."""
    meaning = max(text_width(each.meaning, _SMALL) for each in listed)
    return _second_column(listed) + _BETWEEN_COLUMNS + meaning


def draw_facts(listed: Sequence[Fact], axes: Axes) -> None:
    """Draw one row for each statistic, with thin rules between rows."""
    width = axes.get_window_extent().width / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    values = _second_column(listed)
    axes.set(xlim=(0, width), ylim=(len(listed), 0))
    axes.set_axis_off()
    for row, each in enumerate(listed):
        for place, text, size, style in (
            (0.0, each.name, _SIZE, {"color": INK}),
            (values, each.value, _VALUE, {"color": INK, "weight": "bold", "ha": "right"}),
            (values + _BETWEEN_COLUMNS, each.meaning, _SMALL, {"color": FAINT}),
        ):
            at = {"size": size, "va": "center_baseline", "parse_math": False}
            axes.text(place, row + 0.5, text, **at, **style)  # type: ignore[arg-type]
    axes.hlines(range(len(listed) + 1), 0, width, colors=RULE, linewidth=0.7)


def _second_column(listed: Sequence[Fact]) -> float:
    name = max(text_width(each.name, _SIZE) for each in listed)
    return name + _BETWEEN_COLUMNS + max(text_width(each.value, _VALUE, True) for each in listed)
