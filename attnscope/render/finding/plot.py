"""Layers by heads as colours, one number each; and heads as bars with the range of their controls."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from attnscope.render.finding.words import head_name, signed_text, value_text
from attnscope.render.kit.figure.page import FAINT, INK, ink_on
from attnscope.render.kit.frame import named_rows
from attnscope.render.kit.numbers import largest_magnitude
from attnscope.results import Contents, Finding
from attnscope.results.claims.finding import Account

RANGE_COLOUR, BEST_COLOUR = "#222222", "#d55e00"
_BARS = {
    Account.TEXT: ("#3a7ebf", "by the {of}: neither place nor {part} keeps half"),
    Account.WORD: ("#5ab4ac", "by the {part}: goes with the key's {own}"),
    Account.PLACE: ("#c4c4c4", "by the place: stays whatever the {of} holds"),
    None: ("#dfe6ee", "no more than all keys alike"),
}
_ALIKE = "#5b9bd0"  # of likeness, where nothing is accounted for
_MOST_NUMBERS = 16  # heads of a layer that have a number in every cell
_TICK, _NUMBER = 7.0, 6.0
RANKED = 12


def cell_size(result: Finding) -> tuple[float, float]:
    """Width and height of a cell of a grid, in inches."""
    heads = len(result.heads)
    return (0.32, 0.24) if heads <= _MOST_NUMBERS else (max(5.2 / heads, 0.03), max(5.2 / heads, 0.03))


def top_of(result: Finding) -> float:
    """The end of the one scale of numbers, from 0: 1 where that shows them, else the largest."""
    largest = float(np.nanmax(result.weights, initial=0.0))
    return 1.0 if largest > 0.4 and not result.smaller_is_better else largest or 1.0


def draw_numbers(result: Finding, axes: Axes) -> QuadMesh:
    """What heads are ranked by, dark where that is best."""
    colours = "Blues_r" if result.smaller_is_better else "Blues"
    texts = [[value_text(result, float(each)) for each in row] for row in result.weights]
    return _grid(result, axes, result.weights, texts, colours, (0.0, top_of(result)))


def draw_differences(result: Finding, axes: Axes) -> QuadMesh:
    """How far each head lies above the mean of its controls, white where it does not."""
    extent = largest_magnitude(result.difference) or 1.0
    texts = [[signed_text(float(each)) for each in row] for row in result.difference]
    colours = "RdBu" if not result.smaller_is_better else "RdBu_r"
    return _grid(result, axes, result.difference, texts, colours, (-extent, extent))


def _grid(
    result: Finding,
    axes: Axes,
    values: Float[np.ndarray, "layer head"],
    texts: list[list[str]],
    colours: str,
    ends: tuple[float, float],
) -> QuadMesh:
    masked = np.ma.masked_invalid(values)
    width = 0.6 if len(result.heads) <= _MOST_NUMBERS else 0.2
    mesh = axes.pcolormesh(
        masked, cmap=colours, vmin=ends[0], vmax=ends[1], edgecolors="white", linewidth=width
    )
    axes.set_xlim(0, values.shape[1])
    axes.set_ylim(values.shape[0], 0)
    _ticks(result, axes)
    if len(result.heads) <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            colour = FAINT if np.isnan(value) else ink_on(mesh, float(value))
            axes.text(j + 0.5, i + 0.52, texts[i][j], ha="center", va="center", size=_NUMBER, color=colour)
    return mesh


def _ticks(result: Finding, axes: Axes) -> None:
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    wide, high = cell_size(result)
    step = math.ceil(0.26 / wide), math.ceil(0.13 / high)
    heads, layers = range(0, len(result.heads), step[0]), range(0, len(result.layers), step[1])
    axes.set_xticks([j + 0.5 for j in heads], [f"H{result.heads[j]}" for j in heads], size=_TICK)
    axes.set_yticks([i + 0.5 for i in layers], [f"L{result.layers[i]}" for i in layers], size=_TICK)
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_bars(result: Finding, axes: Axes) -> None:
    """The best heads as bars; across each the middle nine tenths of its controls, a dot at their mean.

    The dashed line is what the best head of a control text has, on average.
    """
    listed = result.ranking[:RANKED]
    values = [float(result.weights[place]) for place in listed]
    _bars(result, axes, listed)
    for row, place in enumerate(listed):
        low, high = float(result.controls.low[place]), float(result.controls.high[place])
        axes.plot((low, high), (row, row), color=RANGE_COLOUR, linewidth=1.1, solid_capstyle="butt", zorder=3)
        for end in (low, high):
            axes.plot((end, end), (row - 0.17, row + 0.17), color=RANGE_COLOUR, linewidth=1.1, zorder=3)
    _controls(result, axes, listed)
    largest = max([*values, *(float(result.controls.high[place]) for place in listed), 0.0])
    axes.set_xlim(0, max(1.02 if top_of(result) == 1.0 else 1.05 * largest, 1e-6))
    measured = "divergence in nats" if result.smaller_is_better else "weight"
    named_rows(axes, [head_name(result, place) for place in listed], measured, _TICK)


def _bars(result: Finding, axes: Axes, listed: Sequence[tuple[int, int]]) -> None:
    """A bar for each head, in the colour of what it looks by."""
    accounts, of = [result.account(place) for place in listed], result.controls.of
    own = "token" if of is Contents.TEXT else of.part
    for account, (colour, label) in _BARS.items():
        mine = [row for row, each in enumerate(accounts) if each is account]
        values = [float(result.weights[listed[row]]) for row in mine]
        if result.smaller_is_better:
            colour, label = _ALIKE, "this {of}"
        if mine:
            told = label.format(of=of.value, part=of.part, own=own)
            axes.barh(mine, values, height=0.72, color=colour, label=told, zorder=1)


def _controls(result: Finding, axes: Axes, listed: Sequence[tuple[int, int]]) -> None:
    """The mean of the controls of each head, and what the best head of a control has."""
    rows = range(len(listed))
    means = [float(result.controls.mean[place]) for place in listed]
    axes.plot(
        means, rows, "o", markersize=3.6, color="white", markeredgecolor=RANGE_COLOUR, markeredgewidth=1.0,
        zorder=4, label="its controls: mean, 90 %",
    )  # fmt: skip
    axes.axvline(
        float(result.controls.best.mean()), color=BEST_COLOUR, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2,
        label="best head of a control, mean",
    )  # fmt: skip


def draw_bar(drawn: ScalarMappable, figure: Figure, axes: Axes, ends: tuple[str, str]) -> None:
    """A small colour bar under a grid, with what its ends are."""
    place = axes.get_position()
    wide, high = figure.get_size_inches()
    width, height = min(1.5, place.width * wide), 0.08
    inset = figure.add_axes((place.x0, place.y0 - 0.2 / high, width / wide, height / high))
    bar = figure.colorbar(drawn, cax=inset, orientation="horizontal")
    bar.outline.set_visible(False)  # type: ignore[operator]
    low, high_end = inset.get_xlim()
    bar.set_ticks([low, high_end], labels=list(ends))
    inset.tick_params(labelsize=6.5, length=2, pad=1.5, colors=INK, labelcolor=FAINT)
