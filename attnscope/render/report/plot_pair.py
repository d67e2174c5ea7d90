"""Scores and weights of one head side by side, with one set of row labels and one query outlined in both."""

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.patches import Rectangle

from attnscope.render.kit.numbers import parameter
from attnscope.render.kit.palette import FAINT, INK, INKS
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.layout import Grid, sparse, token_labels
from attnscope.vocabulary import Scaling

_LEAST_SIZE = 4.5  # points of a label
_WORD = 0.2  # inches for the word of an axis


@dataclass(frozen=True)
class Room:
    """Inches that a dozen rows and columns take; more of them may take up to `further` inches more.

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
ON_SLIDE = Room(wide=11.0, high=4.1, further=0.0, largest=1.2, size=11.0, most=10.0, narrowest=4.0)


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
        """Room for row labels and their word."""
        return max(text_width(label, self.row_size, True) for label in self.rows) + 0.05 + _WORD

    @property
    def above(self) -> float:
        """Room for column labels and their word."""
        return self.grid.above + 0.08 + _WORD


def cells(shown: Panel, room: Room) -> Cells:
    """Cells and labels for the heat maps of a head."""
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
    """Side of one of `count` cells of which a `dozen` inches are a dozen."""
    side = (dozen + room.further * min(max(count - 12, 0) / 48, 1.0)) / count
    return min(max(side, min(room.smallest, room.most / count)), room.largest)


def _font_size(side: float, room: Room) -> float:
    return min(max(side * 72 * 0.72, _LEAST_SIZE), room.size)


def _step(size: float, side: float) -> int:
    return max(1, round(line_height(size) * 0.8 / side + 0.49))


def draw_cells(shown: Panel, axes: Axes, bar: Axes, laid: Cells, query: int, *, labelled: bool) -> None:
    """A heat map with the row of `query` outlined, and its colour bar; rows are `labelled` or not."""
    drawn = draw_head(shown, axes, laid.grid)
    axes.set_xlabel(shown.column_word, size=7.5, color=FAINT, labelpad=3, loc="left")
    axes.set_ylabel("")
    if labelled:
        axes.set_ylabel(shown.row_word, size=7.5, color=FAINT, labelpad=3, loc="top")
        _row_labels(axes, laid, query)
    columns = shown.values.shape[1]
    outline = {
        "fill": False,
        "edgecolor": INKS["query"],
        "linewidth": 1.4,
        "clip_on": False,
        "zorder": 5,
    }
    axes.add_patch(Rectangle((0, query), columns, 1, label="query", **outline))  # type: ignore[arg-type]
    _colour_bar(drawn, bar, shown)


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


def _colour_bar(drawn: ScalarMappable, bar: Axes, shown: Panel) -> None:
    made = bar.figure.colorbar(drawn, cax=bar, orientation="horizontal")
    made.outline.set_visible(False)  # type: ignore[operator]
    places, texts = zip(*_marks(drawn, shown), strict=True)
    made.set_ticks(places, labels=texts)
    made.minorticks_off()
    bar.tick_params(labelsize=6.5, length=0, pad=2, colors=INK)
    ends = bar.get_xticklabels()
    ends[0].set_horizontalalignment("left")
    ends[-1].set_horizontalalignment("right")
