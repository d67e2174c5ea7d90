"""Scores and weights of one head side by side, with one set of row labels and one query outlined in both."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.patches import Rectangle

from attnscope.render.map_layout import INKS
from attnscope.render.page import FAINT, INK
from attnscope.render.panels import Panel
from attnscope.render.plot_head import Grid, draw_head, token_labels
from attnscope.render.typesetting import line_height, text_width

BAR = 0.07  # inches, the height of a colour bar
_LEAST_SIZE, _MOST_SIZE = 4.5, 8.5
_LEAST_WIDTH = 2.5  # inches of a heat map, so that its title has room
_LARGEST, _SMALLEST = 0.6, 0.07  # inches of a cell
_MOST = 7.0  # inches of a heat map whose cells are smaller still
_WORD = 0.2  # inches for the word of an axis


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
        tall = line_height(self.grid.size)
        if self.grid.rotated:
            tall = max(text_width(label, self.grid.size) for label in self.grid.columns)
        return tall + 0.08 + _WORD


def cells(shown: Panel, size: float = 1.0) -> Cells:
    """Cells for both heat maps of a head, `size` times as large as on a page that they share."""
    assert shown.column_tokens is not None
    rows, columns = token_labels(shown.row_tokens), token_labels(shown.column_tokens)
    high = _side(len(rows), size)
    wide = max(_side(len(columns), size), _LEAST_WIDTH / len(columns))
    column_size, row_size = _font_size(wide), _font_size(high)
    rotated = max(text_width(label, column_size) for label in columns) > wide - 0.05
    step = _step(column_size, wide) if rotated else 1
    laid = Grid(wide, high, [], columns, column_size, rotated, step)
    return Cells(laid, rows, row_size, _step(row_size, high))


def _side(count: int, size: float) -> float:
    """Side of a cell: few are large, the more there are the more room they get, very many share the most."""
    room = size * (3.0 + 1.5 * min(max(count - 12, 0) / 48, 1.0))
    side = min(room / count, size * _LARGEST)
    return side if side >= size * _SMALLEST else min(size * _SMALLEST, size * _MOST / count)


def _font_size(side: float) -> float:
    return min(max(side * 72 * 0.72, _LEAST_SIZE), _MOST_SIZE)


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
    outline = {"fill": False, "edgecolor": INKS["query"], "linewidth": 1.4, "clip_on": False, "zorder": 5}
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


def _colour_bar(drawn: ScalarMappable, bar: Axes, shown: Panel) -> None:
    """A flat one, with its ends and its middle as numbers."""
    made = bar.figure.colorbar(drawn, cax=bar, orientation="horizontal")
    made.outline.set_visible(False)  # type: ignore[operator]
    low, high = drawn.get_clim()
    made.set_ticks(np.linspace(low or 0.0, high or 0.0, 3).tolist())
    decimals = 1 if shown.show == "weights" or shown.extent >= 1 else 2
    made.set_ticklabels([f"{value:.{decimals}f}".replace("-0.0", "0.0") for value in made.get_ticks()])
    bar.tick_params(labelsize=6.5, length=0, pad=2, colors=INK)
    ends = bar.get_xticklabels()
    ends[0].set_ha("left")
    ends[-1].set_ha("right")
