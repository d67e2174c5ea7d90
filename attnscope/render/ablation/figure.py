"""Heads taken away, as a figure: sorted bars with the noise floor, and layers by heads beside them."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.render.ablation.plot import BAR, bars_of, cell_size, draw_bars, draw_grid, has_grid, shown
from attnscope.render.ablation.words import (
    answer_words,
    chance_text,
    control_words,
    done_words,
    estimate_words,
    group_words,
    place_words,
    proof_words,
    rounding_words,
    signed_text,
    total_words,
)
from attnscope.render.kit.figure.page import INK, Frame, Words, sheet
from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.kit.typesetting import drawing, text_width
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.look import look_now
from attnscope.render.plot.grid import colour_bar
from attnscope.results import Ablation, Verdict
from attnscope.tokens import printable

_WIDE, _AXIS = 3.4, 0.42  # inches: the bars, the axis below them
_LEGENDS, _LEGEND, _TITLE = 0.5, 6.5, 8.5
_TOP = 0.5  # title and head numbers above the grid


def ablation_figure(result: Ablation) -> Figure:
    """The heads as bars, the largest difference first; of several layers the grid of all beside them."""
    with drawing():
        bars = bars_of(result)
        names = max(text_width(bar.name, 7.0) for bar in bars) + 0.15
        frames = [Frame(_WIDE, BAR * max(len(bars), 2), left=names, top=_LEGENDS, bottom=_AXIS)]
        if has_grid(result):
            frames.append(_grid_frame(result))
        figure, places = sheet(frames, _words(result))
        draw_bars(result, places[0])
        _legend(places[0])
        if has_grid(result):
            _draw_grid(result, figure, places[1])
    return figure


def _grid_frame(result: Ablation) -> Frame:
    wide, high = cell_size(result)
    layers, heads = result.grid.shape
    label = text_width(f"L{max(result.layers)}", 7.0) + 0.45
    return Frame(wide * heads, high * layers, left=label, top=_TOP, bottom=0.4)


def _draw_grid(result: Ablation, figure: Figure, axes: Axes) -> None:
    mesh = draw_grid(result, axes)
    if not look_now().bare:
        axes.set_title(
            "difference by layer and head", size=_TITLE, color=INK, loc="left", pad=15, weight="bold"
        )
    extent = largest_magnitude(result.grid) or 1.0
    colour_bar(mesh, axes, (signed_text(-extent, 2), signed_text(extent, 2)))


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, fontsize=_LEGEND, frameon=False,
        borderaxespad=0.1, handlelength=1.6, labelspacing=0.2, columnspacing=1.2,
    )  # fmt: skip


def _words(result: Ablation) -> Words:
    answer = f"answer {answer_words(result)}, {chance_text(result.answer.probability)}"
    heading = f"{model_words(result.provenance)} · {place_words(result)} · {answer}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    sentence = " | ".join(f"“{printable(text)}”" for text in result.tokens.texts)
    if result.other is not None:
        sentence += " ← " + " | ".join(f"“{printable(text)}”" for text in result.other.texts)
    looked = f"{done_words(result)}: {result.how}"
    if shown(result) < len(result.heads):
        looked += f"; bars: the {shown(result)} that do most"
    foot = (
        looked,
        group_words(result),
        total_words(result),
        f"{control_words(result)} · {rounding_words(result)}",
        estimate_words(result),
        proof_words(result),
        *map(printable, result.notes),
        source_words(result.provenance),
    )
    return Words(heading, sentence, tuple(each for each in foot if each))
