"""A number for every head on Axes: layers down, heads across, the scale below."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.patches import Rectangle

from attnscope.render.kit.figure.page import FAINT, INK
from attnscope.render.kit.frame import only_spines
from attnscope.render.kit.typesetting import text_width
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.plot.panel import SMALL, TICK, Panel, colours, inches
from attnscope.render.sheet.blocks import HeadGrid
from attnscope.render.sheet.scale import OUTLINES
from attnscope.results import Verdict

_MOST_NUMBERS = 16  # heads of a layer that have a number in every cell
_NUMBER = 6.0  # points
_LARGE = 5.2  # inches of a grid without numbers


def panel(block: HeadGrid) -> Panel:
    """As large as its numbers need; of many heads as large as can be taken in."""
    wide, high = _cell(block)
    return Panel(
        title=f"{block.title}, {block.unit}" if block.unit else block.title,
        says=block.says,
        width=wide * len(block.heads),
        height=high * len(block.layers),
        left=text_width(f"L{max(block.layers)}", TICK) + 0.1,
        above=0.2,
        below=0.4,
        draw=lambda axes: draw(block, axes),
    )


def _cell(block: HeadGrid) -> tuple[float, float]:
    heads = len(block.heads)
    if heads > _MOST_NUMBERS:
        return (max(_LARGE / heads, 0.03),) * 2
    numbers = block.values[~np.isnan(block.values)]
    text = max((text_width(block.form(float(each)), _NUMBER) for each in numbers), default=0.0)
    return max(text + 0.1, 0.32), 0.24


def draw(block: HeadGrid, axes: Axes) -> None:
    """Coloured cells, with their numbers where these can be read, and the scale below them."""
    (layers, heads), scale = block.values.shape, block.scale
    numbers = heads <= _MOST_NUMBERS
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(block.values), cmap=colours(scale), vmin=scale.low, vmax=scale.high,
        edgecolors="white", linewidth=0.6 if numbers else 0.2,
    )  # fmt: skip
    axes.set(xlim=(0, heads), ylim=(layers, 0))
    if numbers:
        for (i, j), value in np.ndenumerate(block.values):
            if not np.isnan(value):
                ink = scale.paper(float(value))[1]
                text = block.form(float(value))
                axes.text(j + 0.5, i + 0.52, text, ha="center", va="center", size=_NUMBER, color=ink)
    for i, j in np.ndindex(layers, heads):
        if (doubt := block.doubt(i, j)) is not None:
            _outline(axes, (i, j), doubt, written=numbers and bool(np.isnan(block.values[i, j])))
    if block.itself is not None:
        row, column = block.itself
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=INK, edgecolor="white", linewidth=0.6))
        axes.axhspan(row + 0.02, row + 0.98, facecolor="#eeeeee", zorder=0)
    _name_heads(block, axes)
    colour_bar(mesh, axes, (block.form(scale.low), block.form(scale.high)), scale.ends)


def _outline(axes: Axes, place: tuple[int, int], verdict: Verdict, written: bool) -> None:
    """A line around a head that is not certified, and its glyph where it has no number."""
    row, column = place
    edge = OUTLINES[verdict]
    axes.add_patch(
        Rectangle((column + 0.06, row + 0.08), 0.88, 0.84, fill=False, edgecolor=edge, linewidth=1.3)
    )
    if written:
        axes.text(column + 0.5, row + 0.52, GLYPHS[verdict], ha="center", va="center", size=_NUMBER)


def _name_heads(block: HeadGrid, axes: Axes) -> None:
    """Layers and heads by number, as many as have room."""
    width, height = inches(axes)
    across = range(0, len(block.heads), math.ceil(0.26 * len(block.heads) / width))
    down = range(0, len(block.layers), math.ceil(0.13 * len(block.layers) / height))
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    axes.set_xticks([j + 0.5 for j in across], [f"H{block.heads[j]}" for j in across], size=TICK)
    axes.set_yticks([i + 0.5 for i in down], [f"L{block.layers[i]}" for i in down], size=TICK)
    only_spines(axes)


def colour_bar(
    drawn: ScalarMappable, axes: Axes, ends: tuple[str, str], meant: tuple[str, str] = ("", "")
) -> None:
    """A small colour bar under axes, with what its ends are."""
    figure, place = axes.figure, axes.get_position()
    wide, high = figure.get_size_inches()  # type: ignore[union-attr]
    width = min(1.5, place.width * wide)
    inset = figure.add_axes((place.x0, place.y0 - 0.2 / high, width / wide, 0.08 / high))
    bar = figure.colorbar(drawn, cax=inset, orientation="horizontal")  # type: ignore[union-attr]
    bar.outline.set_visible(False)  # type: ignore[operator]
    told = [" ".join(filter(None, each)) for each in zip(ends, meant, strict=True)]
    bar.set_ticks(list(inset.get_xlim()), labels=told)
    inset.tick_params(labelsize=SMALL, length=2, pad=1.5, colors=INK, labelcolor=FAINT)
