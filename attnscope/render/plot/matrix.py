"""A matrix on Axes: rows down, columns across, both under their names.

How large it is and what it leaves out where it is large is as for one stage of a head.
"""

from collections.abc import Iterator
from functools import partial

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle

from attnscope.render.kit.palette import CHOSEN, INK
from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.stage import Panel as Stage
from attnscope.render.kit.typesetting import tick
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.layout import Grid, grid, head_frame, sparse, tick_step
from attnscope.render.plot.panel import TICK, Panel, inches
from attnscope.render.sheet.blocks import Matrix
from attnscope.render.sheet.drawings import as_panel

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
    if isinstance(block.scale, Weights) and block.scale.told:
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
    if isinstance(block.scale, Weights):
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
