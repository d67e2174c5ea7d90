"""One stage of a head drawn on an Axes: rows from top to bottom, columns from left to right.

`draw_head` may be used on any Axes; how large that should be is `head_frame`'s answer.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, PowerNorm
from matplotlib.patches import Rectangle

from attnscope.render.kit.cells import cell_texts
from attnscope.render.kit.numbers import pooled
from attnscope.render.kit.page import ink_on
from attnscope.render.kit.palette import CHOSEN, FAINT, INK, RAMPS, SIGNED, WEIGHT, Scale
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.stage import Panel as Stage
from attnscope.render.kit.typesetting import text_width, tick
from attnscope.render.plot.layout import (
    BAND,
    MOST_NUMBERS,
    Grid,
    draw_sections,
    grid,
    head_frame,
    sparse,
    tick_step,
)
from attnscope.render.plot.panel import TICK, Panel, inches
from attnscope.render.sheet.blocks import Matrix, as_panel
from attnscope.tokens import Section
from attnscope.vocabulary import Scaling

_LEAST_NUMBER = 4.5  # points, on axes that are smaller than they should be
_LEAST_CELL = 0.2  # inches, of a cell with a number so small
_WORD_SIZE = 9.0
_MOST_OUTLINED = 4000
# colour maps
WEIGHTS, AROUND = (LinearSegmentedColormap.from_list(name, RAMPS["light"][name]) for name in (WEIGHT, SIGNED))


def draw_head(shown: Stage, axes: Axes, laid: Grid | None = None) -> QuadMesh:
    """Colour map, labels, axis words and, where they fit, numbers. Returns what a colour bar is made for.

    `laid` is the layout where it is not that of `grid`. What is drawn of weights is the weights themselves,
    on a scale of each row's own their share of its largest.
    """
    laid = laid or grid(shown)
    background(shown.values.shape, axes)
    values = drawn_values(shown)
    mesh = _mesh(shown, values, axes, laid.block)
    _ticks(axes, laid)
    axes.set_xlabel(shown.column_word, size=_WORD_SIZE, color=INK, labelpad=5)
    axes.set_ylabel(shown.row_word, size=_WORD_SIZE, color=INK, labelpad=5)
    axes.xaxis.set_label_position("top")
    if max(shown.values.shape) <= MOST_NUMBERS:
        _numbers(shown, axes, mesh, laid)
    for row in np.flatnonzero(~shown.answered):
        place = (shown.values.shape[1] / 2, row + 0.5)
        axes.text(*place, shown.unanswered, ha="center", va="center", size=laid.size, color=FAINT)
    return mesh


def drawn_values(shown: Stage) -> Float[np.ndarray, "row column"]:
    """What the colours are of: NaN where a cell is masked, weights on a scale of each row's own as shares."""
    values = np.where(shown.visible, shown.values, np.nan)
    by_row = shown.show == "weights" and shown.scale.kind is Scaling.ROW
    return values / shown.scale.tops[:, None] if by_row else values


def norm_of(shown: Stage) -> Normalize:
    """From what is drawn to a shade: of weights as their scale has it, of all else even around 0."""
    if shown.show == "weights":
        return weight_norm(shown.scale)
    extent = shown.extent or 1.0
    return Normalize(-extent, extent)


def weight_norm(scale: Scale) -> Normalize:
    """The shades of `scale` as matplotlib has them."""
    if scale.kind is Scaling.LOG:
        return LogNorm(scale.least, scale.top, clip=True)
    if scale.kind is Scaling.SQRT:
        return PowerNorm(0.5, 0.0, scale.top, clip=True)
    return Normalize(0.0, 1.0 if scale.kind is Scaling.ROW else scale.top)


def _mesh(shown: Stage, values: Float[np.ndarray, "row column"], axes: Axes, block: int) -> QuadMesh:
    rows, columns = values.shape
    outlined = rows * columns <= _MOST_OUTLINED
    across = block if shown.column_tokens is not None else 1
    mesh = axes.pcolormesh(
        np.append(np.arange(0, columns, across), columns),
        np.append(np.arange(0, rows, block), rows),
        np.ma.masked_invalid(pooled(values, block, across)),
        cmap=WEIGHTS if shown.show == "weights" else AROUND,
        norm=norm_of(shown),
        edgecolors="white" if outlined else "none",
        linewidth=0.4 if outlined else 0.0,
        rasterized=not outlined,
    )
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    return mesh


def background(shape: tuple[int, ...], axes: Axes) -> None:
    """Hatching that shows wherever no cell is drawn."""
    rows, columns = shape
    style = {"facecolor": "#f3f3f3", "edgecolor": "#d8d8d8", "hatch": "/////", "linewidth": 0, "zorder": 0}
    axes.add_patch(Rectangle((0, 0), columns, rows, **style))  # type: ignore[arg-type]


def _ticks(axes: Axes, laid: Grid) -> None:
    length, pad = (2.5, 2) if laid.marked else (0, 3)
    axes.tick_params(length=length, width=0.6, pad=pad, colors=INK)
    sides: tuple[tuple[Literal["x", "y"], float, tuple[Section, ...]], ...] = (
        ("x", laid.wide, laid.across),
        ("y", laid.high, laid.down),
    )
    for which, cell, sections in sides:
        if sections:
            draw_sections(axes, which, sections, cell)
            axes.tick_params(axis=which, pad=pad + BAND)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False)
    for axis, labels in ((axes.yaxis, laid.rows), (axes.xaxis, laid.columns)):
        named = [i for i, label in enumerate(labels) if label]
        axis.set_ticks([i + 0.5 for i in named], [labels[i] for i in named], size=laid.size, parse_math=False)
    for text in axes.get_xticklabels():
        text.set_rotation(90 if laid.turned(text.get_text()) else 0)
    axes.spines[:].set_visible(False)


def _numbers(shown: Stage, axes: Axes, mesh: QuadMesh, laid: Grid) -> None:
    texts = cell_texts(shown, 2 if shown.extent < 10 else 1)
    widest = max((text_width(text, 1.0) for row in texts for text in row), default=1.0) or 1.0
    across = axes.get_window_extent().width / axes.get_figure(root=True).dpi / shown.values.shape[1]  # type: ignore[union-attr]
    size = min(0.82 * min(laid.wide, across) / widest, 7.5)
    if size < _LEAST_NUMBER and (across < laid.wide or laid.wide < _LEAST_CELL):
        return
    values = drawn_values(shown)
    for row, column in np.argwhere(shown.visible):
        colour = ink_on(mesh, values[row, column])
        axes.text(
            column + 0.5, row + 0.5, texts[row][column], ha="center", va="center", size=size, color=colour
        )


_MAP = 1.6  # inches of a map
_BAR, _BAR_GAP, _BAR_ROOM, _LEAST_BAR, _TALLEST_BAR = 0.16, 0.12, 0.95, 1.5, 4.0  # inches


def panel(block: Matrix) -> Panel:
    """Numbers on their scale, with the labels of a head; a map of numbered rows and columns is small."""
    stage = as_panel(block)
    laid = _small(stage) if block.pictured else grid(stage)
    frame = head_frame(stage, laid)
    return Panel(
        title="" if block.title and block.measured.startswith(block.title) else block.title,
        says=" · ".join(each for each in (block.says, *_legend(block, stage, laid)) if each),
        width=frame.width,
        height=frame.height,
        left=frame.left,
        above=frame.top,
        below=max(0.05, _LEAST_BAR - frame.height if block.measured else 0.0),
        right=_BAR_ROOM if block.measured else 0.0,
        draw=partial(_draw, block, stage, laid),
        least=frame.share,
    )


def _legend(block: Matrix, stage: Stage, laid: Grid) -> Iterator[str]:
    if not block.measured:
        return
    if stage.column_tokens is not None and (stage.masked or (~stage.answered).any()):
        yield f"hatched: {'masked' if stage.masked or block.unanswered == NO_KEY else NOTHING_LEFT}"
    if isinstance(block.scale, Scale) and block.scale.told:
        yield f"colours: {block.scale.told}"
    if laid.block > 1:
        yield f"each dot: the strongest of {laid.block} x {laid.block}"


def _small(stage: Stage) -> Grid:
    rows, columns = stage.values.shape
    cell = _MAP / max(rows, columns)
    down, across = (sparse([str(i) for i in range(count)], tick_step(cell)) for count in (rows, columns))
    return Grid(cell, cell, down, across, size=TICK, rotated=False)


def colour_bar(block: Matrix, mesh: QuadMesh, axes: Axes) -> None:
    """What the colours stand for, at the right of the matrix."""
    wide, high = inches(axes)
    tall = min(max(high, _LEAST_BAR), _TALLEST_BAR) / high
    beside = axes.inset_axes((1 + _BAR_GAP / wide, 1 - tall, _BAR / wide, tall))
    bar = axes.get_figure(root=True).colorbar(mesh, cax=beside)  # type: ignore[union-attr]
    beside.set_label("<colorbar>")
    beside.yaxis.set_major_formatter(tick)
    bar.outline.set_visible(False)  # type: ignore[operator]
    beside.tick_params(labelsize=7, length=2, colors=INK)
    beside.set_ylabel(block.measured.replace(": ", "\n", 1), size=8, color=INK)  # the scale below
    if isinstance(block.scale, Scale):
        places, texts = zip(*block.scale.ticks, strict=True)
        bar.set_ticks(places, labels=texts)
        bar.minorticks_off()


def _draw(block: Matrix, stage: Stage, laid: Grid, axes: Axes) -> None:
    mesh = draw_head(stage, axes, laid)
    if block.measured:
        colour_bar(block, mesh, axes)
    for word in (axes.xaxis.label, axes.yaxis.label):
        word.set_fontsize(min(word.get_fontsize(), laid.size + 2))
    for place in block.groups:
        axes.axhline(place, color=INK, linewidth=1.0)
        axes.axvline(place, color=INK, linewidth=1.0)
    for row, column in block.marked:
        frame = Rectangle((column, row), 1, 1, fill=False, edgecolor=CHOSEN, linewidth=1.4, zorder=3)
        axes.add_patch(frame)
