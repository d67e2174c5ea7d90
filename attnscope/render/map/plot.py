"""The map of a head drawn on an Axes: a circle for every query, a square for every key, each with its token.

`draw_map` may be used on any Axes whose size is settled; how large that should be is `map_frame`'s answer.
The axes have no unit and therefore no ticks.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from attnscope.render.kit.figure.page import FAINT, INK, Frame
from attnscope.render.kit.numbers import counted
from attnscope.render.map.labels import draw_labels
from attnscope.render.map.layout import INKS, LEGEND, Linked, Plane, linked_to, plane_on
from attnscope.render.map.words import title_words
from attnscope.results import Projection

LINK_WIDTH = 8.0  # points of a link of weight 1
_MARKERS = {"query": "o", "key": "s"}
_LINK_INK, _RING_INK, _EDGE_INK = "#a3a8b0", "#111111", "#c9ccd1"
_WORDS = 7.0


def map_frame(result: Projection, titled: bool) -> Frame:
    """The size of axes on which the labels of `result` have room; a map with a query is `titled`."""
    places = np.concatenate([result.queries, result.keys])
    width = float(np.clip(2.8 + 0.52 * np.sqrt(len(places)), 5.9, 11.0))
    spread = np.ptp(places, axis=0)
    shape = float(np.clip(spread[1] / (spread[0] or 1.0), 0.6, 1.0))
    return Frame(
        width=width, height=shape * width + LEGEND, left=0.0, top=0.42 if titled else 0.06, share=0.5
    )


def draw_map(
    result: Projection, axes: Axes, query: int | None = None, key: int | None = None, links: int = 5
) -> None:
    """Markers, labels and legend; from `query` a link to each of its `links` strongest keys; a ring at `key`.

    A link is as wide as its weight, `LINK_WIDTH` points for a weight of 1; the key's label tells the weight.
    With a query, two lines above the Axes say what is shown.
    """
    linked, plane = linked_to(result, query, key, links), plane_on(axes, result)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=_EDGE_INK, linewidth=0.6)
    _draw_title(result, axes, linked)
    _draw_links(result, axes, linked)
    for side in ("query", "key"):
        _draw_markers(result, axes, linked, plane, side)
    _draw_legend(axes, linked, plane, left_out=draw_labels(result, axes, linked, plane))


def _draw_title(result: Projection, axes: Axes, linked: Linked) -> None:
    if linked.query is None:
        return
    first, second = title_words(result, linked.query, linked.key, len(linked.keys))
    axes.set_title(first, loc="left", size=9.0, weight="bold", color=INK, pad=16)
    at = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "baseline"}
    axes.annotate(second, (0, 1), (0, 5), size=7.5, color=INK, **at)  # type: ignore[arg-type]


def _draw_links(result: Projection, axes: Axes, linked: Linked) -> None:
    if linked.query is None:
        return
    start, keys = result.queries[linked.query], list(linked.keys)
    axes.add_collection(
        LineCollection(
            [(start, result.keys[key]) for key in keys],
            linewidths=LINK_WIDTH * result.weights[linked.query, keys],
            colors=_LINK_INK,
            capstyle="butt",
            zorder=1,
            label="links",
        ),
        autolim=False,
    )


def _draw_markers(result: Projection, axes: Axes, linked: Linked, plane: Plane, side: str) -> None:
    """The points of one side, and a ring around the chosen one."""
    places = result.queries if side == "query" else result.keys
    style = {
        "markersize": 2 * plane.radius(side),
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
        "zorder": 3,
    }
    axes.plot(*places.T, _MARKERS[side], color=INKS[side], label=side, **style)  # type: ignore[arg-type]
    if (chosen := linked.chosen(side)) is not None:
        ring = {"markersize": 2 * plane.radius(side, ring=True), "markeredgewidth": 1.1, "zorder": 4}
        axes.plot(*places[chosen], "o", mfc="none", mec=_RING_INK, label=f"chosen {side}", **ring)  # type: ignore[arg-type]


def _draw_legend(axes: Axes, linked: Linked, plane: Plane, left_out: int) -> None:
    """In the strip above the map."""
    handles = [
        Line2D([], [], ls="", marker=_MARKERS[side], color=INKS[side], ms=2 * plane.radius(side), label=side)
        for side in ("query", "key")
    ]
    if linked.query is not None:
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
