"""Heat map of one stage of a head on Axes: rows from top to bottom, columns from left to right.

Up to 64 tokens all are named, of more every tenth or so, with its position, beside a mark; cells are then
whole dots, and of very many several are drawn as one block. Chat messages are lines beside the axes, with
their roles.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, PowerNorm
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from attnscope.render.kit.cells import cell_texts, clusters, fit, of_sentences, settled
from attnscope.render.kit.numbers import pooled
from attnscope.render.kit.page import Frame, ink_on
from attnscope.render.kit.palette import CHOSEN, FAINT, INK, RAMPS, SIGNED, WEIGHT, Scale
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.stage import Panel as Stage
from attnscope.render.kit.typesetting import line_height, text_width, tick
from attnscope.render.plot.panel import TICK, Panel, inches
from attnscope.render.sheet.blocks import Matrix, Named, as_panel
from attnscope.tokens import Section, Tokens
from attnscope.vocabulary import Scaling

BAND = 11.0  # points between a matrix and the names of its rows or columns
MOST_NUMBERS = 16  # rows and columns of a heat map with a number in every cell
MOST_NAMED = 64  # rows and columns that are all named
_WIDEST_LABEL, _WIDEST_TICK = 32, 14  # characters
_WIDEST_SENTENCE = 48  # characters of a sentence in the margin
_WIDEST_NAME = 62  # of a row that is no token
_LEAST_SIZE, _LARGEST_SIZE, _TICK_SIZE = 4.5, 9.0, 6.5  # points
_TICK_EVERY = 0.15  # inches at least
_DOTS = 200  # in an inch
_LARGEST_SIDE, _LEAST_BLOCK = 2200, 2  # dots, of a whole heat map and of a block of its cells


@dataclass(frozen=True)
class Grid:
    """Layout of a heat map: cell size in inches, labels of both sides and their font size in points.

    A label is "" where none is shown. Labels are upright (`rotated`) above columns narrower than the widest
    of them. With very many tokens, `block` rows and columns are drawn as one. `down` and `across` are the
    chat messages along the sides.
    """

    wide: float
    high: float
    rows: list[str]
    columns: list[str]
    size: float
    rotated: bool
    block: int = 1
    down: tuple[Section, ...] = ()
    across: tuple[Section, ...] = ()

    @property
    def above(self) -> float:
        """Inches of the column labels, and of message lines below them."""
        turned = [label for label in self.columns if self.turned(label)]
        labels = max([line_height(self.size), *(text_width(label, self.size) for label in turned)])
        return labels + (BAND / 72 if self.across else 0.0)

    @property
    def left(self) -> float:
        """Inches of the row labels, and of message lines beside them."""
        labels = max((text_width(label, self.size) for label in self.rows), default=0.0)
        return labels + (BAND / 72 if self.down else 0.0)

    @property
    def marked(self) -> bool:
        """True where only some tokens are named, beside a tick mark."""
        return max(len(self.rows), len(self.columns)) > MOST_NAMED

    def turned(self, label: str) -> bool:
        """True where a label is rotated; a single character never is."""
        return self.rotated and len(clusters(label)) > 1


def grid(shown: Stage) -> Grid:
    """The layout that keeps every label of `shown` legible."""
    pairs = shown.column_tokens is not None
    rows, columns = shown.values.shape
    longest = max(rows, columns if pairs else 0)
    block = max(1, math.ceil(longest * _LEAST_BLOCK / _LARGEST_SIDE))
    high = side(longest)
    wide = high if pairs else _dimension(columns)
    large = longest <= MOST_NAMED and isinstance(shown.row_tokens, Tokens)
    size = min(max(high * 72 * 0.7, _LEAST_SIZE), _LARGEST_SIZE) if large else _TICK_SIZE
    named = _margin(shown.row_tokens) or _names(shown.row_tokens, high)
    across = _across(shown, columns, wide)
    messages = _sections(shown.row_tokens), _sections(shown.column_tokens)
    return Grid(wide, high, named, across, size, pairs and not _fits(across, size, wide), block, *messages)


def _sections(tokens: object) -> tuple[Section, ...]:
    return tokens.sections if isinstance(tokens, Tokens) else ()


def _dimension(count: int) -> float:
    """Width in inches of one dimension of a vector: whole dots where there are many."""
    return min(0.44, 9 / count) if count <= MOST_NAMED else max(9 * _DOTS // count, 1) / _DOTS


def _fits(labels: list[str], size: float, wide: float) -> bool:
    return max((text_width(label, size) for label in labels), default=0.0) <= wide - 0.06


def side(cells: int) -> float:
    """Side of a cell in inches: generous for a few tokens, small enough for many to fit on one page."""
    if cells <= MOST_NAMED:
        return 0.44 if cells <= MOST_NUMBERS else 0.25 if cells <= 30 else 0.17
    block = math.ceil(cells * _LEAST_BLOCK / _LARGEST_SIDE)
    return _LARGEST_SIDE // math.ceil(cells / block) / block / _DOTS


def _names(tokens: Named, cell: float) -> list[str]:
    if len(tokens) <= MOST_NAMED:
        return token_labels(tokens)
    every = tick_step(cell)
    named = zip(tokens.positions, tokens.names, strict=True)
    labels = [f"{position} {fit(name, _WIDEST_TICK)}".strip() for position, name in named]
    return sparse(labels, every)


def _margin(tokens: Named) -> list[str]:
    if not of_sentences(tokens) or len(tokens) > MOST_NAMED:
        return []
    assert isinstance(tokens, Tokens), "only these are of sentences"
    numbered = zip(tokens.positions, tokens.in_full, strict=True)
    return [f"{number} {fit(text, _WIDEST_SENTENCE)}" for number, text in numbered]


def _across(shown: Stage, columns: int, wide: float) -> list[str]:
    tokens = shown.column_tokens
    if tokens is None:
        every = 1 if columns <= MOST_NUMBERS else 8
        return sparse([str(i) for i in range(columns)], every)
    if shown.columns_apart and (texts := _margin(tokens)):
        return texts
    if not of_sentences(tokens):
        return _names(tokens, wide)
    return sparse([str(number) for number in tokens.positions], tick_step(wide) if wide < _TICK_EVERY else 1)


def tick_step(cell: float) -> int:
    """Step between labels that leaves room for each, for cells of this size: 1, 2, 5, 10, 20, 50, ..."""
    unit = 1
    while True:
        for step in (unit, 2 * unit, 5 * unit):
            if step * cell >= _TICK_EVERY:
                return step
        unit *= 10


def sparse(labels: list[str], every: int) -> list[str]:
    """Every `every`-th label, "" in place of the others."""
    return [label if i % every == 0 else "" for i, label in enumerate(labels)]


def token_labels(tokens: Named) -> list[str]:
    """Unique labels; a token's label that has to be cut gets its position behind it."""
    if not isinstance(tokens, Tokens):
        return [fit(label, _WIDEST_NAME) for label in tokens.labels]
    cut = [fit(label, _WIDEST_LABEL) for label in tokens.labels]
    whole = zip(cut, tokens.labels, strict=True)
    return [label if label == full else f"{label}@{i}" for i, (label, full) in enumerate(whole)]


def head_frame(shown: Stage, laid: Grid | None = None) -> Frame:
    """Size of the axes for `shown`, and the room around them for labels."""
    laid = laid or grid(shown)
    rows, columns = shown.values.shape
    left, top = laid.left + 0.4, laid.above + 0.32
    return Frame(laid.wide * columns, laid.high * rows, left=left, top=top, share=_share(laid))


def _share(laid: Grid) -> float:
    """Smallest share of the axes' size at which labels do not touch; 1 where cells are whole dots."""
    if laid.marked:
        return 1.0
    letters = line_height(laid.size)
    widest = max((text_width(label, laid.size) for label in laid.columns), default=0.0) + 0.06
    return min(1.0, max(letters / laid.high, (letters if laid.rotated else widest) / laid.wide))


_LINE, _NAME, _SIZE = 2.5, 6.5, 6.0  # points: from the matrix, and of the letters
_GAP = 0.12  # of a cell, between two messages


def draw_sections(axes: Axes, which: Literal["x", "y"], sections: Sequence[Section], cell: float) -> None:
    """Draw a line along each message's stretch at one side, with its name where that fits."""
    dots = axes.get_figure(root=True).dpi_scale_trans  # type: ignore[union-attr]

    def off(points: float) -> ScaledTranslation:
        across, up = (0.0, points / 72) if which == "x" else (-points / 72, 0.0)
        return ScaledTranslation(across, up, dots)

    along = axes.transData
    edge = blended_transform_factory(*((along, axes.transAxes) if which == "x" else (axes.transAxes, along)))
    side = 1.0 if which == "x" else 0.0
    for each in sections:
        start, end = each.first + _GAP, each.first + each.count - _GAP
        middle, room = (start + end) / 2, (end - start) * cell
        ends = ((start, end), (side, side)) if which == "x" else ((side, side), (start, end))
        axes.plot(*ends, color=FAINT, linewidth=1.6, clip_on=False, transform=edge + off(_LINE), zorder=4)
        name = settled(each.name)
        name = next(
            (cut for most in range(len(name), 2, -1) if text_width(cut := fit(name, most), _SIZE) <= room), ""
        )
        place = (middle, side) if which == "x" else (side, middle)
        axes.text(
            *place, name, transform=edge + off(_NAME), size=_SIZE, color=INK, ha="center", va="center",
            rotation=0 if which == "x" else 90, parse_math=False,
        )  # fmt: skip


_LEAST_NUMBER = 4.5  # points, on axes that are smaller than they should be
_LEAST_CELL = 0.2  # inches, of a cell with a number so small
_WORD_SIZE = 9.0
_MOST_OUTLINED = 4000
# colour maps
WEIGHTS, AROUND = (LinearSegmentedColormap.from_list(name, RAMPS["light"][name]) for name in (WEIGHT, SIGNED))


def draw_head(shown: Stage, axes: Axes, laid: Grid | None = None) -> QuadMesh:
    """Draw heat map, labels, axis words and, where they fit, numbers; returns the mesh for a colour bar.

    `laid` replaces the layout of `grid`. With row scaling the colours show shares of each row's largest
    weight.
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
    """Values that the colours show: NaN where masked; shares of the row's largest with row scaling."""
    values = np.where(shown.visible, shown.values, np.nan)
    by_row = shown.show == "weights" and shown.scale.kind is Scaling.ROW
    return values / shown.scale.tops[:, None] if by_row else values


def norm_of(shown: Stage) -> Normalize:
    """Norm from drawn values to shades: the scale's for weights, else linear around 0."""
    if shown.show == "weights":
        return weight_norm(shown.scale)
    extent = shown.extent or 1.0
    return Normalize(-extent, extent)


def weight_norm(scale: Scale) -> Normalize:
    """The matplotlib norm of a `scale`."""
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
    """Draw hatching, which shows wherever no cell is drawn."""
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
    """Panel of a matrix: heat map with labels; a pictured map of numbered rows and columns is small."""
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
    """Draw the colour bar at the right of the matrix."""
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
