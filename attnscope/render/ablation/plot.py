"""Heads taken away, on Axes: bars with the noise floor drawn in, and layers by heads around 0.

`draw_bars` and `draw_grid` may be used on any Axes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from attnscope.render.ablation.words import at_once, head_name, signed_text
from attnscope.render.kit.figure.page import FAINT, INK, ink_on
from attnscope.render.kit.frame import named_rows
from attnscope.render.kit.numbers import largest_magnitude, short
from attnscope.results import Ablation

LESS, MORE, RANDOM, FLOOR = "#b2182b", "#2166ac", "#b9b9b9", "#e4e4e4"
RANKED, DRAWN = 12, 8  # heads that have a bar, and random ones beside them
BAR = 0.19  # inches of each
_MOST_NUMBERS = 16  # heads of a layer that have a number in every cell
_LEAST_GRID = 2.1  # inches: its title stands above it
_TICK, _NUMBER = 7.0, 6.0


@dataclass(frozen=True)
class Bar:
    """One bar: its name, how long it is, the floor that it stands on, and what it is."""

    name: str
    difference: float
    chance: float | None
    random: bool = False
    estimate: float | None = None


def shown(result: Ablation) -> int:
    """How many of the heads have a bar."""
    beside = int(cell_size(result)[1] * len(result.layers) / BAR) if has_grid(result) else 0
    return min(len(result.heads), max(RANKED, min(beside, 2 * RANKED)))


def bars_of(result: Ablation) -> list[Bar]:
    """All heads at once, then the heads by their rank, then random ones of their layers."""
    bars = []
    if (group := result.group) is not None:
        bars.append(Bar(at_once(group), group.effect.difference, group.chance))
    for one in result.heads[: shown(result)]:
        bars.append(Bar(head_name(one), one.difference, one.chance, estimate=one.estimate))
    drawn = sorted(result.floor.random, key=lambda one: -abs(one.difference))[:DRAWN]
    return bars + [Bar(head_name(one), one.difference, None, random=True) for one in drawn]


def draw_bars(result: Ablation, axes: Axes) -> None:
    """A bar for each head, to the left where the answer loses; behind it what other heads of its layer do."""
    bars = bars_of(result)
    _floor(result, bars, axes)
    for label, colour, mine in (
        ("the answer loses", LESS, [row for row, b in enumerate(bars) if not b.random and b.difference < 0]),
        ("the answer gains", MORE, [row for row, b in enumerate(bars) if not b.random and b.difference >= 0]),
        ("random heads of these layers", RANDOM, [row for row, b in enumerate(bars) if b.random]),
    ):
        if mine:
            axes.barh(mine, [bars[row].difference for row in mine], 0.56, color=colour, label=label, zorder=2)
    foretold = [(bar.estimate, row) for row, bar in enumerate(bars) if bar.estimate is not None]
    if foretold:
        values, rows = zip(*foretold, strict=True)
        axes.plot(
            values, rows, "D", markersize=3.4, color="white", markeredgecolor=INK, markeredgewidth=0.9,
            zorder=4, label="estimate",
        )  # fmt: skip
    _numbers(bars, axes)
    axes.axvline(0, color=INK, linewidth=0.7, zorder=3)
    named_rows(axes, [bar.name for bar in bars], "difference of log probability, nats", _TICK)


def _floor(result: Ablation, bars: Sequence[Bar], axes: Axes) -> None:
    """Behind each bar the median size of what other heads do, and lines where rounding ends."""
    known = [(row, bar.chance) for row, bar in enumerate(bars) if bar.chance is not None]
    if known:
        rows, sizes = zip(*known, strict=True)
        axes.barh(
            rows, [2 * size for size in sizes], 0.9, [-size for size in sizes], color=FLOOR, zorder=1,
            label="others of its layer: median",
        )  # fmt: skip
    rounding, style = result.floor.rounding, {"color": INK, "linewidth": 0.6, "linestyle": (0, (1, 1.5))}
    axes.axvline(-rounding, label=f"rounding: ±{short(rounding)}", zorder=3, **style)  # type: ignore[arg-type]
    axes.axvline(rounding, zorder=3, **style)  # type: ignore[arg-type]


def _numbers(bars: Sequence[Bar], axes: Axes) -> None:
    """The difference at the end of each bar, and room for it."""
    ends = [
        value
        for bar in bars
        for value in (bar.difference, bar.chance, bar.estimate, 0.0)
        if value is not None
    ]
    ends += [-bar.chance for bar in bars if bar.chance is not None]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0
    axes.set_xlim(low - 0.2 * span, high + 0.2 * span)
    for row, bar in enumerate(bars):
        side = -1 if bar.difference < 0 else 1
        reach = [bar.difference] + [side * bar.chance for _ in (0,) if bar.chance is not None]
        gap = 0.015
        if bar.estimate is not None and bar.estimate * side > 0:
            reach.append(bar.estimate)
            gap = 0.03
        end = max(reach, key=abs)
        axes.text(
            end + side * gap * span, row + 0.03, signed_text(bar.difference), size=_NUMBER, va="center",
            ha="left" if side > 0 else "right", color=FAINT if bar.random else INK, zorder=5,
        )  # fmt: skip


def cell_size(result: Ablation) -> tuple[float, float]:
    """Width and height of a cell of the grid, in inches."""
    heads = result.grid.shape[1]
    return (
        (max(0.34, _LEAST_GRID / heads), 0.24)
        if heads <= _MOST_NUMBERS
        else (max(5.2 / heads, 0.03), max(5.2 / heads, 0.03))
    )


def draw_grid(result: Ablation, axes: Axes) -> QuadMesh:
    """The difference of every head, red where the answer loses, on one scale around 0."""
    values = result.grid
    extent, heads = largest_magnitude(values) or 1.0, values.shape[1]
    numbers = heads <= _MOST_NUMBERS
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(values), cmap="RdBu", vmin=-extent, vmax=extent, edgecolors="white",
        linewidth=0.6 if numbers else 0.2,
    )  # fmt: skip
    axes.set_xlim(0, heads)
    axes.set_ylim(len(values), 0)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    wide, high = cell_size(result)
    across, down = range(0, heads, math.ceil(0.26 / wide)), range(0, len(values), math.ceil(0.13 / high))
    axes.set_xticks([j + 0.5 for j in across], [f"H{j}" for j in across], size=_TICK)
    axes.set_yticks([i + 0.5 for i in down], [f"L{result.layers[i]}" for i in down], size=_TICK)
    axes.spines[:].set_visible(False)
    if numbers:
        for (i, j), value in np.ndenumerate(values):
            if not np.isnan(value):
                text = signed_text(float(value), 2).replace("0.", ".", 1)
                colour = ink_on(mesh, float(value))
                axes.text(j + 0.5, i + 0.52, text, ha="center", va="center", size=_NUMBER, color=colour)
    return mesh


def has_grid(result: Ablation) -> bool:
    """Whether heads of several layers were taken away in turn."""
    return len(result.layers) > 1 and len(result.heads) > 1 and not result.estimates
