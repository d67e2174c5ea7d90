"""The steps of a worked example as small heat maps in lanes: title, shape and numbers of each."""

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize

from attnscope.render.kit.labels import fit
from attnscope.render.kit.numbers import largest_magnitude, significant
from attnscope.render.kit.page import ink_on
from attnscope.render.kit.palette import FAINT, INK
from attnscope.render.kit.scale import by_root
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.plot.heat import AROUND, WEIGHTS, background, weight_norm
from attnscope.render.plot.panel import Panel
from attnscope.render.sheets.arithmetic import shape_words, texts
from attnscope.render.sheets.worked import Steps
from attnscope.results.worked import Axis, Step

TITLE, SMALL = 9.0, 7.0
_MOST_CELLS, _ROOMY = 16, 6  # cells of an axis that still have numbers and labels; few enough to be large
_WIDEST_LABEL = 24
_LONGEST_SIDE = 2.6
_PAD = 0.06
_WIDEST, _BETWEEN, _BELOW = 17.0, 0.35, 0.25  # inches: of a lane, between steps, between lanes
_LAST = ("output", "y", "values", "match", "found")


@dataclass(frozen=True, eq=False)
class Block:
    """A step laid out in inches: one cell, the room left of the cells and above them, and the whole.

    Only a `detailed` block has a number in every cell. Column labels stand upright where `rotated`.
    """

    step: Step
    detailed: bool
    cell: tuple[float, float]
    left: float
    top: float
    rotated: bool

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the cells together."""
        rows, columns = self.step.matrix.values.shape
        return columns * self.cell[0], rows * self.cell[1]

    @property
    def width(self) -> float:
        lines = [(title(self.step), TITLE, True), (subtitle(self), SMALL, False)]
        return max(self.left + self.size[0], *(text_width(*each) for each in lines))


def block(step: Step) -> Block:
    """The layout of `step` in which everything on it can be read."""
    rows, columns = step.matrix.values.shape
    detailed = max(rows, columns) <= _MOST_CELLS
    if detailed:
        cell = (0.5, 0.3) if max(rows, columns) <= _ROOMY else (0.36, 0.21)
    else:
        cell = (_side(columns), _side(rows))
    left = max((text_width(name, SMALL) for name in labels(step.matrix.rows)), default=0.0) + _PAD
    widest = max((text_width(name, SMALL) for name in labels(step.matrix.columns)), default=0.0)
    rotated = widest > cell[0] - 0.04
    above = widest if rotated else line_height(SMALL)
    top = line_height(TITLE) + line_height(SMALL) + (above if widest else 0.0) + 2 * _PAD
    return Block(step, detailed, cell, left, top, rotated)


def panel(steps: Steps) -> Panel:
    """As large as its steps, which stand in lanes."""
    lanes = _lanes([block(step) for step in steps.steps])
    width = max((sum(each.width + _BETWEEN for each in lane) - _BETWEEN for lane in lanes), default=0.1)
    height = sum(_height(lane) + _BELOW for lane in lanes) - _BELOW if lanes else 0.1

    def draw(axes: Axes) -> None:
        axes.set_axis_off()
        below = 0.0
        for lane in lanes:
            left, top = 0.0, max(each.top for each in lane)
            for each in lane:
                aligned = replace(each, top=top)
                draw_step(aligned, axes_on(axes, (left + each.left, below + top, *each.size)))
                left += each.width + _BETWEEN
            below += _height(lane) + _BELOW

    return Panel(steps.title, steps.says, width, height, left=0.0, above=0.0, below=0.0, draw=draw)


def _lanes(blocks: list[Block]) -> list[list[Block]]:
    lanes: list[list[Block]] = []
    for each in blocks:
        kind = _kind(each.step)
        fits = lanes and sum(one.width + _BETWEEN for one in lanes[-1]) + each.width <= _WIDEST
        if fits and _kind(lanes[-1][-1].step) == kind:
            lanes[-1].append(each)
        else:
            lanes.append([each])
    return lanes


def _kind(step: Step) -> int:
    """0 for what is given, 1 for its projections, 2 for all between a query and a key, 3 for a mistake."""
    if step.wrong:
        return 3
    between = step.key in _LAST or step.matrix.columns.word == "key"
    return 2 if between else 1 if step.formula else 0


def _height(lane: list[Block]) -> float:
    return max(each.top for each in lane) + max(each.size[1] for each in lane)


def _side(cells: int) -> float:
    return 0.16 if cells <= _MOST_CELLS else min(0.16, _LONGEST_SIDE / cells)


def labels(axis: Axis) -> list[str]:
    """Names along an axis, none along a long one."""
    if len(axis.names) > _MOST_CELLS:
        return []
    return [fit(name, _WIDEST_LABEL) for name in axis.names]


def title(step: Step) -> str:
    return f"{step.matrix.symbol} = {step.formula}" if step.formula else step.matrix.symbol


def subtitle(laid: Block) -> str:
    """The shape, and the range of the numbers where these are not written out."""
    shape = shape_words(laid.step)
    values = laid.step.matrix.values[np.isfinite(laid.step.matrix.values)]
    if laid.detailed or not values.size:
        return shape
    return f"{shape}, {significant(float(values.min()))} to {significant(float(values.max()))}"


def axes_on(canvas: Axes, inches: tuple[float, float, float, float]) -> Axes:
    """New axes upon `canvas`, which is only a place: left, top (downwards), width and height in inches."""
    canvas.set_axis_off()
    figure = canvas.get_figure(root=True)
    assert figure is not None
    (wide, high), corner = figure.get_size_inches(), canvas.get_position()
    left, top, width, height = inches
    bottom = corner.y1 - (top + height) / high
    return figure.add_axes((corner.x0 + left / wide, bottom, width / wide, height / high))


def draw_step(laid: Block, axes: Axes) -> QuadMesh:
    """Heat map, names, numbers and the two lines above; `axes` are as large as `laid.size`."""
    step = laid.step
    rows, columns = step.matrix.values.shape
    shown = np.isfinite(step.matrix.values) if step.allowed is None else step.allowed
    background((rows, columns), axes)
    extent = largest_magnitude(step.matrix.values) or 1.0
    outlined = laid.detailed
    mesh = axes.pcolormesh(
        np.ma.masked_where(~shown, step.matrix.values),
        cmap=WEIGHTS if step.weights else AROUND,
        norm=weight_norm(by_root()) if step.weights else Normalize(-extent, extent),
        edgecolors="white" if outlined else "none",
        linewidth=0.5 if outlined else 0.0,
        rasterized=not outlined,
    )
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    _ticks(laid, axes)
    _title(laid, axes)
    if laid.detailed:
        _numbers(laid, axes, mesh, shown)
    return mesh


def _ticks(laid: Block, axes: Axes) -> None:
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    rows, columns = labels(laid.step.matrix.rows), labels(laid.step.matrix.columns)
    axes.set_yticks([i + 0.5 for i in range(len(rows))], rows, size=SMALL, parse_math=False)
    rotation = 90 if laid.rotated else 0
    axes.set_xticks(
        [i + 0.5 for i in range(len(columns))], columns, size=SMALL, rotation=rotation, parse_math=False
    )
    axes.spines[:].set_visible(False)


def _title(laid: Block, axes: Axes) -> None:
    wide, high = laid.size
    lines = ((title(laid.step), TITLE, "bold", INK), (subtitle(laid), SMALL, "normal", FAINT))
    above = laid.top
    for text, size, weight, colour in lines:
        above -= line_height(size)
        place = (-laid.left / wide, 1 + (above + 0.25 * line_height(size)) / high)
        axes.text(
            *place, text, size=size, weight=weight, color=colour, transform=axes.transAxes, parse_math=False
        )


def _numbers(laid: Block, axes: Axes, mesh: QuadMesh, shown: np.ndarray) -> None:
    values = laid.step.matrix.values
    written = texts(values, 4 if max(values.shape) <= _ROOMY else 2)
    widest = max((text_width(text, 1.0) for text in written[shown]), default=1.0) or 1.0
    size = min(0.84 * laid.cell[0] / widest, 8.0)
    for row, column in np.argwhere(shown):
        colour = ink_on(mesh, values[row, column])
        text = written[row, column]
        axes.text(
            column + 0.5, row + 0.5, text, ha="center", va="center", size=size, color=colour, parse_math=False
        )
    for row, column in np.argwhere(~shown & np.isnan(values)):
        axes.text(column + 0.5, row + 0.5, "none", ha="center", va="center", size=size, color=FAINT)
