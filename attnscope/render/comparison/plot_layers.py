"""A comparison layer by layer, drawn on Axes: cosines of the word's vectors, or how far its rows are apart.

`draw_layers` may be used on any Axes; how large these should be is `layers_frame`'s answer.
"""

import math

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from attnscope.render.kit.figure.page import FAINT, INK, Frame
from attnscope.render.kit.frame import only_spines
from attnscope.render.kit.typesetting import line_height
from attnscope.results import Comparison

_CURVES = {
    "query": ("#0072b2", "o"),
    "key": ("#d55e00", "s"),
    "unrotated key": ("#e69f00", "v"),
    "value": ("#009e73", "^"),
    "output": ("#cc3377", "D"),
}
_ROWS = "#4292c6"
_WIDE = 2.5  # inches of the curves
_AXIS = 0.4  # inches of numbers and word below them
_WORD, _LEGEND = 8.0, 7.0


def has_layers(result: Comparison) -> bool:
    """Whether there is something to draw layer by layer."""
    return len(result.layers) > 1 and bool(result.similarities or result.divergence)


def layers_frame(result: Comparison, height: float) -> Frame:
    """The size of the axes for the curves, beside rows of `height`."""
    legend = math.ceil((len(result.similarities) or 1) / 2) * line_height(_LEGEND)
    return Frame(_WIDE, min(max(height - _AXIS, 1.6), 2.6), left=0.75, top=0.2 + legend, bottom=_AXIS)


def draw_layers(result: Comparison, axes: Axes) -> None:
    """Cosines of the vectors layer by layer, or where there are none how far the rows are apart.

    Dots are the single heads, of outputs or rows; the circle is the head whose rows are shown.
    """
    i, j = result.shown
    layers = np.array([layer for layer, _ in result.layers])
    if result.similarities:
        for each in result.similarities:
            _curve(axes, layers, each.vector, each.together, *_CURVES[each.vector])
        dots, colour, label = result.similarities[-1].heads, _CURVES["output"][0], "cosine between A and B"
        axes.axhline(0, color=FAINT, linewidth=0.5)
        lowest = min(float(np.nanmin(each, initial=0.0)) for each in (dots, *_together(result)))
        axes.set_ylim(lowest - 0.07, 1.05)
    else:
        assert result.divergence is not None, "drawn only where there is something to draw"
        dots, colour, label = result.divergence.jensen_shannon, _ROWS, "Jensen-Shannon in nats"
        if len(result.heads) == 1:
            _curve(axes, layers, "rows", dots[:, 0], _ROWS, "o")
        axes.set_ylim(-0.02, math.log(2) + 0.02)
    if len(result.heads) > 1:
        axes.scatter(
            np.repeat(layers[:, None], len(result.heads), axis=1),
            dots,
            s=7,
            color=colour,
            alpha=0.35,
            linewidths=0,
            zorder=1,
        )
    axes.scatter(layers[i], dots[i, j], s=42, facecolors="none", edgecolors=INK, linewidths=1.0, zorder=4)
    axes.set_xlim(layers[0] - 0.3, layers[-1] + 0.3)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_xlabel("layer", size=_WORD, color=INK)
    axes.set_ylabel(label, size=_WORD, color=INK)
    axes.tick_params(labelsize=6.5, length=2, colors=INK)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
        loc="lower left", bbox_to_anchor=(-0.08, 1.0), ncols=2, fontsize=_LEGEND, frameon=False,
        borderaxespad=0.2, handlelength=1.6, columnspacing=1.0, labelspacing=0.2,
    )  # fmt: skip
    only_spines(axes, "left", "bottom")


def _together(result: Comparison) -> list[Float[np.ndarray, " layer"]]:
    return [each.together for each in result.similarities]


def _curve(
    axes: Axes,
    layers: Int[np.ndarray, " layer"],
    name: str,
    values: Float[np.ndarray, " layer"],
    colour: str,
    marker: str,
) -> None:
    axes.plot(layers, values, color=colour, marker=marker, markersize=4, linewidth=1.3, label=name, zorder=3)
