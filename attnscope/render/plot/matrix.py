"""A matrix on Axes: rows down, columns across, both under their names.

How large it is and what it leaves out where it is large is as for one stage of a head.
"""

from functools import partial

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from attnscope.render.head.layout import head_frame
from attnscope.render.head.plot import draw_head
from attnscope.render.kit.figure.page import INK
from attnscope.render.kit.stage import Panel as Stage
from attnscope.render.plot.panel import Panel
from attnscope.render.sheet.blocks import Matrix
from attnscope.render.sheet.panel import as_panel

_MARKED = "#d95f02"


def panel(block: Matrix) -> Panel:
    """Numbers on their scale, with the labels of a head."""
    stage = as_panel(block)
    frame = head_frame(stage)
    return Panel(
        title=block.title,
        says=block.says,
        width=frame.width,
        height=frame.height,
        left=frame.left,
        above=frame.top,
        below=frame.bottom + 0.05,
        draw=partial(_draw, block, stage),
        least=frame.share,
    )


def _draw(block: Matrix, stage: Stage, axes: Axes) -> None:
    draw_head(stage, axes)
    for place in block.groups:
        axes.axhline(place, color=INK, linewidth=1.0)
        axes.axvline(place, color=INK, linewidth=1.0)
    for row, column in block.marked:
        frame = Rectangle((column, row), 1, 1, fill=False, edgecolor=_MARKED, linewidth=1.4, zorder=3)
        axes.add_patch(frame)
