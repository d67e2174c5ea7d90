"""One stage of a head drawn on an Axes: rows from top to bottom, columns from left to right.

`draw_head` may be used on any Axes; how large that should be is `head_frame`'s answer.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle

from attnscope.render.kit.cells import cell_texts
from attnscope.render.kit.labels import fit
from attnscope.render.kit.page import FAINT, INK, Frame, ink_on
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.tokens import Tokens

_MOST_NUMBERS = 16
_WIDEST_LABEL = 32
_WORD_SIZE = 9.0
_LEAST_SIZE = 4.5
_MOST_OUTLINED = 4000


@dataclass(frozen=True)
class Grid:
    """Size of a cell in inches, the labels of both sides and their font size in points.

    Labels stand upright (`rotated`) above columns that are narrower than the widest of them. Where cells
    are smaller than letters can be, only every `step`-th row and column is labelled.
    """

    wide: float
    high: float
    rows: list[str]
    columns: list[str]
    size: float
    rotated: bool
    step: int


def grid(shown: Panel) -> Grid:
    """The layout that keeps every label of `shown` legible."""
    rows = token_labels(shown.row_tokens)
    columns = token_labels(shown.column_tokens) if shown.column_tokens else _dimensions(shown.values.shape[1])
    high = _side(max(len(rows), len(columns) if shown.column_tokens else 0))
    wide = high if shown.column_tokens else min(0.44, 9 / len(columns))
    size = min(max(high * 72 * 0.7, _LEAST_SIZE), 9.0)
    rotated = max((text_width(label, size) for label in columns), default=0) > wide - 0.06
    step = max(1, round(line_height(size) * 0.85 / high + 0.49))
    return Grid(wide, high, rows, columns, size, rotated and shown.column_tokens is not None, step)


def _side(cells: int) -> float:
    """Side of a cell: generous for a few tokens, small enough for many to stay on one page."""
    return 0.44 if cells <= _MOST_NUMBERS else 0.25 if cells <= 30 else 0.17 if cells <= 64 else 11 / cells


def token_labels(tokens: Tokens) -> list[str]:
    """Unique labels; one that has to be cut carries its position instead of its end."""
    cut = [fit(label, _WIDEST_LABEL) for label in tokens.labels]
    whole = zip(cut, tokens.labels, strict=True)
    return [label if label == full else f"{label}@{i}" for i, (label, full) in enumerate(whole)]


def _dimensions(count: int) -> list[str]:
    """Dimension numbers, every one of a few, every eighth of many."""
    every = 1 if count <= _MOST_NUMBERS else 8
    return [str(i) if i % every == 0 else "" for i in range(count)]


def head_frame(shown: Panel) -> Frame:
    """The size of the axes for `shown` and the room that its labels need."""
    laid = grid(shown)
    above = max((text_width(label, laid.size) for label in laid.columns), default=0) if laid.rotated else 0.0
    return Frame(
        width=laid.wide * shown.values.shape[1],
        height=laid.high * shown.values.shape[0],
        left=max((text_width(label, laid.size) for label in laid.rows), default=0) + 0.4,
        top=(above if laid.rotated else line_height(laid.size)) + 0.32,
    )


def draw_head(shown: Panel, axes: Axes, laid: Grid | None = None) -> QuadMesh:
    """Colour map, labels, axis words and, where they fit, numbers. Returns what a colour bar is made for.

    `laid` is the layout where it is not that of `grid`.
    """
    laid = laid or grid(shown)
    _background(shown, axes)
    mesh = _mesh(shown, axes)
    _ticks(axes, laid)
    axes.set_xlabel(shown.column_word, size=_WORD_SIZE, color=INK, labelpad=5)
    axes.set_ylabel(shown.row_word, size=_WORD_SIZE, color=INK, labelpad=5)
    axes.xaxis.set_label_position("top")
    if max(shown.values.shape) <= _MOST_NUMBERS:
        _numbers(shown, axes, mesh, laid)
    for row in np.flatnonzero(~shown.answered):
        place = (shown.values.shape[1] / 2, row + 0.5)
        axes.text(*place, shown.unanswered, ha="center", va="center", size=laid.size, color=FAINT)
    return mesh


def _mesh(shown: Panel, axes: Axes) -> QuadMesh:
    rows, columns = shown.values.shape
    outlined = rows * columns <= _MOST_OUTLINED
    signed = shown.show != "weights"
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(np.where(shown.visible, shown.values, np.nan)),
        cmap="RdBu" if signed else "Blues",
        vmin=-(shown.extent or 1.0) if signed else 0.0,
        vmax=(shown.extent or 1.0) if signed else 1.0,
        edgecolors="white" if outlined else "none",
        linewidth=0.4 if outlined else 0.0,
        rasterized=not outlined,
    )
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    return mesh


def _background(shown: Panel, axes: Axes) -> None:
    """Hatching that shows wherever no cell is drawn."""
    rows, columns = shown.values.shape
    style = {"facecolor": "#f3f3f3", "edgecolor": "#d8d8d8", "hatch": "/////", "linewidth": 0, "zorder": 0}
    axes.add_patch(Rectangle((0, 0), columns, rows, **style))  # type: ignore[arg-type]


def _ticks(axes: Axes, laid: Grid) -> None:
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=3, colors=INK)
    rows = range(0, len(laid.rows), laid.step)
    columns = [i for i in range(0, len(laid.columns), laid.step if laid.rotated else 1) if laid.columns[i]]
    axes.set_yticks([i + 0.5 for i in rows], [laid.rows[i] for i in rows], size=laid.size, parse_math=False)
    axes.set_xticks(
        [i + 0.5 for i in columns],
        [laid.columns[i] for i in columns],
        size=laid.size,
        rotation=90 if laid.rotated else 0,
        parse_math=False,
    )
    for spine in axes.spines.values():
        spine.set_visible(False)


def _numbers(shown: Panel, axes: Axes, mesh: QuadMesh, laid: Grid) -> None:
    """The number of each cell in black or white, whichever is easier to read on its colour."""
    texts = cell_texts(shown, 2 if shown.extent < 10 else 1)
    widest = max((text_width(text, 1.0) for row in texts for text in row), default=1.0) or 1.0
    size = min(0.82 * laid.wide / widest, 7.5)
    for row, column in np.argwhere(shown.visible):
        colour = ink_on(mesh, shown.values[row, column])
        axes.text(
            column + 0.5, row + 0.5, texts[row][column], ha="center", va="center", size=size, color=colour
        )
