"""Two runs held against each other as a figure: the head that differs most, its rows and all heads beside."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.render.difference.words import (
    certified_words,
    control_words,
    differing_words,
    nats,
    run_words,
    shown_words,
    signed_panel,
)
from attnscope.render.head.layout import head_frame
from attnscope.render.head.plot import draw_head
from attnscope.render.kit.figure.page import INK, Frame, Words, ink_on, sheet
from attnscope.render.kit.frame import only_spines
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.results import Difference, Verdict
from attnscope.tokens import printable

_BAR = "#4292c6"
_ROWS = 0.9  # inches of the divergences of the rows
_WORD, _LABEL = 8.0, 6.5
_MOST_NUMBERS = 16


def difference_figure(result: Difference) -> Figure:
    """Left the signed weights, beside each row how far it lies apart; at the right all heads, if several."""
    with drawing():
        shown = signed_panel(result)
        heat = head_frame(shown)
        frames = [heat, Frame(_ROWS, heat.height, left=0.12, top=heat.top, bottom=0.35)]
        grid = _grid(result)
        if grid is not None:
            frames.append(_grid_frame(grid[2], heat.top))
        figure, panels = sheet(frames, _words(result))
        draw_head(shown, panels[0])
        _draw_rows(result, panels[1])
        if grid is not None:
            _draw_grid(grid, panels[2])
    return figure


def draw_difference(result: Difference, axes: Axes) -> None:
    """The signed weights alone."""
    draw_head(signed_panel(result), axes)


def _draw_rows(result: Difference, axes: Axes) -> None:
    """How far each query's row lies apart, on the rows of the heat map."""
    values = np.nan_to_num(result.rows[result.shown])
    axes.barh(np.arange(len(values)) + 0.5, values, height=0.72, color=_BAR)
    axes.set_ylim(len(values), 0)
    axes.set_xlim(0, max(float(values.max()), 1e-12) * 1.02)
    axes.set_yticks([])
    top = float(values.max())
    axes.set_xticks([0, top], ["0", nats(top)], size=_LABEL)
    axes.tick_params(length=2, colors=INK)
    axes.set_xlabel("nats", size=_LABEL, color=INK, labelpad=1)
    only_spines(axes, "left", "bottom")


_Grid = tuple[list[int], list[int], np.ndarray]


def _grid(result: Difference) -> _Grid | None:
    """Layers, heads and their divergences, where there are several heads held against themselves."""
    if len(result.pairs) < 2 or any(pair[:2] != pair[2:] for pair in result.pairs):
        return None
    layers, heads = (sorted({pair[i] for pair in result.pairs}) for i in (0, 1))
    values = np.full((len(layers), len(heads)), np.nan)
    for (layer, head, *_), value in zip(result.pairs, result.divergences, strict=True):
        values[layers.index(layer), heads.index(head)] = value
    return layers, heads, values


def _grid_frame(values: np.ndarray, top: float) -> Frame:
    rows, columns = values.shape
    wide, high = (0.34, 0.25) if columns <= _MOST_NUMBERS else (5.4 / columns, 5.4 / columns)
    return Frame(wide * columns, high * rows, left=0.75, top=top)


def _draw_grid(grid: _Grid, axes: Axes) -> None:
    layers, heads, values = grid
    top = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    shaded = np.ma.masked_invalid(values)
    mesh = axes.pcolormesh(shaded, cmap="Blues", vmin=0, vmax=top or 1.0, edgecolors="white", linewidth=0.5)
    axes.set_ylim(len(layers), 0)
    step = max(1, len(heads) // _MOST_NUMBERS)
    columns = range(0, len(heads), step)
    axes.set_xticks([j + 0.5 for j in columns], [f"H{heads[j]}" for j in columns], size=_LABEL)
    rows = range(0, len(layers), max(1, len(layers) // 40))
    axes.set_yticks([i + 0.5 for i in rows], [f"L{layers[i]}" for i in rows], size=_LABEL)
    axes.tick_params(length=0, pad=2, colors=INK, top=True, bottom=False, labeltop=True, labelbottom=False)
    axes.set_title("divergence of every head, nats", size=_WORD, color=INK, loc="left", pad=15)
    only_spines(axes)
    if len(heads) <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                text, colour = _cell(float(value)), ink_on(mesh, float(value))
                axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", size=6.0, color=colour)


def _cell(value: float) -> str:
    return "0" if value < 5e-4 else f"{value:.3f}"[1:] if value < 0.1 else f"{value:.2f}".removeprefix("0")


def _words(result: Difference) -> Words:
    heading = f"{printable(result.b.name)} less {printable(result.a.name)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    runs = [
        f"A {printable(run.name)}: {run_words(run, other)}"
        for run, other in ((result.a, result.b), (result.b, result.a))
    ]
    runs[1] = f"B{runs[1][1:]}"
    extent = float(np.nanmax(np.abs(result.signed))) if np.isfinite(result.signed).any() else 0.0
    colours = (
        f"blue: B gives more, red: less, darkest ±{extent:.2g}; bars: Jensen-Shannon divergence of the row"
    )
    certified = " · ".join(f"{GLYPHS[verdict]} {told}" for verdict, told in certified_words(result))
    foot = (*runs, differing_words(result), colours, control_words(result), certified)
    source = source_words(result.a.provenance)
    return Words(heading, shown_words(result), tuple(each for each in (*foot, source) if each))
