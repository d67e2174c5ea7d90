"""One query's weights on Axes: a bar for each key, in the order of the text, or the strongest of many.

Above the bars is the whole row of a long text as a strip, or the matrix with the row and a key marked.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attnscope.render.kit.cells import clusters, fit
from attnscope.render.kit.numbers import descending, weight
from attnscope.render.kit.palette import CHOSEN, FAINT, INK, PAPER, Scale, scale_of
from attnscope.render.kit.stage import Panel as Stage
from attnscope.render.kit.typesetting import line_height, text_width, tick
from attnscope.render.plot.heat import (
    MOST_NAMED,
    WEIGHTS,
    background,
    side,
    sparse,
    tick_step,
    token_labels,
    weight_norm,
)
from attnscope.render.plot.heat import panel as panel_of_matrix
from attnscope.render.plot.panel import Panel
from attnscope.render.sheet.blocks import KeyBars, as_panel
from attnscope.tokens import Tokens

STRIP, HIGH = 0.34, 1.7  # inches
_LEFT, _BETWEEN = 0.62, 0.3  # inches: the numbers of the weights, from one part to the next
_NARROWEST = 3.2
MOST_STRONGEST = 25  # bars of a text whose keys are not all named
_STRIP_DOTS, _DOTS = 1400, 200
_NUMBERED = 30  # bars at most that carry their weight
_WIDEST = 16  # characters of a label
_SIZE, _NUMBER = 8.0, 6.5  # points
_APART = 0.03  # inches at least between two numbers


def panel(block: KeyBars, alone: bool = False) -> Panel:
    """Panel of the bars; alone, under the matrix in which the row is marked, or under a strip."""
    assert block.matrix is not None, "a row of a matrix"
    row = row_of(as_panel(block.matrix), block.query, block.pointed)
    bars = Panel(
        title=block.title,
        says=row.hatching,
        width=max(row.wide * len(row.keys), _NARROWEST),
        height=HIGH,
        left=_LEFT,
        above=0.1,
        below=row.below,
        draw=partial(draw_row, row),
    )
    if alone or (row.whole and not block.above):
        return bars
    if not block.above:
        return replace(
            bars,
            says=" · ".join(
                filter(
                    None,
                    (f"strip: the whole row{row.scale.told and ', colours: '}{row.scale.told}", row.hatching),
                )
            ),
            width=strip_width(len(row.tokens)),
            height=STRIP + _BETWEEN + HIGH,
            above=strip_room(row),
            draw=partial(_under_strip, row),
        )
    whole = panel_of_matrix(block.matrix)
    return replace(
        whole,
        title=block.title,
        says=" · ".join(filter(None, (whole.says, "" if "hatched" in whole.says else row.hatching))),
        height=whole.height + _BETWEEN + HIGH,
        left=max(whole.left, _LEFT),
        below=row.below,
        draw=partial(_under_matrix, row, whole),
    )


def _under_strip(row: "Row", host: Axes) -> None:
    host.set_axis_off()
    height = STRIP + _BETWEEN + HIGH
    draw_strip(row, host.inset_axes((0, 1 - STRIP / height, 1, STRIP / height)))
    draw_row(row, host.inset_axes((0, 0, 1, HIGH / height)))


def _under_matrix(row: "Row", whole: Panel, host: Axes) -> None:
    host.set_axis_off()
    height = whole.height + _BETWEEN + HIGH
    heat = host.inset_axes((0, 1 - whole.height / height, 1, whole.height / height))
    whole.draw(heat)
    mark(row, heat)
    draw_row(row, host.inset_axes((0, 0, 1, HIGH / height)))


@dataclass(frozen=True, eq=False)
class Row:
    """The weights of one query of a panel and the keys that are drawn, in order; `key` is marked."""

    shown: Stage
    query: int
    key: int | None
    keys: list[int]

    @property
    def tokens(self) -> Tokens:
        return self.shown.keys

    @property
    def whole(self) -> bool:
        """True where all keys are drawn."""
        return len(self.keys) == len(self.tokens)

    @property
    def labels(self) -> list[str]:
        if self.whole:
            return token_labels(self.tokens)
        return [f"{self.tokens.positions[key]} {fit(self.tokens.names[key], _WIDEST)}" for key in self.keys]

    @property
    def wide(self) -> float:
        """Inches of one bar with its gap: as wide as a column of the heat map."""
        return side(len(self.keys)) if self.whole else 0.26

    @property
    def size(self) -> float:
        """Font size of the labels in points."""
        return min(_SIZE, self.wide * 72 * 0.7)

    @property
    def turned(self) -> bool:
        return max(text_width(label, self.size) for label in self.labels) > self.wide - 0.04

    @property
    def below(self) -> float:
        """Inches of the labels and the axis word."""
        longest = max(text_width(label, self.size) for label in self.labels)
        return (longest if self.turned else line_height(self.size)) + 0.3

    @property
    def hatching(self) -> str:
        """Legend of hatched bars; empty where none is masked."""
        return "" if self.shown.visible[self.query, self.keys].all() else "hatched: masked"

    @property
    def scale(self) -> Scale:
        """The scale of the row alone."""
        one = slice(self.query, self.query + 1)
        return scale_of(self.shown.values[one], self.shown.visible[one], self.shown.scale.kind)


def row_of(shown: Stage, query: int, key: int | None = None) -> Row:
    """The row of a query: all keys where few, else the strongest, and always `key`."""
    count = shown.values.shape[1]
    if count <= MOST_NAMED:
        return Row(shown, query, key, list(range(count)))
    ranked = [each for each in descending(shown.values[query]) if shown.visible[query, each]]
    further = [key] if key is not None and key not in ranked[:MOST_STRONGEST] else []
    return Row(shown, query, key, [*ranked[:MOST_STRONGEST], *further])


def draw_row(row: Row, axes: Axes) -> None:
    """Draw the bars with their keys below; masked keys are hatched, `key` stands out."""
    weights = row.shown.values[row.query, row.keys]
    visible = row.shown.visible[row.query, row.keys]
    places = np.arange(len(row.keys)) + 0.5
    inks = [CHOSEN if key == row.key else PAPER["light"]["line"] for key in row.keys]
    axes.bar(places, np.where(visible, weights, 0.0), width=0.76, color=inks, label="weight", zorder=2)
    top = 1.18 * float(weights[visible].max(initial=0.0)) or 1.0
    for place in places[~visible]:
        style = {"facecolor": "#f3f3f3", "edgecolor": "#d8d8d8", "hatch": "/////", "linewidth": 0}
        axes.add_patch(Rectangle((place - 0.5, 0), 1, top, zorder=0, **style))  # type: ignore[arg-type]
    if len(row.keys) <= _NUMBERED:
        numbers = [weight(float(high), 2 if high >= 0.1 else 3) for high in weights[visible]]
        widest = max((text_width(each, _NUMBER) for each in numbers), default=0.0)
        size = _NUMBER * min(1.0, (row.wide - _APART) / (widest or 1.0))
        for place, high, told in zip(places[visible], weights[visible], numbers, strict=True):
            axes.text(place, high + 0.015 * top, told, ha="center", va="bottom", size=size, color=INK)
    axes.set(xlim=(0, len(row.keys)), ylim=(0, top))
    _axes_of(row, axes)


def _axes_of(row: Row, axes: Axes) -> None:
    places = np.arange(len(row.keys)) + 0.5
    axes.set_xticks(places, row.labels, size=row.size, parse_math=False)
    axes.tick_params(axis="x", length=0, pad=3, colors=INK)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(tick)
    axes.tick_params(axis="y", labelsize=7, length=2, colors=INK)
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    for text, key in zip(axes.get_xticklabels(), row.keys, strict=True):
        text.set_rotation(90 if row.turned and len(clusters(text.get_text())) > 1 else 0)
        if key == row.key:
            text.set(color=CHOSEN, weight="bold")
    axes.set_ylabel("attention weight", size=_SIZE, color=INK)
    axes.set_xlabel("key" if row.whole else "key, strongest first", size=_SIZE, color=INK, labelpad=4)
    for name, spine in axes.spines.items():
        spine.set_visible(name == "bottom")
        spine.set_color(FAINT)
    if not row.shown.answered[row.query]:
        place = (len(row.keys) / 2, 0.5)
        axes.text(*place, row.shown.unanswered, ha="center", va="center", size=_SIZE, color=FAINT)


def strip_width(keys: int) -> float:
    """Inches of a strip whose keys are whole dots."""
    return max(_STRIP_DOTS // keys, 1) * keys / _DOTS


def draw_strip(row: Row, axes: Axes) -> None:
    """Draw the whole row as one line of cells, with some of the keys named above."""
    count, scale = len(row.tokens), row.scale
    background((1, count), axes)
    one = slice(row.query, row.query + 1)
    values = np.where(row.shown.visible[one], row.shown.values[one], np.nan)
    axes.pcolormesh(
        np.arange(count + 1), [0, 1], np.ma.masked_invalid(values), cmap=WEIGHTS, norm=weight_norm(scale),
        rasterized=True,
    )  # fmt: skip
    axes.set(xlim=(0, count), ylim=(1, 0), yticks=[])
    every = tick_step(max(_STRIP_DOTS // count, 1) / _DOTS)
    names = [f"{row.tokens.positions[i]} {fit(row.tokens.names[i], 12)}" for i in range(count)]
    named = [i for i, label in enumerate(sparse(names, every)) if label]
    axes.set_xticks(
        [i + 0.5 for i in named], [names[i] for i in named], size=6.5, rotation=90, parse_math=False
    )
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=2.5, pad=2, colors=INK)
    axes.spines[:].set_visible(False)


def strip_room(row: Row) -> float:
    """Largest height in inches of the names above a strip."""
    return max(text_width(f"{i} {fit(name, 12)}", 6.5) for i, name in enumerate(row.tokens.names)) + 0.1


def mark(row: Row, axes: Axes) -> None:
    """Outline the row, and the column of `key`, on the heat map of the whole matrix."""
    rows, columns = row.shown.values.shape
    style = {"fill": False, "edgecolor": CHOSEN, "linewidth": 1.3, "clip_on": False, "zorder": 5}
    axes.add_patch(Rectangle((0, row.query), columns, 1, label="query", **style))  # type: ignore[arg-type]
    if row.key is not None:
        axes.add_patch(Rectangle((row.key, 0), 1, rows, label="key", **style))  # type: ignore[arg-type]
