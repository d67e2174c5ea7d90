"""A matrix on Axes: rows down, columns across, both under their names.

How large it is and what it leaves out where it is large is as for one stage of a head.
"""

from functools import partial

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from attnscope.render.kit.figure.page import INK
from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.kit.stage import Panel as Stage
from attnscope.render.plot.grid import colour_bar
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.layout import Grid, grid, head_frame, sparse, tick_step
from attnscope.render.plot.panel import TICK, Panel
from attnscope.render.sheet.blocks import Matrix
from attnscope.render.sheet.panel import as_panel

_MARKED, _MAP = "#d95f02", 1.6  # inches of a map


def panel(block: Matrix) -> Panel:
    """Numbers on their scale, with the labels of a head; a map of numbered rows and columns is small."""
    stage = as_panel(block)
    laid = _small(stage) if block.pictured else grid(stage)
    frame = head_frame(stage, laid)
    return Panel(
        title=block.title,
        says=block.says,
        width=frame.width,
        height=frame.height,
        left=frame.left,
        above=frame.top,
        below=frame.bottom + (0.4 if _barred(block) else 0.05),
        draw=partial(_draw, block, stage, laid),
        least=frame.share,
    )


def _barred(block: Matrix) -> bool:
    """Whether a colour bar stands below it, with the ends of its scale."""
    return isinstance(block.scale, Weights) and not block.pictured


def _small(stage: Stage) -> Grid:
    """As large as a thumbnail, with as many numbers of rows and columns as have room."""
    rows, columns = stage.values.shape
    cell = _MAP / max(rows, columns)
    down, across = (sparse([str(i) for i in range(count)], tick_step(cell)) for count in (rows, columns))
    return Grid(cell, cell, down, across, size=TICK, rotated=False)


def _draw(block: Matrix, stage: Stage, laid: Grid, axes: Axes) -> None:
    mesh = draw_head(stage, axes, laid)
    if isinstance(block.scale, Weights) and _barred(block):
        (_, low), *_, (_, high) = block.scale.ticks
        colour_bar(mesh, axes, (low, high))
    for word in (axes.xaxis.label, axes.yaxis.label):
        word.set_fontsize(min(word.get_fontsize(), laid.size + 2))
    for place in block.groups:
        axes.axhline(place, color=INK, linewidth=1.0)
        axes.axvline(place, color=INK, linewidth=1.0)
    for row, column in block.marked:
        frame = Rectangle((column, row), 1, 1, fill=False, edgecolor=_MARKED, linewidth=1.4, zorder=3)
        axes.add_patch(frame)
