"""A ranking on Axes (named rows of marks over one axis), and a curve."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attnscope.render.kit.numbers import likely
from attnscope.render.kit.palette import FAINT, INK, TINTS
from attnscope.render.kit.typesetting import line_height, percent_tick, text_width, tick
from attnscope.render.plot.panel import (
    SAYS,
    TICK,
    Panel,
    inches,
    key_above,
    lines_of_key,
    named_rows,
    only_spines,
    width_of_key,
)
from attnscope.render.sheet.blocks import Curve, Ranking
from attnscope.render.sheet.table import Column, Line, Mark, missing

_AXIS, _BELOW, _RIGHT, _ROW = 3.2, 0.4, 0.1, 0.2  # inches: the axis, the room around it, one row
_NONE = 0.02  # inches of an axis without marks
_NUMBER = 6.0  # points
_LOW = 0.24  # of a row that a low mark stands below its middle
_ORDER = {"band": 0, "bar": 1, "line": 2, "span": 3, "tick": 3, "ring": 4, "diamond": 4, "dot": 5}
_SYMBOLS = {"dot": ("o", 4.6), "ring": ("o", 3.6), "diamond": ("D", 3.4), "tick": ("|", 7.0)}


def panel(block: Ranking) -> Panel:
    """Panel of a ranking, as high as its rows, with room for names and legend."""
    labels = block.key()
    lines, wide = lines_of_key(labels, _AXIS), width_of_key(labels, _AXIS)
    width, left = _AXIS if block.marks else _NONE, _left(block)
    headings = max((text_width(each, SAYS, bold=True) for _, each in block.sections), default=0.0)
    return Panel(
        title=block.title,
        says=block.says,
        width=width,
        height=_ROW * max(len(block.names) + len(block.sections), 2),
        left=left,
        above=max(lines * 1.2 * line_height(SAYS), 0.12 if block.cells else 0.0) + 0.08,
        below=_BELOW,
        right=max(_RIGHT, headings - left - width),
        draw=lambda axes: draw(block, axes),
        key=labels,
        least=max(0.6, wide / _AXIS),
    )


def draw(block: Ranking, axes: Axes) -> None:
    """Draw the marks of every row over one axis, with the legend above."""
    low, high = block.extent()
    span = high - low
    if block.written:
        _numbers(block, axes, span)
        low, high = low - (0.18 * span if low < 0 else 0.0), high + 0.18 * span
    if block.marks and not any(each.shape in ("bar", "band") for each in block.marks):
        for place in _places(block)[1::2]:
            axes.axhspan(place - 0.5, place + 0.5, color="#f4f4f4", linewidth=0, zorder=0)
    for mark in block.marks:
        _draw(mark, _places(block), axes)
    _headings(block, axes)
    if low < 0:
        axes.axvline(0, color=INK, linewidth=0.7, zorder=3)
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=(1, 2, 2.5, 5, 10)))
    chances = block.written and block.table[block.written].form is likely
    axes.xaxis.set_major_formatter(percent_tick if chances else tick)
    named_rows(axes, block.names, _places(block), block.measured, TICK)
    if block.axis:  # which ends where it ends, whatever room the numbers take
        first, last = block.axis
        axes.spines["bottom"].set_bounds(first, last)
        axes.set_xticks([each for each in axes.get_xticks() if first <= each <= last])
    beside = _cells(block, axes) if block.cells else axes
    for row in block.chosen:
        beside.get_yticklabels()[row].set_fontweight("bold")
    key_above(axes, block.key(), _AXIS)


def _places(block: Ranking) -> list[int]:
    begun = [start for start, _ in block.sections]
    return [row + sum(start <= row for start in begun) for row in range(len(block.names))]


def _headings(block: Ranking, axes: Axes) -> None:
    left, (across, _) = _left(block), inches(axes)
    place = axes.get_position()
    room = left + across * (1 - place.x0) / place.width  # to the edge of the page
    places = _places(block)
    for start, heading in block.sections:
        size = SAYS * min(1.0, 0.98 * room / max(text_width(heading, SAYS, bold=True), 0.01))
        axes.text(
            -left / across, places[start] - 0.92, heading, transform=axes.get_yaxis_transform(), size=size,
            weight="bold", color=FAINT, va="center", parse_math=False,
        )  # fmt: skip


def _left(block: Ranking) -> float:
    return _names(block) + sum(map(_cell, _shaded(block))) + 0.12


def _names(block: Ranking) -> float:
    bold = bool(block.chosen)
    return max((text_width(each, TICK, bold) for each in block.names), default=0.0)


def _shaded(block: Ranking) -> list[Column]:
    return [block.table[name] for name in block.cells]


def _cell(column: Column) -> float:
    texts = [text_width(column.text(row), _NUMBER) for row in range(len(column.values))]
    return max([text_width(column.heading, TICK), *texts]) + 0.12


def _cells(block: Ranking, axes: Axes) -> Axes:
    columns, (across, _), places = _shaded(block), inches(axes), _places(block)
    edges = np.cumsum([0.0, *map(_cell, columns)])
    wide = edges[-1] + 0.06
    beside = axes.inset_axes((-wide / across, 0.0, edges[-1] / across, 1.0))
    beside.set(xlim=(0, edges[-1]), ylim=axes.get_ylim())
    for column, left, right in zip(columns, edges, edges[1:], strict=False):
        for row, place, value in zip(range(len(places)), places, column.values, strict=True):
            if text := column.text(row):
                ground, ink = column.scale.paper(value) if column.scale else ("none", INK)
                beside.add_patch(
                    Rectangle((left + 0.01, place - 0.46), right - left - 0.02, 0.92, color=ground)
                )
                beside.text(
                    (left + right) / 2, place + 0.03, text, size=_NUMBER, ha="center", va="center", color=ink
                )
    beside.set_xticks((edges[:-1] + edges[1:]) / 2, [each.heading for each in columns], size=TICK)
    beside.set_yticks(places, block.names, size=TICK, parse_math=False)
    beside.tick_params(length=0, pad=3, colors=INK, top=True, bottom=False, labeltop=True, labelbottom=False)
    beside.spines[:].set_visible(False)
    beside.patch.set_visible(False)  # which would lie on the heading of a section
    axes.set_yticks([])
    if not block.marks:
        axes.set_axis_off()
    return beside


def _draw(mark: Mark, places: list[int], axes: Axes) -> None:
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
    there = np.array([places[row] for row in rows], float)
    down = there + (_LOW if mark.low else 0.0)
    if mark.shape in ("bar", "band"):
        axes.barh(
            there, at - to, 0.62 if mark.shape == "bar" else 0.9, to, color=tint, label=label, zorder=order
        )
    elif mark.shape == "span":
        axes.errorbar(
            (at + to) / 2, down, xerr=abs(at - to) / 2, fmt="none", ecolor=tint, elinewidth=1.1, capsize=2.4,
            label=label, zorder=order, clip_on=False,
        )  # fmt: skip
    else:
        symbol, size = _SYMBOLS[mark.shape]
        hollow = mark.shape in ("ring", "diamond")
        axes.plot(
            at, down, symbol, markersize=size, markeredgewidth=1.3 if mark.shape == "tick" else 1.0,
            color="white" if hollow else tint, markeredgecolor=tint, label=label, zorder=order,
            clip_on=False,
        )  # fmt: skip


def _numbers(block: Ranking, axes: Axes, span: float) -> None:
    column, places = block.table[block.written], _places(block)
    there = [(row, value) for row, value in enumerate(column.values) if not missing(value)]
    own, all_marks = (
        [_reach(block, row, -1 if value < 0 else 1, shapes) for row, value in there]
        for shapes in (("bar",), tuple(each.shape for each in block.marks))
    )
    apart = any(bar[0] > 0 and bar[0] < every[0] for bar, every in zip(own, all_marks, strict=True))
    column_at = max((_reach(block, row, 1, None)[0] for row, _ in there), default=0.0) + 0.045 * span
    for (row, value), (reach, gap) in zip(there, all_marks, strict=True):
        side = 1 if apart or value >= 0 else -1
        tints = [TINTS[mark.tint] for mark in block.marks if mark.shape == "bar" and mark.ends(row)]
        axes.text(
            column_at if apart else side * (reach + gap * span), places[row] + 0.03, column.text(row),
            size=_NUMBER, va="center", zorder=6, ha="left" if side > 0 else "right",
            color=FAINT if row in block.faint else tints[0] if apart and tints else INK,
        )  # fmt: skip


def _reach(block: Ranking, row: int, side: int, shapes: Sequence[str] | None) -> tuple[float, float]:
    reach, gap = 0.0, 0.015
    for mark in block.marks:
        if mark.shape == "line" or (shapes is not None and mark.shape not in shapes):
            continue
        ends = [side * end for end in mark.ends(row)]
        if ends and max(ends) > reach:
            reach, gap = max(ends), 0.015 if mark.shape in ("bar", "band") else 0.035
    return reach, gap


_WIDE, _HIGH, _LEFT, _CURVE_BELOW = 2.8, 2.3, 0.55, 0.4  # inches: the axes, the room for numbers and words
_MARKERS = "osD^vP"


def curve_panel(block: Curve) -> Panel:
    """Panel of a curve, of fixed size, with room for the legend above."""
    return Panel(
        title=block.title,
        says=block.says,
        width=_WIDE,
        height=_HIGH,
        left=_LEFT,
        above=lines_of_key(block.key(), _WIDE) * 1.2 * line_height(SAYS) + 0.08,
        below=_CURVE_BELOW,
        right=0.1,
        draw=lambda axes: draw_curve(block, axes),
        key=block.key(),
        least=0.6,
    )


def draw_curve(block: Curve, axes: Axes) -> None:
    """Draw lines, bands and points over the rows' numbers; zero and the chosen rows are marked."""
    low, high = block.extent()
    places = np.array(block.places, float)
    joined = [each for each in block.lines if each.shape == "line"]
    for line in block.lines:
        marker = _MARKERS[joined.index(line) % len(_MARKERS)] if line in joined else ""
        _draw_lines(line, places, marker, axes)
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


def _draw_lines(line: Line, places: np.ndarray, marker: str, axes: Axes) -> None:
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
