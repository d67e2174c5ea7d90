"""Panels: a block's axes, the room for their labels, and the function that draws them.

Legends, row names and frames of axes are here too, and two panels of words alone: linked columns, and
sentences with their questions and figures.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from attnscope.render.kit.palette import FAINT, INK, PAPER
from attnscope.render.kit.typesetting import line_height, text_width, wrapped
from attnscope.render.look import look_now
from attnscope.render.sheet.blocks import Linked, Statement, Statements
from attnscope.render.sheet.table import Scale

TITLE, SAYS, TICK, SMALL = 8.5, 6.5, 7.0, 6.5  # points


@dataclass(frozen=True)
class Panel:
    """Axes of `width` by `height` inches under a title, with room around them for their labels.

    `key` are the labels of its legend; panels side by side with the same key show it once. On a small page
    the axes may shrink to `least` of both sides and stay legible.
    """

    title: str
    says: str
    width: float
    height: float
    draw: Callable[[Axes], None]
    left: float = 0.0
    above: float = 0.0
    below: float = 0.0
    right: float = 0.0
    key: tuple[str, ...] = ()
    least: float = 1.0

    @property
    def words(self) -> tuple[tuple[str, float, str], ...]:
        """Heading lines of the panel: text, size in points, weight."""
        told = (self.title, TITLE, "bold"), (self.says, SAYS, "normal")
        return () if look_now().bare else tuple(each for each in told if each[0])

    @property
    def wide(self) -> float:
        titles = (text_width(text, size, weight == "bold") for text, size, weight in self.words)
        return max(self.left + self.width + self.right, *titles, 0.0)

    @property
    def head(self) -> float:
        """Inches from the top of the panel to its axes."""
        return sum(line_height(size) for _, size, _ in self.words) + (0.06 if self.words else 0) + self.above

    @property
    def high(self) -> float:
        return self.head + self.height + self.below


def inches(axes: Axes) -> tuple[float, float]:
    """Width and height of axes in inches."""
    place, (wide, high) = axes.get_position(), axes.figure.get_size_inches()  # type: ignore[union-attr]
    return float(place.width * wide), float(place.height * high)


def colours(scale: Scale) -> LinearSegmentedColormap:
    """The matplotlib colour map of a scale."""
    return LinearSegmentedColormap.from_list("", scale.anchors)


def key_above(axes: Axes, labels: Sequence[str], room: float) -> None:
    """Draw a legend above axes that are `room` wide, with as many labels side by side as fit."""
    if not labels:
        return
    handles, told = axes.get_legend_handles_labels()
    axes.legend(
        [handles[told.index(each)] for each in labels], labels, loc="lower left", bbox_to_anchor=(-0.02, 1.0),
        ncols=_abreast(labels, room)[0], fontsize=SAYS, frameon=False, borderaxespad=0.1, handlelength=1.6,
        labelspacing=0.2, columnspacing=1.2,
    )  # fmt: skip


def lines_of_key(labels: Sequence[str], room: float) -> int:
    """Number of lines of a legend's labels."""
    return math.ceil(len(labels) / _abreast(labels, room)[0])


def width_of_key(labels: Sequence[str], room: float) -> float:
    """Width of a legend's labels in inches."""
    return _abreast(labels, room)[1]


def _abreast(labels: Sequence[str], room: float) -> tuple[int, float]:
    across, wide = 1, 0.0
    for tried in (1, 2, 3):
        down = math.ceil(len(labels) / tried)
        columns = [labels[k : k + down] for k in range(0, len(labels), down or 1)]
        needed = sum(max(text_width(each, SAYS) for each in column) + 0.45 for column in columns)
        if tried == 1 or needed < room + 0.1:
            across, wide = max(len(columns), 1), needed
    return across, wide


def only_spines(axes: Axes, *kept: str) -> None:
    """Hide the frame around `axes` but for the `kept` edges."""
    for name, spine in axes.spines.items():
        spine.set_visible(name in kept)
        spine.set_color(FAINT)


def named_rows(axes: Axes, names: Sequence[str], places: Sequence[int], measured: str, size: float) -> None:
    """Name rows at their places from top to bottom, over one axis labelled `measured`."""
    axes.set_ylim((places[-1] if places else 0) + 0.6, -0.6)
    axes.set_yticks(places, names, size=size)
    axes.tick_params(axis="y", length=0, pad=5, colors=INK)  # clear of a ring at 0
    axes.tick_params(axis="x", labelsize=size, length=2, colors=INK)
    axes.set_xlabel(measured, size=size, color=INK)
    only_spines(axes, "bottom")


_WIDTH, _BETWEEN = 6.4, 0.1  # inches: of a line, between two sentences
_TEXT = 8.0
_Line = tuple[str, float, str, str]  # text, size, weight and colour


def statements_panel(block: Statements) -> Panel:
    """Panel of sentences, as high as its lines."""
    told = [_lines(each) for each in block.statements]
    height = sum(line_height(size) for lines in told for _, size, _, _ in lines)
    height += _BETWEEN * max(len(told) - 1, 0)

    def draw(axes: Axes) -> None:
        axes.set_axis_off()
        below = 0.0
        for lines in told:
            for text, size, weight, color in lines:
                below += line_height(size)
                axes.text(
                    0.0, 1 - below / height, text, size=size, weight=weight, color=color, va="bottom",
                    transform=axes.transAxes, parse_math=False,
                )  # fmt: skip
            below += _BETWEEN

    return Panel(block.title, "", _WIDTH, max(height, 0.1), draw)


def _lines(told: Statement) -> list[_Line]:
    parts = ((told.question, TITLE, "bold", INK), (told.sentence, _TEXT, "normal", INK))
    return [
        (line, size, weight, color)
        for text, size, weight, color in (*parts, (told.figures, SMALL, "normal", FAINT))
        for line in (wrapped(text, _WIDTH, size, weight == "bold") if text else ())
    ]


_ROW, _COLUMNS = 0.19, 1.6  # inches: of a word down, between the columns
_FAINTEST, _GAP = 0.25, 0.04


def linked_panel(block: Linked) -> Panel:
    """Panel of two columns of words, as high as the longer column."""
    rows = max(len(block.left), len(block.right))
    return Panel(
        block.title,
        block.says,
        width=_COLUMNS,
        height=_ROW * rows,
        left=max(text_width(each, TICK) for each in (*block.left, block.sides[0])) + 0.1,
        above=0.18,
        below=0.02,
        draw=lambda axes: _draw_linked(block, axes),
        right=max(text_width(each, TICK) for each in (*block.right, block.sides[1])) + 0.1,
        least=0.6,
    )


def _draw_linked(block: Linked, axes: Axes) -> None:
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(1, 0)
    for words, side, x, align in ((block.left, 0, -_GAP, "right"), (block.right, 1, 1 + _GAP, "left")):
        axes.text(
            x, -0.01, block.sides[side], size=SMALL, color=FAINT, ha=align, va="bottom", parse_math=False
        )
        for i, word in enumerate(words):
            axes.text(
                x, _down(i, len(words)), word, size=TICK, color=INK, ha=align, va="center", parse_math=False
            )
    for tie in block.ties:
        axes.plot(
            [0, 1],
            [_down(tie.left, len(block.left)), _down(tie.right, len(block.right))],
            color=PAPER["light"]["line"],
            alpha=_FAINTEST + (1 - _FAINTEST) * tie.strength,
            linewidth=0.6 + 1.6 * tie.strength,
            linestyle=(0, (3, 2)) if tie.broken else "-",
            solid_capstyle="round",
        )


def _down(place: int, count: int) -> float:
    return (place + 0.5) / count
