"""A panel: the axes of one block, the room that its labels need, and what draws it.

What stands around bars is said here too: the names of their rows, and the edges of the frame that are left.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from attnscope.render.kit.palette import FAINT, INK
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.look import look_now
from attnscope.render.sheet.scale import Scale

TITLE, SAYS, TICK, SMALL = 8.5, 6.5, 7.0, 6.5  # points


@dataclass(frozen=True)
class Panel:
    """Axes of `width` by `height` inches under a title, with so much room around them for their labels.

    `key` are the labels of its marks: of panels side by side with the same key one shows it. On a page that
    is too small its axes may have the share `least` of both sides, and can still be read.
    """

    title: str
    says: str
    width: float
    height: float
    left: float
    above: float
    below: float
    draw: Callable[[Axes], None]
    right: float = 0.0
    key: tuple[str, ...] = ()
    least: float = 1.0

    @property
    def words(self) -> tuple[tuple[str, float, str], ...]:
        """The lines above it: text, size in points, weight."""
        told = (self.title, TITLE, "bold"), (self.says, SAYS, "normal")
        return () if look_now().bare else tuple(each for each in told if each[0])

    @property
    def wide(self) -> float:
        titles = (text_width(text, size, weight == "bold") for text, size, weight in self.words)
        return max(self.left + self.width + self.right, *titles, 0.0)

    @property
    def head(self) -> float:
        """From the top of the panel to its axes."""
        return sum(line_height(size) for _, size, _ in self.words) + (0.06 if self.words else 0) + self.above

    @property
    def high(self) -> float:
        return self.head + self.height + self.below


def inches(axes: Axes) -> tuple[float, float]:
    """Width and height of axes, on whatever page."""
    place, (wide, high) = axes.get_position(), axes.figure.get_size_inches()  # type: ignore[union-attr]
    return float(place.width * wide), float(place.height * high)


def colours(scale: Scale) -> LinearSegmentedColormap:
    """The colours of a scale, from its low end to its high one."""
    return LinearSegmentedColormap.from_list("", scale.anchors)


def key_above(axes: Axes, labels: Sequence[str], room: float) -> None:
    """What each mark is, above axes that are `room` wide, as many side by side as have room."""
    if not labels:
        return
    handles, told = axes.get_legend_handles_labels()
    axes.legend(
        [handles[told.index(each)] for each in labels], labels, loc="lower left", bbox_to_anchor=(-0.02, 1.0),
        ncols=_abreast(labels, room)[0], fontsize=SAYS, frameon=False, borderaxespad=0.1, handlelength=1.6,
        labelspacing=0.2, columnspacing=1.2,
    )  # fmt: skip


def lines_of_key(labels: Sequence[str], room: float) -> int:
    """How many lines the labels of a key take."""
    return math.ceil(len(labels) / _abreast(labels, room)[0])


def width_of_key(labels: Sequence[str], room: float) -> float:
    """How many inches the labels of a key take."""
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
    """Of the frame around `axes` only the `kept` edges."""
    for name, spine in axes.spines.items():
        spine.set_visible(name in kept)
        spine.set_color(FAINT)


def named_rows(axes: Axes, names: Sequence[str], places: Sequence[int], measured: str, size: float) -> None:
    """One row below the other, at its place and by its name, over one axis that says what is measured."""
    axes.set_ylim((places[-1] if places else 0) + 0.6, -0.6)
    axes.set_yticks(places, names, size=size)
    axes.tick_params(axis="y", length=0, pad=5, colors=INK)  # clear of a ring at 0
    axes.tick_params(axis="x", labelsize=size, length=2, colors=INK)
    axes.set_xlabel(measured, size=size, color=INK)
    only_spines(axes, "bottom")
