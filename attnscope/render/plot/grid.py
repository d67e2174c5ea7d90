"""Grids of all heads on Axes, layers down and heads across: a number each, or a small matrix of weights."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.patches import Rectangle

from attnscope.render.kit.palette import FAINT, INK, OUTLINES, TINTS
from attnscope.render.kit.typesetting import text_width
from attnscope.render.kit.words import GLYPHS
from attnscope.render.plot.heat import WEIGHTS, weight_norm
from attnscope.render.plot.panel import SMALL, TICK, Panel, colours, inches, only_spines
from attnscope.render.sheet.heads import Companion, HeadGrid, HeadMatrices

_NUMBER, _SMALL, _LEAST_NUMBER = 6.0, 5.0, 5.5  # points: of a number, what is below it, of many heads
_CELL = (0.32, 0.24)  # inches of a cell at least
_LONGEST = 40  # cells of a text below a number
_UNDER, _WIDEST = 0.12, 0.78  # inches that a cell is higher with a text below its number, and wide at most
_FEW, _MANY = 16, 40  # heads of a layer that have numbers: in one of several grids, in the only one
_LARGE, _PAGE = 5.2, 12.6  # inches of a grid without numbers, and of one with a text below its numbers
_ROOM = 5.0  # inches that every page has for a grid


@dataclass(frozen=True)
class _Cells:
    """Size of a grid's cell in inches, and whether it has a number and a text below."""

    wide: float
    high: float
    number: float = 0.0
    below: bool = False


def panel(block: HeadGrid, alone: bool = False) -> Panel:
    """Panel of a grid of heads, sized for its numbers, or smaller where there are many heads."""
    cells = _cells(block, alone)
    return Panel(
        title=block.heading,
        says="; ".join(each for each in (block.says, *_meant(block, cells)) if each),
        width=cells.wide * len(block.heads),
        height=cells.high * len(block.layers),
        left=text_width(f"L{max(block.layers)}", TICK) + 0.1,
        above=0.2,
        below=0.4,
        draw=lambda axes: draw(block, axes, cells),
    )


def _cells(block: HeadGrid, alone: bool) -> _Cells:
    heads = len(block.heads)
    if heads > (_MANY if alone else _FEW):
        side = max(_LARGE / heads, 0.03)
        return _Cells(side, side)
    if heads > _FEW:
        return _Cells(*_CELL, _LEAST_NUMBER)
    wide = max(_CELL[0], *(text_width(block.text(*place), _NUMBER) + 0.1 for place in block.places))
    if block.companion is not None:
        texts = (block.companion.text(*place, _LONGEST) for place in block.places)
        most = max(_WIDEST, _ROOM / heads) if alone else _WIDEST
        under = min(max(max(text_width(each, _SMALL) + 0.06 for each in texts), wide), most)
        if under * heads <= _PAGE:
            return _Cells(under, _CELL[1] + _UNDER, _NUMBER, below=True)
    return _Cells(wide, _CELL[1], _NUMBER)


def _meant(block: HeadGrid, cells: _Cells) -> Iterator[str]:
    meant = zip(block.scale.shades, block.scale.ends, strict=True)
    yield ", ".join(f"{shade} {end}" for shade, end in meant if end)
    if cells.below and block.companion is not None:
        yield f"below each number: {block.companion.label}"
    if None in block.outlined.values():
        yield f"outlined: {block.beyond[0]}"
    if any(block.outlined.values()):
        yield "outlined: not certified"


def draw(block: HeadGrid, axes: Axes, cells: _Cells) -> None:
    """Draw the coloured cells, their numbers where these are legible, and the colour bar."""
    (layers, heads), scale = block.values.shape, block.scale
    if inches(axes)[0] < 0.95 * cells.wide * heads:  # on axes of whoever asked for it
        cells = replace(cells, below=False)
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(block.values), cmap=colours(scale), vmin=scale.low, vmax=scale.high,
        edgecolors="white", linewidth=0.6 if cells.number else 0.2,
    )  # fmt: skip
    axes.set(xlim=(0, heads), ylim=(layers, 0))
    for place in block.places if cells.number else ():
        _write(block, axes, place, cells)
    for (i, j), verdict in block.outlined.items():
        colour = TINTS["limit"] if verdict is None else OUTLINES[verdict]
        axes.add_patch(Rectangle((j + 0.04, i + 0.06), 0.92, 0.88, fill=False, lw=1.3, edgecolor=colour))
    if block.itself is not None:
        row, column = block.itself
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=INK, edgecolor="white", linewidth=0.6))
        axes.axhspan(row + 0.02, row + 0.98, facecolor="#eeeeee", zorder=0)
    _name_heads(block, axes)
    colour_bar(mesh, axes, list(zip((scale.low, scale.high), block.ends, strict=True)))


def _write(block: HeadGrid, axes: Axes, place: tuple[int, int], cells: _Cells) -> None:
    doubt = block.doubt(*place)
    if not (text := block.text(*place) or ("" if doubt is None else GLYPHS[doubt])):
        return
    if cells.below and doubt is not None:
        text = f"{block.text(*place)} {GLYPHS[doubt]}".strip()
    (i, j), ink = place, block.scale.paper(float(block.values[place]))[1]
    middle: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
    axes.text(j + 0.5, i + (0.34 if cells.below else 0.52), text, size=cells.number, **middle)
    if cells.below and block.companion is not None:
        below = _fitting(block.companion, i, j, cells.wide - 0.06)
        axes.text(j + 0.5, i + 0.73, below, size=_SMALL, parse_math=False, **middle)


def _fitting(companion: Companion, i: int, j: int, width: float) -> str:
    texts = (companion.text(i, j, cells) for cells in range(_LONGEST, 3, -1))
    return next((text for text in texts if text_width(text, _SMALL) <= width + 1e-6), companion.short(i, j))


def _name_heads(block: HeadGrid | HeadMatrices, axes: Axes) -> None:
    width, height = inches(axes)
    across = range(0, len(block.heads), math.ceil(0.26 * len(block.heads) / width))
    down = range(0, len(block.layers), math.ceil(0.13 * len(block.layers) / height))
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    axes.set_xticks([j + 0.5 for j in across], [f"H{block.heads[j]}" for j in across], size=TICK)
    axes.set_yticks([i + 0.5 for i in down], [f"L{block.layers[i]}" for i in down], size=TICK)
    only_spines(axes)


def colour_bar(drawn: ScalarMappable, axes: Axes, ticks: Sequence[tuple[float, str]]) -> None:
    """Draw a small colour bar under axes, with its ticks and their texts."""
    figure, place = axes.figure, axes.get_position()
    wide, high = figure.get_size_inches()  # type: ignore[union-attr]
    width = min(1.5, place.width * wide)
    inset = figure.add_axes((place.x0, place.y0 - 0.2 / high, width / wide, 0.08 / high))
    bar = figure.colorbar(drawn, cax=inset, orientation="horizontal")  # type: ignore[union-attr]
    bar.outline.set_visible(False)  # type: ignore[operator]
    places, texts = zip(*ticks, strict=True)
    bar.set_ticks(places, labels=texts)
    bar.minorticks_off()
    inset.tick_params(labelsize=SMALL, length=2, pad=1.5, colors=INK, labelcolor=FAINT)


_WIDTH, _MOST, _LEAST = 11.0, 0.95, 0.2  # inches: of all heads about, of one at most and at least
_BETWEEN = 0.07  # between two heads, of a head
_MASKED, _EDGE = "#ececec", "#b8b8b8"


def panel_of_weights(block: HeadMatrices) -> Panel:
    """Panel of small weight matrices, one per head, with the names of layers and heads."""
    cell = max(min(_WIDTH / len(block.heads), _MOST), _LEAST)
    said = [block.says]
    said += ["grey: masked"] if np.isnan(block.values).any() else []
    doubted = any(each.stands_out for row in block.verdicts for each in row)
    said += ["outlined: not certified"] if doubted else []
    return Panel(
        title=block.title,
        says=" · ".join(filter(None, said)),
        width=cell * len(block.heads),
        height=cell * len(block.layers),
        left=text_width(f"L{max(block.layers)}", TICK) + 0.1,
        above=0.2,
        below=0.4,
        draw=lambda axes: draw_weights(block, axes),
    )


def draw_weights(block: HeadMatrices, axes: Axes) -> None:
    """Draw every head from `(j, i)` to `(j + 1, i + 1)`, first query on top, first key at the left."""
    norm, drawn = weight_norm(block.scale), None
    axes.set(xlim=(0, len(block.heads)), ylim=(len(block.layers), 0))
    for i, j in np.ndindex(block.values.shape[:2]):
        left, right, top, bottom = (
            j + _BETWEEN / 2,
            j + 1 - _BETWEEN / 2,
            i + _BETWEEN / 2,
            i + 1 - _BETWEEN / 2,
        )
        drawn = axes.imshow(
            np.ma.masked_invalid(block.values[i, j]), cmap=WEIGHTS, norm=norm, zorder=1, aspect="auto",
            extent=(left, right, bottom, top), interpolation="nearest",
        )  # fmt: skip
        verdict = block.verdicts[i][j]
        edge, width = (OUTLINES[verdict], 1.5) if verdict.stands_out else (_EDGE, 0.4)
        place = (left, top), 1 - _BETWEEN, 1 - _BETWEEN
        axes.add_patch(Rectangle(*place, facecolor=_MASKED, zorder=0))
        axes.add_patch(Rectangle(*place, fill=False, edgecolor=edge, linewidth=width, zorder=2))
    assert drawn is not None, "there is at least one head"
    _name_heads(block, axes)
    colour_bar(drawn, axes, block.scale.ticks)
