"""Spread, entropy and gradient over the size of the vectors, without and with the scale, on three Axes."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from attnscope.render.kit.figure.page import FAINT, INK
from attnscope.results.worked import MEASURES, ScaleStudy

UNSCALED, SCALED, ADDITIVE = "#b2182b", "#2166ac", "#009e73"
_SMALL, _LABEL = 7.5, 9.0
SIZE = (10.2, 3.1)  # of all three together with their labels, in inches
PLACES = [(0.4 + column * 3.4, 0.4, 2.8, 2.3) for column in range(3)]  # left, top, width, height of each


def draw_scale(result: ScaleStudy, axes: Sequence[Axes]) -> None:
    """One measure an Axes over d (logarithmic); colour and marker tell the two scales apart."""
    spread, entropy, gradient = axes
    most = math.log(result.keys)
    _curves(spread, result, "spread", "spread of the scores\n(standard deviation)")
    spread.set_yscale("log", base=2)
    ticks = [1, 2, 4, 8, 16, 32]
    spread.set_yticks(ticks, [str(tick) for tick in ticks])
    spread.yaxis.set_minor_locator(NullLocator())
    _curves(entropy, result, "entropy", "entropy of the softmax\n(nats)")
    entropy.axhline(most, color=FAINT, linewidth=0.8, linestyle=":")
    entropy.text(
        result.dims[-1],
        most,
        f"ln {result.keys}: all keys alike",
        ha="right",
        va="bottom",
        size=_SMALL,
        color=FAINT,
    )
    entropy.set_ylim(0, 1.15 * most)
    _curves(gradient, result, "gradient", "size of the softmax's gradient\n(Frobenius norm of its Jacobian)")
    gradient.set_ylim(0, 1.2 * float(result.gradient.max()))
    spread.legend(frameon=False, fontsize=_SMALL, labelcolor=INK, loc="upper left", handlelength=1.6)


def _curves(axes: Axes, result: ScaleStudy, measure: str, title: str) -> None:
    unscaled, scaled = getattr(result, measure)
    additive = None if result.additive is None else result.additive[MEASURES.index(measure)]
    axes.plot(result.dims, unscaled, color=UNSCALED, marker="o", markersize=3.5, lw=1.4, label="q·k")
    axes.plot(result.dims, scaled, color=SCALED, marker="s", markersize=3.5, lw=1.4, label="q·k / √d")
    if additive is not None:
        label = "a·tanh(q Aq + k Ak)"
        axes.plot(result.dims, additive, color=ADDITIVE, marker="^", markersize=3.5, lw=1.4, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(result.dims, [str(dim) for dim in result.dims])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title(title, size=_LABEL, color=INK, parse_math=False)
    axes.set_xlabel("d", size=_LABEL, color=INK)
    axes.tick_params(labelsize=_SMALL, colors=INK, length=2)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
