"""Composition of heads as a figure: the strongest pairs against chance, or one head's partners."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnscope.render.composition.words import (
    INPUTS,
    beating_words,
    certified_words,
    draws_words,
    head_words,
    inside_words,
    outside_words,
    pair_words,
    reasons_words,
    setting,
    signed_text,
    strongest_words,
    subject,
    through_words,
    title_words,
)
from attnscope.render.kit.figure.page import INK, Frame, Words, ink_on, sheet
from attnscope.render.kit.frame import named_rows, only_spines
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.typesetting import drawing, text_width
from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.render.look import look_now
from attnscope.render.plot.grid import colour_bar
from attnscope.results import Composition, Verdict
from attnscope.results.claims.composition import Pair, Through

_SCORE, _CHANCE, _LARGEST = "#0072b2", "#222222", "#d55e00"
_TICK, _NUMBER, _TITLE = 7.0, 5.6, 8.0
_PAIRS, _ROW, _WIDTH = 12, 0.2, 2.6  # pairs of each input, inches of one, inches of the axis
_MOST_NUMBERS = 16  # heads of a layer that have a number in every cell


def composition_figure(result: Composition) -> Figure:
    """The strongest pairs by each input as dots beside chance; of one head a grid of partners by each."""
    with drawing():
        return _ranked(result) if result.shown is None else _grids(result)


def _there(result: Composition) -> list[Through]:
    """The inputs that have a score."""
    return [each for each in result.through if result.looked_at(each)]


def _ranked(result: Composition) -> Figure:
    ranked = {through: result.ranked(through)[:_PAIRS] for through in _there(result)}
    rows = max(len(pairs) for pairs in ranked.values())
    names = [pair_words(pair) for pairs in ranked.values() for pair in pairs]
    left = max(text_width(name, _TICK) for name in names) + 0.25
    frames = [Frame(_WIDTH, _ROW * rows, left=left, top=0.62, bottom=0.4) for _ in ranked]
    figure, panels = sheet(frames, _words(result))
    right = max(pair.score for pairs in ranked.values() for pair in pairs)
    right = 1.06 * max(right, *(result.largest[result.through.index(each)] for each in ranked))
    for (through, pairs), axes in zip(ranked.items(), panels, strict=True):
        _draw_pairs(result, through, pairs, axes)
        axes.set_xlim(0, right)
    _legend(panels[0])
    return figure


def draw_composition(result: Composition, axes: Axes) -> None:
    """The pairs by the input that has the strongest one."""
    best = max(_there(result), key=lambda each: result.ranked(each)[0].difference)
    _draw_pairs(result, best, result.ranked(best)[:_PAIRS], axes)
    axes.set_xlim(left=0)
    _legend(axes)


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, fontsize=6.3, frameon=False,
        borderaxespad=0.1, handletextpad=0.4, columnspacing=1.0, labelspacing=0.2, handlelength=1.4,
    )  # fmt: skip


def _draw_pairs(result: Composition, through: Through, pairs: list[Pair], axes: Axes) -> None:
    """Score, mean by chance with twice its standard deviation, and the median of the same two layers."""
    places = np.arange(len(pairs))
    for place in places[1::2]:
        axes.axhspan(place - 0.5, place + 0.5, color="#f4f4f4", linewidth=0, zorder=0)
    largest = result.largest[result.through.index(through)]
    axes.axvline(
        largest, color=_LARGEST, linewidth=0.9, linestyle=(0, (4, 2)), label="largest by chance", zorder=1
    )
    means = np.array([pair.chance for pair in pairs])
    reach = 2 * np.array([pair.spread for pair in pairs])
    axes.hlines(places, means - reach, means + reach, color=_CHANCE, linewidth=1.1, zorder=2)
    axes.plot(
        means, places, "o", markersize=3.2, color="white", markeredgecolor=_CHANCE, markeredgewidth=0.9,
        label="chance: mean, 2 sd", zorder=3,
    )  # fmt: skip
    others = [pair.beside for pair in pairs]
    axes.plot(
        others, places, "|", markersize=7, color="#777777", markeredgewidth=1.3, label="other pairs", zorder=3
    )
    axes.plot(
        [pair.score for pair in pairs], places, "o", markersize=4.6, color=_SCORE, label="score", zorder=4
    )
    named_rows(axes, [pair_words(pair) for pair in pairs], "composition score", _TICK)
    _title(axes, f"{through_words(result, through)}", 26)


def _grids(result: Composition) -> Figure:
    """Layers by heads for each input on one scale around chance; the head itself marked."""
    there, heads = _there(result), max(result.counts)
    wide, high = (0.34, 0.24) if heads <= _MOST_NUMBERS else (max(4.6 / heads, 0.04),) * 2
    title = max(text_width(title_words(each), _TITLE, bold=True) for each in there)
    wide = max(wide, title / heads)
    label = text_width(f"L{max(result.layers)}", _TICK) + 0.12
    size, gap = (wide * heads, high * len(result.layers)), label + 0.25
    first = Frame(*size, left=label, top=0.45, bottom=0.42)
    frames = [first, *(Frame(*size, left=gap, top=0.45, bottom=0.42) for _ in there[1:])]
    figure, panels = sheet(frames, _words(result))
    grids = [result.grid(each) for each in there]
    extent = max(float(np.nanmax(np.abs(grid))) for grid in grids) or 1.0
    for through, grid, axes in zip(there, grids, panels, strict=True):
        mesh = _draw_grid(result, grid, extent, axes)
        _title(axes, title_words(through), 15)
        if axes is panels[0]:
            colour_bar(mesh, axes, (signed_text(-extent), signed_text(extent)))
    return figure


def _draw_grid(
    result: Composition, values: Float[np.ndarray, "layer head"], extent: float, axes: Axes
) -> QuadMesh:
    heads = values.shape[1]
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(values), cmap="RdBu", vmin=-extent, vmax=extent, edgecolors="white",
        linewidth=0.6 if heads <= _MOST_NUMBERS else 0.1,
    )  # fmt: skip
    axes.set_xlim(0, heads)
    axes.set_ylim(len(values), 0)
    _name_cells(result, heads, axes)
    if heads <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            if value == value:
                colour = ink_on(mesh, float(value))
                text = _cell_text(float(value))
                axes.text(j + 0.5, i + 0.52, text, ha="center", va="center", size=_NUMBER, color=colour)
    assert result.shown is not None, "grids are of one head"
    row, head = result.layers.index(result.shown[0]), result.shown[1]
    axes.add_patch(Rectangle((head, row), 1, 1, facecolor=INK, edgecolor="white", linewidth=0.6))
    axes.axhspan(row + 0.02, row + 0.98, facecolor="#eeeeee", zorder=0)
    return mesh


def _name_cells(result: Composition, heads: int, axes: Axes) -> None:
    """Layers and heads by number, as many as have room."""
    across = range(0, heads, 1 if heads <= _MOST_NUMBERS else -(-heads // 12))
    down = range(0, len(result.layers), -(-len(result.layers) // 24))
    axes.set_xticks([j + 0.5 for j in across], [f"H{j}" for j in across], size=_TICK)
    axes.set_yticks([i + 0.5 for i in down], [f"L{result.layers[i]}" for i in down], size=_TICK)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    only_spines(axes)


def _cell_text(value: float) -> str:
    """`.28`, `-.03`; what rounds to nothing has no sign."""
    text = weight_text(abs(value))
    return f"-{text}" if value < 0 and text.strip(".0") else text


def _title(axes: Axes, text: str, pad: float) -> None:
    if not look_now().bare:
        axes.set_title(text, size=_TITLE, color=INK, loc="left", pad=pad, fontweight="bold")


def _words(result: Composition) -> Words:
    heading = f"{subject(result)} · {setting(result)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    if result.shown is None:
        told = "other pairs: median of the other pairs of the same two layers"
    else:
        name = head_words(result.shown)
        told = (
            f"in each cell the score less chance, on one scale: above the grey row what {name} (black) reads "
            f"of earlier heads, below it what later heads read of {name}"
        )
    lacking = [
        f"no pair composes through its {INPUTS[each]}"
        for each in result.through
        if each not in _there(result)
    ]
    certified = " · ".join(f"{GLYPHS[verdict]} {words}" for verdict, words in certified_words(result))
    beating = ", ".join(f"{title_words(each)} {beating_words(result, each)}" for each in _there(result))
    foot = (
        told,
        f"above every draw of their own: {beating}",
        draws_words(result),
        f"{inside_words(result)}; {outside_words(result)}",
        "; ".join(lacking),
        " · ".join(reasons_words(result)),
        certified,
        source_words(result.provenance),
    )
    return Words(heading, strongest_words(result), tuple(each for each in foot if each))
