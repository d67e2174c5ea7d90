"""Messages of a chat as stretches beside the axes of a matrix: a line along each, with whose it is."""

from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.palette import FAINT, INK
from attnscope.render.kit.typesetting import text_width
from attnscope.tokens import Section

BAND = 11.0  # points between a matrix and the names of its rows or columns
_LINE, _NAME, _SIZE = 2.5, 6.5, 6.0  # points: from the matrix, and of the letters
_GAP = 0.12  # of a cell, between two messages


def draw_sections(axes: Axes, which: Literal["x", "y"], sections: Sequence[Section], cell: float) -> None:
    """A line for each along one side, its name where that has room; a cell is so many inches long."""
    dots = axes.get_figure(root=True).dpi_scale_trans  # type: ignore[union-attr]

    def off(points: float) -> ScaledTranslation:
        across, up = (0.0, points / 72) if which == "x" else (-points / 72, 0.0)
        return ScaledTranslation(across, up, dots)

    along = axes.transData
    edge = blended_transform_factory(*((along, axes.transAxes) if which == "x" else (axes.transAxes, along)))
    side = 1.0 if which == "x" else 0.0
    for each in sections:
        start, end = each.first + _GAP, each.first + each.count - _GAP
        middle, room = (start + end) / 2, (end - start) * cell
        ends = ((start, end), (side, side)) if which == "x" else ((side, side), (start, end))
        axes.plot(*ends, color=FAINT, linewidth=1.6, clip_on=False, transform=edge + off(_LINE), zorder=4)
        name = settled(each.name)
        name = next((cut for most in range(len(name), 2, -1) if _fits(cut := fit(name, most), room)), "")
        place = (middle, side) if which == "x" else (side, middle)
        axes.text(
            *place, name, transform=edge + off(_NAME), size=_SIZE, color=INK, ha="center", va="center",
            rotation=0 if which == "x" else 90, parse_math=False,
        )  # fmt: skip


def _fits(name: str, room: float) -> bool:
    return text_width(name, _SIZE) <= room
