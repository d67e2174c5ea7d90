"""The map of a head on Axes: a circle for every query, a square for every key, each with its token.

The axes have no unit and therefore no ticks.
"""

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from attnscope.render.kit.numbers import counted
from attnscope.render.kit.palette import FAINT, INK, INKS
from attnscope.render.plot.map_labels import LEGEND, Plane, draw_labels, plane_on
from attnscope.render.plot.panel import Panel
from attnscope.render.sheets.map import Map

LINK_WIDTH = 8.0  # points of a link of weight 1
_MARKERS = {"query": "o", "key": "s"}
_LINK_INK, _RING_INK, _EDGE_INK = "#a3a8b0", "#111111", "#c9ccd1"
_WORDS = 7.0


def panel(block: Map) -> Panel:
    """As large as its labels need."""
    places = np.concatenate([block.result.queries, block.result.keys])
    width = float(np.clip(2.8 + 0.52 * np.sqrt(len(places)), 5.9, 11.0))
    spread = np.ptp(places, axis=0)
    shape = float(np.clip(spread[1] / (spread[0] or 1.0), 0.6, 1.0))
    return Panel(
        title=block.title,
        says=block.says,
        width=width,
        height=shape * width + LEGEND,
        left=0.0,
        above=0.0,
        below=0.0,
        draw=partial(draw, block),
        least=0.5,
    )


def draw(block: Map, axes: Axes) -> None:
    """Markers, labels and legend; links as wide as their weights, which the labels of their keys tell."""
    plane = plane_on(axes, block.result)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=_EDGE_INK, linewidth=0.6)
    _draw_links(block, axes)
    for side in ("query", "key"):
        _draw_markers(block, axes, plane, side)
    _draw_legend(block, axes, plane, left_out=draw_labels(block, axes, plane))


def _draw_links(block: Map, axes: Axes) -> None:
    if block.query is None:
        return
    result, keys = block.result, list(block.linked)
    start = result.queries[block.query]
    axes.add_collection(
        LineCollection(
            [(start, result.keys[key]) for key in keys],
            linewidths=LINK_WIDTH * result.weights[block.query, keys],
            colors=_LINK_INK,
            capstyle="butt",
            zorder=1,
            label="links",
        ),
        autolim=False,
    )


def _draw_markers(block: Map, axes: Axes, plane: Plane, side: str) -> None:
    places = block.result.queries if side == "query" else block.result.keys
    style = {
        "markersize": 2 * plane.radius(side),
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
        "zorder": 3,
    }
    axes.plot(*places.T, _MARKERS[side], color=INKS[side], label=side, **style)  # type: ignore[arg-type]
    if (chosen := block.chosen(side)) is not None:
        ring = {"markersize": 2 * plane.radius(side, ring=True), "markeredgewidth": 1.1, "zorder": 4}
        axes.plot(*places[chosen], "o", mfc="none", mec=_RING_INK, label=f"chosen {side}", **ring)  # type: ignore[arg-type]


def _draw_legend(block: Map, axes: Axes, plane: Plane, left_out: int) -> None:
    handles = [
        Line2D(
            [],
            [],
            ls="",
            marker=_MARKERS[side],
            color=INKS[side],
            ms=2 * plane.radius(side),
            label=side,
        )
        for side in ("query", "key")
    ]
    if block.query is not None:
        handles.append(Line2D([], [], color=_LINK_INK, linewidth=2.5, label="link, as wide as its weight"))
    axes.legend(
        handles=handles, loc="upper left", ncols=3, fontsize=_WORDS, frameon=False, borderaxespad=0.2,
        columnspacing=1.2, handletextpad=0.6, labelcolor=INK,
    )  # fmt: skip
    if left_out:
        told = f"{counted(left_out, 'label')} left out"
        at = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "center"}
        place = (-5, -36 * LEGEND)
        axes.annotate(told, (1, 1), place, size=_WORDS, color=FAINT, **at)  # type: ignore[arg-type]
