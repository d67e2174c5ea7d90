"""Every head that was checked on an Axes: layers by heads, how far the faintest mistake would have stood out.

`draw_checks` may be used on any Axes; how large that should be is `checks_frame`'s answer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle

from attnscope.render.kit.figure.page import INK, Frame, ink_on
from attnscope.render.kit.typesetting import text_width
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.sheet.scale import OUTLINES
from attnscope.results import Certificate, LayerCheck, Verdict, Verification
from attnscope.tokens import printable

HEADINGS = 0.5  # inches above the cells
POWERS = 6  # of ten: a power beyond a million says no more than that
_CELLS = ((16, (0.4, 0.3)), (40, (0.3, 0.24)))  # width and height of a cell, by how many heads there are
_WIDEST = 11.5
_NO_FAULT = "#d9d9d9"


@dataclass(frozen=True)
class Tower:
    """The layers of one attention and what they are called; of the blocks of a layer the worst counts."""

    title: str
    layers: tuple[int, ...]
    heads: tuple[tuple[Certificate, ...], ...]

    @property
    def widest(self) -> int:
        return max(map(len, self.heads))

    @property
    def powers(self) -> Float[np.ndarray, "layer head"]:
        """Power of ten by which the faintest fault lies above the tolerance, at most `POWERS`.

        NaN where no fault was tried, and where a layer has fewer heads.
        """
        grid = np.full((len(self.layers), self.widest), np.nan)
        for i, row in enumerate(self.heads):
            for j, each in enumerate(row):
                if each.faults and each.power > 0:
                    grid[i, j] = min(max(math.log10(each.power), 0.0), POWERS)
        return grid


def towers_of(result: Verification) -> list[Tower]:
    """The attentions in the order in which they were checked."""
    found: dict[tuple[str, str], dict[int, list[LayerCheck]]] = {}
    for check in result.layers:
        place = (check.tower, check.kind.value)
        found.setdefault(place, {}).setdefault(check.layer, []).append(check)
    kinds = [kind for _, kind in found]
    return [
        Tower(
            kind if kinds.count(kind) == 1 else printable(tower),
            tuple(layers),
            tuple(_worst_of(blocks) for blocks in layers.values()),
        )
        for (tower, kind), layers in found.items()
    ]


def _worst_of(blocks: Sequence[LayerCheck]) -> tuple[Certificate, ...]:
    """Of each head the certificate of that block which proves least."""
    heads = zip(*(block.certificates for block in blocks), strict=True)
    return tuple(max(each, key=lambda one: (one.verdict.rank, -one.power)) for each in heads)


def _cell(tower: Tower) -> tuple[float, float]:
    side = _WIDEST / tower.widest
    return next((cell for most, cell in _CELLS if tower.widest <= most), (side, min(side, 0.24)))


def checks_frame(tower: Tower, first: bool) -> Frame:
    """The size of the axes and the room for `L11` and `H11` beside them."""
    wide, high = _cell(tower)
    label = text_width(f"L{max(tower.layers)}", 8.0)
    left = label + (0.4 if first else 0.55)
    return Frame(wide * tower.widest, high * len(tower.layers), left=left, top=HEADINGS)


def draw_checks(tower: Tower, axes: Axes) -> QuadMesh:
    """A cell a head, the darker the further the faintest mistake stands out; its verdict where it is no best.

    Grey: no mistake could be tried. Returns what a colour bar is made for.
    """
    powers = tower.powers
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(powers), cmap="Greens", vmin=0, vmax=POWERS, edgecolors="white", linewidth=0.6
    )
    axes.set_xlim(0, tower.widest)
    axes.set_ylim(len(tower.layers), 0)
    for i, row in enumerate(tower.heads):
        for j, each in enumerate(row):
            _mark(axes, mesh, (i, j), each, float(powers[i, j]))
    _ticks(tower, axes)
    return mesh


def _mark(axes: Axes, mesh: QuadMesh, place: tuple[int, int], each: Certificate, power: float) -> None:
    row, column = place
    if math.isnan(power):
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=_NO_FAULT, edgecolor="white", linewidth=0.6))
    if each.verdict is Verdict.CERTIFIED:
        return
    outline = Rectangle((column + 0.06, row + 0.08), 0.88, 0.84, fill=False, linewidth=1.3)
    outline.set_edgecolor(OUTLINES[each.verdict])
    axes.add_patch(outline)
    ink = INK if math.isnan(power) else ink_on(mesh, power)
    box = axes.get_window_extent()
    size = min(7.5, 0.45 * 72 * box.height / axes.figure.dpi / max(axes.get_ylim()))
    axes.text(column + 0.5, row + 0.52, GLYPHS[each.verdict], ha="center", va="center", size=size, color=ink)


def _ticks(tower: Tower, axes: Axes) -> None:
    wide, high = _cell(tower)
    across, down = max(1, math.ceil(0.26 / wide)), max(1, math.ceil(0.13 / high))
    heads, layers = range(0, tower.widest, across), range(0, len(tower.layers), down)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=3, colors=INK)
    axes.set_xticks([j + 0.5 for j in heads], [f"H{j}" for j in heads], size=7)
    axes.set_yticks([i + 0.5 for i in layers], [f"L{tower.layers[i]}" for i in layers], size=8)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(f"{tower.title}: head", size=9, color=INK, labelpad=5)
    axes.set_ylabel("layer", size=9, color=INK, labelpad=5)
    axes.spines[:].set_visible(False)
