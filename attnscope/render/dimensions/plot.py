"""Products as bars, largest first, with the line of their sum; and rotary pairs by their wavelength."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Transform, offset_copy

from attnscope.render.dimensions.words import number
from attnscope.render.kit.figure.page import FAINT, INK
from attnscope.render.kit.frame import only_spines
from attnscope.results import Dimensions

QUERY, KEY = "#d55e00", "#0072b2"  # the colours of queries and keys on a map
ABOVE, BELOW, SUM = "#3a7ebf", "#c44e52", "#222222"
_SIZE = 7.0
_LABEL = -0.5  # inches from the axes, so that those of all panels stand below each other


def draw_vectors(result: Dimensions, axes: Axes) -> None:
    """Both vectors, dimension beside dimension, in the order of the products."""
    places, order = np.arange(len(result.order)), result.order
    axes.bar(places - 0.2, result.query_vector[order], 0.4, color=QUERY, label="q")
    axes.bar(places + 0.2, result.key_vector[order], 0.4, color=KEY, label="k")
    axes.set_xlim(-0.7, len(order) - 0.3)
    axes.set_xticks([])
    _dressed(axes, "q and k")
    _legend(axes, 2)


def draw_products(result: Dimensions, axes: Axes) -> None:
    """A bar per dimension, a mark for the mean of the other keys there, a line for the sum so far."""
    order, places = result.order, np.arange(len(result.order))
    products = result.products[order]
    axes.bar(places, products, 0.8, color=np.where(products < 0, BELOW, ABOVE))
    axes.plot(places, result.beside[order], "_", color=INK, markersize=4, label="other keys, mean")
    axes.step(places, result.cumulated, where="mid", color=SUM, linewidth=1.1, label="sum so far")
    score = float(result.head.scores[result.query, result.key])
    axes.axhline(score, color=SUM, linewidth=0.8, linestyle=(0, (4, 2)), label=f"q·k {number(score)}")
    axes.set_xlim(-0.7, len(order) - 0.3)
    named = _named(len(order))
    turned = 0 if len(order) <= 32 else 90
    size = _SIZE if named == 1 else 6
    axes.set_xticks(places[::named], order[::named].tolist(), size=size, rotation=turned)
    axes.set_xlabel("dimension, largest product first", size=_SIZE + 1, color=INK)
    _dressed(axes, "q x k")
    _legend(axes, 3)


def draw_pairs(result: Dimensions, axes: Axes) -> None:
    """What each rotary pair adds, by the tokens of one turn; a pair that never turns stands at the right."""
    assert result.rotation is not None, "asked before"
    waves, sums = result.rotation.wavelength, result.by_pair
    finite = waves[np.isfinite(waves)]
    edge = 4 * float(finite.max()) if len(finite) else 1.0
    at = np.where(np.isfinite(waves), waves, edge)
    axes.vlines(at, 0, sums, color=FAINT, linewidth=0.8)
    axes.scatter(at, sums, s=14, c=np.where(sums < 0, BELOW, ABOVE), zorder=3)
    axes.set_xscale("log")
    axes.set_xlabel("tokens until a rotary pair is turned once round", size=_SIZE + 1, color=INK)
    axes.tick_params(axis="x", labelsize=_SIZE, colors=INK)
    _dressed(axes, "pair adds")


def _named(dimensions: int) -> int:
    """Every so many-th dimension has its number."""
    return 1 if dimensions <= 96 else 2 if dimensions <= 192 else 4


def _legend(axes: Axes, columns: int) -> None:
    """Above the axes at the right, where nothing is drawn."""
    axes.legend(
        frameon=False, fontsize=_SIZE, ncols=columns, loc="lower right", bbox_to_anchor=(1, 0.98), borderpad=0
    )


def _dressed(axes: Axes, title: str) -> None:
    axes.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_ylabel(title, size=_SIZE + 1, color=INK)
    axes.yaxis.set_label_coords(0, 0.5, transform=_left_of(axes))
    axes.tick_params(axis="y", labelsize=_SIZE, length=2, colors=INK)
    axes.tick_params(axis="x", length=0, colors=INK)
    only_spines(axes, "left")


def _left_of(axes: Axes) -> Transform:
    """Places on the axes, moved to where the labels of all panels stand."""
    page = axes.get_figure(root=True)
    assert page is not None, "these axes are on a page"
    return offset_copy(axes.transAxes, page, x=_LABEL)
