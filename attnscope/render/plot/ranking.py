"""A ranking on Axes: names down, marks over one axis, and above it what each mark is."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from attnscope.render.kit.frame import named_rows
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.plot.panel import SAYS, TICK, Panel
from attnscope.render.sheet.blocks import Mark, Ranking
from attnscope.render.sheet.scale import FAINT, INK, TINTS, missing

_AXIS, _BELOW, _RIGHT, _ROW = 3.2, 0.4, 0.1, 0.2  # inches: the axis, the room around it, one row
_NUMBER = 6.0  # points
_ORDER = {"band": 0, "bar": 1, "line": 2, "span": 3, "tick": 3, "ring": 4, "diamond": 4, "dot": 5}
_SYMBOLS = {"dot": ("o", 4.6), "ring": ("o", 3.6), "diamond": ("D", 3.4), "tick": ("|", 7.0)}


def panel(block: Ranking) -> Panel:
    """As high as its rows, with room for its names and for its key."""
    labels = block.key()
    across, wide = _abreast(labels) if labels else (1, 0.0)
    lines = math.ceil(len(labels) / across)
    return Panel(
        title=block.title,
        says=" · ".join(each for each in (block.says, _hidden(block)) if each),
        width=_AXIS,
        height=_ROW * max(len(block.names), 2),
        left=max((text_width(each, TICK) for each in block.names), default=0.0) + 0.12,
        above=lines * 1.2 * line_height(SAYS) + 0.08,
        below=_BELOW,
        right=_RIGHT,
        draw=lambda axes: draw(block, axes),
        key=labels,
        least=max(0.6, wide / _AXIS),
    )


def _hidden(block: Ranking) -> str:
    return f"and {counted(block.hidden, block.of)} more" if block.hidden else ""


def _abreast(labels: Sequence[str]) -> tuple[int, float]:
    """How many labels of the key stand side by side, filled down first as matplotlib does; their width."""
    across, wide = 1, 0.0
    for tried in (1, 2, 3):
        down = math.ceil(len(labels) / tried)
        columns = [labels[k : k + down] for k in range(0, len(labels), down)]
        needed = sum(max(text_width(each, SAYS) for each in column) + 0.45 for column in columns)
        if tried == 1 or needed < _AXIS + 0.1:
            across, wide = len(columns), needed
    return across, wide


def draw(block: Ranking, axes: Axes) -> None:
    """The marks of every row over one axis, with what each of them is above it."""
    low, high = block.extent()
    span = high - low
    if block.written:
        _numbers(block, axes, span)
        low, high = low - (0.18 * span if low < 0 else 0.0), high + 0.18 * span
    if not any(each.shape in ("bar", "band") for each in block.marks):
        for place in range(1, len(block.names), 2):
            axes.axhspan(place - 0.5, place + 0.5, color="#f4f4f4", linewidth=0, zorder=0)
    for mark in block.marks:
        _draw(mark, axes)
    if low < 0:
        axes.axvline(0, color=INK, linewidth=0.7, zorder=3)
    axes.set_xlim(low, high)
    named_rows(axes, block.names, block.measured, TICK)
    _key(block.key(), axes)


def _key(labels: tuple[str, ...], axes: Axes) -> None:
    if not labels:
        return
    handles, told = axes.get_legend_handles_labels()
    axes.legend(
        [handles[told.index(each)] for each in labels], labels, loc="lower left", bbox_to_anchor=(-0.02, 1.0),
        ncols=_abreast(labels)[0], fontsize=SAYS, frameon=False, borderaxespad=0.1, handlelength=1.6,
        labelspacing=0.2, columnspacing=1.2,
    )  # fmt: skip


def _draw(mark: Mark, axes: Axes) -> None:
    """One kind of mark in all rows that have it."""
    tint, order, label = TINTS[mark.tint], _ORDER[mark.shape], mark.label or "_"
    if mark.shape == "line":
        width, dashes = (0.6, (1, 1.5)) if mark.tint == "noise" else (1.0, (4, 2))
        for x in mark.at:
            axes.axvline(x, color=tint, linewidth=width, linestyle=(0, dashes), label=label, zorder=order)
            label = "_"
        return
    rows = [row for row, value in enumerate(mark.at) if not missing(value)]
    at = np.array([mark.at[row] for row in rows], float)
    to = np.array([mark.to[row] for row in rows], float) if mark.to else np.zeros(len(rows))
    if mark.shape in ("bar", "band"):
        axes.barh(
            rows, at - to, 0.62 if mark.shape == "bar" else 0.9, to, color=tint, label=label, zorder=order
        )
    elif mark.shape == "span":
        axes.errorbar(
            (at + to) / 2, rows, xerr=abs(at - to) / 2, fmt="none", ecolor=tint, elinewidth=1.1, capsize=2.4,
            label=label, zorder=order,
        )  # fmt: skip
    else:
        symbol, size = _SYMBOLS[mark.shape]
        hollow = mark.shape in ("ring", "diamond")
        axes.plot(
            at, rows, symbol, markersize=size, markeredgewidth=1.3 if mark.shape == "tick" else 1.0,
            color="white" if hollow else tint, markeredgecolor=tint, label=label, zorder=order,
        )  # fmt: skip


def _numbers(block: Ranking, axes: Axes, span: float) -> None:
    """The number of each row at the end of all that is drawn on its side."""
    column = block.table[block.written]
    for row, value in enumerate(column.values):
        if missing(value):
            continue
        side = -1 if value < 0 else 1
        reach, gap = 0.0, 0.015
        for mark in block.marks:
            ends = [] if mark.shape == "line" else [side * end for end in mark.ends(row)]
            if ends and max(ends) > reach:
                reach, gap = max(ends), 0.015 if mark.shape in ("bar", "band") else 0.035
        axes.text(
            side * (reach + gap * span), row + 0.03, column.text(row), size=_NUMBER, va="center", zorder=6,
            ha="left" if side > 0 else "right", color=FAINT if row in block.faint else INK,
        )  # fmt: skip
