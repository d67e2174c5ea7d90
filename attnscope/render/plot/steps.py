"""Steps of a worked example as small heat maps in lanes: title, shape and numbers of each."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize

from attnscope.render.kit.cells import fit
from attnscope.render.kit.numbers import largest_magnitude, significant
from attnscope.render.kit.page import ink_on
from attnscope.render.kit.palette import FAINT, INK, by_root
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.plot.heat import AROUND, WEIGHTS, background, weight_norm
from attnscope.render.plot.panel import Panel
from attnscope.render.sheet.steps import Steps, shape_words, texts
from attnscope.results.steps import Axis, Step

TITLE, SMALL = 9.0, 7.0
_MOST_CELLS, _ROOMY = 16, 6  # cells of an axis that still have numbers and labels; few enough to be large
_WIDEST_LABEL = 24
_LONGEST_SIDE = 2.6
_PAD = 0.06
_WIDEST, _BETWEEN, _BELOW = 17.0, 0.35, 0.25  # inches: of a lane, between steps, between lanes
_LAST = ("output", "y", "values", "match", "found")


@dataclass(frozen=True, eq=False)
class _Laid:
    """A step laid out in inches: `size` of all cells, of one `cell`, room `left` of them and above (`top`).

    If `detailed`, every cell has a number. Column labels are upright if `rotated`. `kind` is 0 for inputs, 1
    for projections, 2 for steps between queries and keys, 3 for a mistake.
    """

    step: Step
    detailed: bool
    cell: tuple[float, float]
    size: tuple[float, float]
    left: float
    top: float
    rotated: bool
    kind: int

    @property
    def lines(self) -> tuple[tuple[str, float, str, str], ...]:
        """Title and shape lines: text, size, weight, colour; with the range where numbers are not drawn."""
        symbol, formula, shape = self.step.matrix.symbol, self.step.formula, shape_words(self.step)
        values = self.step.matrix.values[np.isfinite(self.step.matrix.values)]
        if not self.detailed and values.size:
            shape += f", {significant(float(values.min()))} to {significant(float(values.max()))}"
        title = f"{symbol} = {formula}" if formula else symbol
        return (title, TITLE, "bold", INK), (shape, SMALL, "normal", FAINT)

    @property
    def width(self) -> float:
        told = (text_width(text, size, weight == "bold") for text, size, weight, _ in self.lines)
        return max(self.left + self.size[0], *told)


def _laid(step: Step) -> _Laid:
    rows, columns = shape = step.matrix.values.shape
    if detailed := max(shape) <= _MOST_CELLS:
        cell = (0.5, 0.3) if max(shape) <= _ROOMY else (0.36, 0.21)
    else:
        sides = [0.16 if cells <= _MOST_CELLS else min(0.16, _LONGEST_SIDE / cells) for cells in shape]
        cell = sides[1], sides[0]
    left, widest = (
        max((text_width(name, SMALL) for name in _labels(axis)), default=0.0)
        for axis in (step.matrix.rows, step.matrix.columns)
    )
    rotated = widest > cell[0] - 0.04
    above = (widest if rotated else line_height(SMALL)) if widest else 0.0
    top = line_height(TITLE) + line_height(SMALL) + above + 2 * _PAD
    between = step.key in _LAST or step.matrix.columns.word == "key"
    kind = 3 if step.wrong else 2 if between else 1 if step.formula else 0
    return _Laid(step, detailed, cell, (columns * cell[0], rows * cell[1]), left + _PAD, top, rotated, kind)


def panel(steps: Steps) -> Panel:
    """Panel of the steps, laid out in lanes."""
    lanes: list[list[_Laid]] = []
    for each in map(_laid, steps.steps):
        fits = lanes and sum(one.width + _BETWEEN for one in lanes[-1]) + each.width <= _WIDEST
        if fits and lanes[-1][-1].kind == each.kind:
            lanes[-1].append(each)
        else:
            lanes.append([each])
    tops = [max(each.top for each in lane) for lane in lanes]
    highs = [top + max(each.size[1] for each in lane) for top, lane in zip(tops, lanes, strict=True)]
    width = max((sum(each.width + _BETWEEN for each in lane) - _BETWEEN for lane in lanes), default=0.1)
    height = sum(high + _BELOW for high in highs) - _BELOW if lanes else 0.1

    def draw(axes: Axes) -> None:
        axes.set_axis_off()
        below = 0.0
        for lane, top, high in zip(lanes, tops, highs, strict=True):
            left = 0.0
            for each in lane:
                _draw(each, top, _axes_on(axes, (left + each.left, below + top, *each.size)))
                left += each.width + _BETWEEN
            below += high + _BELOW

    return Panel(steps.title, steps.says, width, height, draw)


def _labels(axis: Axis) -> list[str]:
    return [] if len(axis.names) > _MOST_CELLS else [fit(name, _WIDEST_LABEL) for name in axis.names]


def _axes_on(canvas: Axes, inches: tuple[float, float, float, float]) -> Axes:
    """New axes over `canvas` at left, top (downwards), width and height in inches."""
    canvas.set_axis_off()
    figure = canvas.get_figure(root=True)
    assert figure is not None
    (wide, high), corner = figure.get_size_inches(), canvas.get_position()
    left, top, width, height = inches
    bottom = corner.y1 - (top + height) / high
    return figure.add_axes((corner.x0 + left / wide, bottom, width / wide, height / high))


def _draw(laid: _Laid, top: float, axes: Axes) -> None:
    step, values = laid.step, laid.step.matrix.values
    shown = np.isfinite(values) if step.allowed is None else step.allowed
    background(values.shape, axes)
    extent = largest_magnitude(values) or 1.0
    mesh = axes.pcolormesh(
        np.ma.masked_where(~shown, values),
        cmap=WEIGHTS if step.weights else AROUND,
        norm=weight_norm(by_root()) if step.weights else Normalize(-extent, extent),
        edgecolors="white" if laid.detailed else "none",
        linewidth=0.5 if laid.detailed else 0.0,
        rasterized=not laid.detailed,
    )
    axes.set_xlim(0, values.shape[1])
    axes.set_ylim(values.shape[0], 0)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    rows, columns = _labels(step.matrix.rows), _labels(step.matrix.columns)
    axes.set_yticks([i + 0.5 for i in range(len(rows))], rows, size=SMALL, parse_math=False)
    rotation = 90 if laid.rotated else 0
    places = [i + 0.5 for i in range(len(columns))]
    axes.set_xticks(places, columns, size=SMALL, rotation=rotation, parse_math=False)
    axes.spines[:].set_visible(False)
    (wide, high), above, whole = laid.size, top, axes.transAxes
    for text, size, weight, colour in laid.lines:
        above -= line_height(size)
        place = (-laid.left / wide, 1 + (above + 0.25 * line_height(size)) / high)
        axes.text(*place, text, size=size, weight=weight, color=colour, transform=whole, parse_math=False)
    if laid.detailed:
        _numbers(laid, axes, mesh, shown)


def _numbers(laid: _Laid, axes: Axes, mesh: QuadMesh, shown: np.ndarray) -> None:
    values = laid.step.matrix.values
    written = texts(values, 4 if max(values.shape) <= _ROOMY else 2)
    widest = max((text_width(text, 1.0) for text in written[shown]), default=1.0) or 1.0
    size = min(0.84 * laid.cell[0] / widest, 8.0)
    marked = [
        (*place, written[place], ink_on(mesh, values[place])) for place in map(tuple, np.argwhere(shown))
    ]
    marked += [(*place, "none", FAINT) for place in map(tuple, np.argwhere(~shown & np.isnan(values)))]
    for row, column, text, colour in marked:
        place = column + 0.5, row + 0.5
        axes.text(*place, text, ha="center", va="center", size=size, color=colour, parse_math=False)
