"""Layers by heads drawn on an Axes: a measure of each head and, where legible, its strongest link."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle

from attnscope.render.kit.figure.page import INK, Frame, ink_on
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.typesetting import text_width
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.overview.links import link_words
from attnscope.render.overview.words import of_a_pair, shades_words, told
from attnscope.render.sheet.scale import OUTLINES
from attnscope.results import HeadScores, Overview, Verdict

_MOST_LINKS, _MOST_NUMBERS = 16, 40


def cell_size(result: Overview, links: bool = True) -> tuple[float, float]:
    """Width and height of a cell in inches; `links` where it is to hold one if it can."""
    heads = len(result.heads)
    if heads <= _MOST_LINKS:
        return (0.78, 0.42) if links else (0.36, 0.26)
    return (0.3, 0.24) if heads <= _MOST_NUMBERS else (11.5 / heads, 11.5 / heads)


def legend(result: Overview) -> str:
    """What the colours mean, and the writing in the cells where there is any."""
    meant = shades_words(result.main)
    if len(result.heads) <= _MOST_NUMBERS:
        written = "class" if result.main.description.classes else "number"
        meant += f"; {written}: {result.main.description.title}"
    if len(result.heads) <= _MOST_LINKS and not of_a_pair(result):
        link = (
            "the key that has it" if result.aim is not None else "strongest link, query→key, and its weight"
        )
        meant += f"; below it: {link}"
    return meant


def overview_frame(result: Overview) -> Frame:
    """The size of the axes and the room for `L11` and `H11` beside them."""
    wide, high = cell_size(result)
    label = text_width(f"L{max(result.layers)}", 8.0)
    return Frame(wide * len(result.heads), high * len(result.layers), left=label + 0.4, top=0.5)


def draw_overview(
    result: Overview, axes: Axes, scores: HeadScores | None = None, *, links: bool = True
) -> QuadMesh:
    """Layers by heads for one measure, by default the main one, its strong end dark.

    Heads that are not certified are outlined. `links` leaves room for the strongest link of each head.
    """
    scores = scores or result.main
    values, (least, most) = scores.values, scores.limits
    colours = "Blues_r" if scores.description.strong == "low" else "Blues"
    colours = "RdBu" if scores.description.signed else colours
    span = least, most if most > least else least + 1
    masked = np.ma.masked_invalid(values)
    mesh = axes.pcolormesh(
        masked, cmap=colours, vmin=span[0], vmax=span[1], edgecolors="white", linewidth=0.6
    )
    axes.set_xlim(0, values.shape[1])
    axes.set_ylim(values.shape[0], 0)
    _ticks(result, axes, cell_size(result, links))
    with_links = links and len(result.heads) <= _MOST_LINKS and not of_a_pair(result)
    for i, j in np.ndindex(values.shape):
        _mark(result, axes, i, j)
        if len(result.heads) <= _MOST_NUMBERS:
            _words(result, axes, (i, j), scores, ink_on(mesh, float(values[i, j])), with_links)
    return mesh


def name_classes(scores: HeadScores, bar: Axes, *, horizontal: bool = False) -> None:
    """The classes of a measure that has some, in place of their numbers beside its colour bar."""
    if classes := scores.description.classes:
        set_ticks = bar.set_xticks if horizontal else bar.set_yticks
        set_ticks(range(len(classes)), classes)


def _ticks(result: Overview, axes: Axes, cell: tuple[float, float]) -> None:
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=3, colors=INK)
    wide, high = cell
    step = max(1, math.ceil(0.24 / wide)), max(1, math.ceil(0.13 / high))
    heads = range(0, len(result.heads), step[0])
    layers = range(0, len(result.layers), step[1])
    axes.set_xticks([j + 0.5 for j in heads], [f"H{result.heads[j]}" for j in heads], size=8)
    axes.set_yticks([i + 0.5 for i in layers], [f"L{result.layers[i]}" for i in layers], size=8)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("head", size=9, color=INK, labelpad=5)
    axes.set_ylabel("layer", size=9, color=INK, labelpad=5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _mark(result: Overview, axes: Axes, i: int, j: int) -> None:
    """An outline around a head that is not certified."""
    verdict = result.certificates[i][j].verdict
    if verdict is not Verdict.CERTIFIED:
        outline = Rectangle((j + 0.04, i + 0.06), 0.92, 0.88, fill=False, linewidth=1.5)
        outline.set_edgecolor(OUTLINES[verdict])
        axes.add_patch(outline)


def _words(
    result: Overview, axes: Axes, place: tuple[int, int], scores: HeadScores, colour: str, with_links: bool
) -> None:
    """The number, and under it the strongest link with its weight where the cell is wide enough."""
    i, j = place
    value = float(scores.values[place])
    verdict = result.certificates[i][j].verdict
    mark = "" if verdict is Verdict.CERTIFIED else f" {GLYPHS[verdict]}"
    if not with_links:
        written = told(scores, value)
        axes.text(j + 0.5, i + 0.5, written, ha="center", va="center", size=_small(result), color=colour)
        return
    axes.text(
        j + 0.5, i + 0.3, told(scores, value, 6) + mark, ha="center", va="center", size=7.5, color=colour
    )
    link = _link(result, i, j, 0.72)
    axes.text(j + 0.5, i + 0.72, link, ha="center", va="center", size=5, color=colour, parse_math=False)


def _small(result: Overview) -> float:
    """Points of a number that stands alone in its cell."""
    return 5.5 if len(result.heads) > _MOST_LINKS else 6.5


def _link(result: Overview, i: int, j: int, width: float) -> str:
    """`query→key .91`, the names cut until it fits in `width` inches; of one query only the key."""
    weight = weight_text(float(result.strongest_weight[i, j])) if result.aim is None else ""
    for cells in range(40, 3, -1):
        link = f"{link_words(result, i, j, cells)} {weight}"
        if text_width(link, 5.0) <= width:
            return link
    return weight
