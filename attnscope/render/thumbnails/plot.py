"""Layers by heads drawn on an Axes, every head as a small picture of its weights, all on one scale."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from attnscope.render.head.plot import WEIGHTS, weight_norm
from attnscope.render.kit.figure.page import INK, Frame
from attnscope.render.kit.scale import Scale
from attnscope.render.kit.typesetting import text_width
from attnscope.render.sheet.scale import OUTLINES
from attnscope.render.thumbnails.words import common_scale
from attnscope.results import Thumbnails, Verdict

_WIDTH, _MOST, _LEAST = 11.0, 0.95, 0.2  # inches: of the page about, of a head at most and at least
_LABEL = 8.0
_GAP = 0.07  # between two heads, of a head
_MASKED = "#ececec"


def side(result: Thumbnails) -> float:
    """Width and height in inches of a head with the gap beside it."""
    return max(min(_WIDTH / len(result.heads), _MOST), _LEAST)


def thumbnails_frame(result: Thumbnails) -> Frame:
    """The size of the axes and the room for `L11` and `H11` beside them."""
    cell, label = side(result), text_width(f"L{max(result.layers)}", _LABEL)
    return Frame(cell * len(result.heads), cell * len(result.layers), left=label + 0.4, top=0.5)


def draw_thumbnails(result: Thumbnails, axes: Axes, scale: Scale | None = None) -> AxesImage:
    """Every head from `(j, i)` to `(j + 1, i + 1)`, its first query on top and its first key at the left.

    Masked pairs are grey, heads that are not certified outlined. Returns what a colour bar is made for.
    """
    scale = scale or common_scale(result)
    norm, drawn = weight_norm(scale), None
    axes.set_xlim(0, len(result.heads))
    axes.set_ylim(len(result.layers), 0)
    for i, j in np.ndindex(result.weights.shape[:2]):
        left, right, top, bottom = j + _GAP / 2, j + 1 - _GAP / 2, i + _GAP / 2, i + 1 - _GAP / 2
        under = Rectangle((left, top), right - left, bottom - top, facecolor=_MASKED, zorder=0)
        axes.add_patch(under)
        drawn = axes.imshow(
            np.ma.masked_invalid(result.weights[i, j]),
            cmap=WEIGHTS,
            norm=norm,
            extent=(left, right, bottom, top),
            interpolation="nearest",
            aspect="auto",
            zorder=1,
        )
        _frame(axes, under, result.verdicts[i][j])
    assert drawn is not None, "there is at least one head"
    _ticks(result, axes)
    return drawn


def _frame(axes: Axes, under: Rectangle, verdict: Verdict) -> None:
    """A thin line around a head, so that a white one has an edge; a thick one where it is not certified."""
    certified = verdict is Verdict.CERTIFIED
    colour, width = ("#b8b8b8", 0.4) if certified else (OUTLINES[verdict], 1.5)
    (left, top), size = under.get_xy(), (under.get_width(), under.get_height())
    axes.add_patch(Rectangle((left, top), *size, fill=False, edgecolor=colour, linewidth=width, zorder=2))


def _ticks(result: Thumbnails, axes: Axes) -> None:
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=3, colors=INK)
    step = max(1, math.ceil(0.28 / side(result)))
    for axis, letter, numbers in ((axes.xaxis, "H", result.heads), (axes.yaxis, "L", result.layers)):
        places = range(0, len(numbers), step if letter == "H" else 1)
        axis.set_ticks([i + 0.5 for i in places], [f"{letter}{numbers[i]}" for i in places], size=_LABEL)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("head", size=9, color=INK, labelpad=5)
    axes.set_ylabel("layer", size=9, color=INK, labelpad=5)
    for spine in axes.spines.values():
        spine.set_visible(False)
