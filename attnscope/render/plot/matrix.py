"""A matrix on Axes: rows down, columns across, both under the names of their tokens.

How large it is and what it leaves out where it is large is as for one stage of a head.
"""

from functools import partial

import numpy as np
from matplotlib.axes import Axes

from attnscope.render.head.layout import head_frame
from attnscope.render.head.plot import draw_head
from attnscope.render.kit.stage import Panel as Stage
from attnscope.render.plot.panel import Panel
from attnscope.render.sheet.blocks import Matrix


def panel(block: Matrix) -> Panel:
    """Numbers around 0, with the labels of a head."""
    stage = _stage(block)
    frame = head_frame(stage)
    return Panel(
        title=block.title,
        says=block.says,
        width=frame.width,
        height=frame.height,
        left=frame.left,
        above=frame.top,
        below=frame.bottom + 0.05,
        draw=partial(_draw, stage),
        least=frame.share,
    )


def _draw(stage: Stage, axes: Axes) -> None:
    draw_head(stage, axes)


def _stage(block: Matrix) -> Stage:
    visible = ~np.isnan(block.values)
    return Stage(
        show="scaled",
        row_word=block.words[0],
        row_tokens=block.rows,
        column_tokens=block.columns,
        values=block.values,
        visible=visible,
        answered=visible.any(axis=1),
        limit=block.scale.high,
    )
