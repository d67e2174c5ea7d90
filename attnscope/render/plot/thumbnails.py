"""Heads as small pictures of their weights on Axes: layers down, heads across, all on one scale."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from attnscope.render.kit.palette import INK, OUTLINES
from attnscope.render.kit.typesetting import text_width
from attnscope.render.plot.grid import colour_bar
from attnscope.render.plot.heat import WEIGHTS, weight_norm
from attnscope.render.plot.panel import TICK, Panel, only_spines
from attnscope.render.sheet.heads import HeadMatrices

_WIDTH, _MOST, _LEAST = 11.0, 0.95, 0.2  # inches: of all heads about, of one at most and at least
_GAP = 0.07  # between two heads, of a head
_MASKED, _EDGE = "#ececec", "#b8b8b8"


def panel(block: HeadMatrices) -> Panel:
    """As large as each head can be read, with the names of layers and heads beside them."""
    cell = _side(block)
    said = [block.says]
    said += ["grey: masked"] if np.isnan(block.values).any() else []
    said += ["outlined: not certified"] if _doubted(block) else []
    return Panel(
        title=block.title,
        says=" · ".join(filter(None, said)),
        width=cell * len(block.heads),
        height=cell * len(block.layers),
        left=text_width(f"L{max(block.layers)}", TICK) + 0.1,
        above=0.2,
        below=0.4,
        draw=lambda axes: draw(block, axes),
    )


def _side(block: HeadMatrices) -> float:
    """Inches of a head with the gap beside it."""
    return max(min(_WIDTH / len(block.heads), _MOST), _LEAST)


def _doubted(block: HeadMatrices) -> bool:
    return any(each.stands_out for row in block.verdicts for each in row)


def draw(block: HeadMatrices, axes: Axes) -> None:
    """Every head from `(j, i)` to `(j + 1, i + 1)`, its first query on top and its first key at the left."""
    norm, drawn = weight_norm(block.scale), None
    axes.set(xlim=(0, len(block.heads)), ylim=(len(block.layers), 0))
    for i, j in np.ndindex(block.values.shape[:2]):
        left, right, top, bottom = j + _GAP / 2, j + 1 - _GAP / 2, i + _GAP / 2, i + 1 - _GAP / 2
        drawn = axes.imshow(
            np.ma.masked_invalid(block.values[i, j]), cmap=WEIGHTS, norm=norm, zorder=1, aspect="auto",
            extent=(left, right, bottom, top), interpolation="nearest",
        )  # fmt: skip
        verdict = block.verdicts[i][j]
        edge, width = (OUTLINES[verdict], 1.5) if verdict.stands_out else (_EDGE, 0.4)
        place = (left, top), 1 - _GAP, 1 - _GAP
        axes.add_patch(Rectangle(*place, facecolor=_MASKED, zorder=0))
        axes.add_patch(Rectangle(*place, fill=False, edgecolor=edge, linewidth=width, zorder=2))
    assert drawn is not None, "there is at least one head"
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    across = range(0, len(block.heads), max(1, math.ceil(0.28 / _side(block))))
    axes.set_xticks([j + 0.5 for j in across], [f"H{block.heads[j]}" for j in across], size=TICK)
    down = range(len(block.layers))
    axes.set_yticks([i + 0.5 for i in down], [f"L{block.layers[i]}" for i in down], size=TICK)
    only_spines(axes)
    colour_bar(drawn, axes, block.scale.ticks)
