"""What pictures have in common: inks, the room that axes need, and lines of words placed to the inch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from rich.color_triplet import ColorTriplet

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.kit.palette import INK, readable_on
from attnscope.render.kit.typesetting import line_height

EDGE = 1 + 1e-9  # so that no side ends a hair below a whole number of dots


@dataclass(frozen=True)
class Frame:
    """Width and height of the axes, and the room for tick labels and axis words around them.

    On a page that is too small they may have this share of both, and what is drawn on them has room still.
    """

    width: float
    height: float
    left: float
    top: float
    share: float = 1.0


@dataclass(frozen=True)
class Line:
    """One line around a picture, its size in points."""

    text: str
    size: float
    weight: str = "normal"
    color: str = INK


def write_lines(figure: Figure, lines: Sequence[Line], left: float, top: float) -> None:
    """Lines one under the other from `top`, in inches from the lower left corner of the page."""
    width, height = figure.get_size_inches()
    for line in lines:
        top -= line_height(line.size)
        place = (left / width, (top + 0.25 * line_height(line.size)) / height)
        text = printable(line.text, LEFT_TO_RIGHT)
        figure.text(*place, text, size=line.size, weight=line.weight, color=line.color, parse_math=False)


def ink_on(drawn: ScalarMappable, value: float) -> str:
    """Black or white, whichever is easier to read on the colour of `value`."""
    red, green, blue, _ = drawn.to_rgba(np.array([value]), bytes=True)[0].tolist()
    return readable_on(ColorTriplet(red, green, blue)).hex
