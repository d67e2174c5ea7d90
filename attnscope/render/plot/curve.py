"""A curve on Axes: the rows across by their numbers, a line for each thing that is measured."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from attnscope.render.kit.palette import FAINT, INK, TINTS
from attnscope.render.kit.typesetting import line_height, tick
from attnscope.render.plot.panel import SAYS, TICK, Panel, key_above, lines_of_key, only_spines
from attnscope.render.sheet.blocks import Curve
from attnscope.render.sheet.table import Line

_WIDE, _HIGH, _LEFT, _BELOW = 2.8, 2.3, 0.55, 0.4  # inches: the axes, the room for numbers and words
_MARKERS = "osD^vP"


def panel(block: Curve) -> Panel:
    """Axes of one size, with room for the key above them."""
    return Panel(
        title=block.title,
        says=block.says,
        width=_WIDE,
        height=_HIGH,
        left=_LEFT,
        above=lines_of_key(block.key(), _WIDE) * 1.2 * line_height(SAYS) + 0.08,
        below=_BELOW,
        right=0.1,
        draw=lambda axes: draw(block, axes),
        key=block.key(),
        least=0.6,
    )


def draw(block: Curve, axes: Axes) -> None:
    """Lines, bands and points over the numbers of the rows, 0 and the chosen rows marked."""
    low, high = block.extent()
    places = np.array(block.places, float)
    joined = [each for each in block.lines if each.shape == "line"]
    for line in block.lines:
        marker = _MARKERS[joined.index(line) % len(_MARKERS)] if line in joined else ""
        _draw(line, places, marker, axes)
    if low < 0 < high:
        axes.axhline(0, color=FAINT, linewidth=0.5, zorder=1)
    for row in block.chosen:
        axes.axvline(places[row], color=FAINT, linewidth=0.6, linestyle=":", zorder=1)
    room = 0.05 * (float(np.ptp(places)) or 1.0)
    if block.log:
        axes.set_yscale("log")
    axes.yaxis.set_major_formatter(tick)
    axes.set(xlim=(places.min() - room, places.max() + room), ylim=(low, high))
    if block.named:
        axes.set_xticks(block.places, block.names)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_xlabel(block.of, size=TICK, color=INK)
    axes.set_ylabel(block.measured, size=TICK, color=INK)
    axes.tick_params(labelsize=TICK, length=2, colors=INK)
    only_spines(axes, "left", "bottom")
    key_above(axes, block.key(), _WIDE)


def _draw(line: Line, places: np.ndarray, marker: str, axes: Axes) -> None:
    tint, label = TINTS[line.tint], line.label or "_"
    if line.shape == "points":
        across = [place for place, row in zip(places, line.at, strict=True) for _ in row]
        every = [value for row in line.at for value in row]
        axes.scatter(across, every, s=7, color=tint, alpha=0.35, linewidths=0, label=label, zorder=2)
        return
    at = np.array([np.nan if each is None else each for each in line.at], float)
    if line.shape == "band":
        axes.fill_between(
            places, at, np.array(line.to, float), color=tint, alpha=0.15, linewidth=0, label=label
        )
    elif line.shape == "ring":
        axes.scatter(
            places, at, s=42, facecolors="none", edgecolors=tint, linewidths=1.0, label=label, zorder=5
        )
    else:
        style = "-" if marker else "--"
        axes.plot(
            places, at, style, color=tint, marker=marker, markersize=4, linewidth=1.3, label=label, zorder=3
        )
