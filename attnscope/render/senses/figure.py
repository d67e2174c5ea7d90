"""One word in many texts as a figure: cosines of all pairs, and layer by layer how the groups lie apart."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnscope.render.kit.figure.page import FAINT, INK, Frame, Words, ink_on, sheet
from attnscope.render.kit.frame import only_spines
from attnscope.render.kit.labels import fit
from attnscope.render.kit.typesetting import drawing, line_height, text_width
from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.render.kit.words.header import attention_words, model_words
from attnscope.render.senses.terminal import by_label
from attnscope.render.senses.words import certified_words, remarks, shown_words, subject, usage_words
from attnscope.results import Senses, Verdict
from attnscope.tokens import printable

_WITHIN, _BETWEEN, _CHANCE = "#0072b2", "#d55e00", "#666666"
_MOST_NUMBERS, _MOST_LABELS = 16, 60  # texts that have a number in every cell, and that have a label
_LABEL, _WORD = 6.5, 8.0
_LONGEST = 62  # characters of a label
_CURVES = 2.8  # inches


def senses_figure(result: Senses) -> Figure:
    """Left the shown layer's cosines, texts of one label together; right the means of the pairs by layer."""
    with drawing():
        order = by_label(result) if result.labels else np.arange(len(result.usages))
        frames = [_matrix_frame(result)]
        frames.append(Frame(_CURVES, max(frames[0].height, 1.6), left=0.8, top=0.55, bottom=0.4))
        figure, panels = sheet(frames, _words(result))
        _draw_matrix(result, order.tolist(), panels[0])
        draw_senses(result, panels[1])
    return figure


def _side(count: int) -> float:
    return 0.36 if count <= _MOST_NUMBERS else max(5.0 / count, 0.11 if count <= _MOST_LABELS else 0.0)


def _names(result: Senses) -> list[str]:
    """What each text is called beside its row; of very many nothing."""
    if len(result.usages) > _MOST_LABELS:
        return ["" for _ in result.usages]
    return [fit(usage_words(usage, i), _LONGEST) for i, usage in enumerate(result.usages, start=1)]


def _matrix_frame(result: Senses) -> Frame:
    count = len(result.usages)
    side = _side(count) * count
    left = max(text_width(name, _LABEL) for name in _names(result)) + 0.12
    return Frame(side, side, left=left, top=0.55, bottom=0.1)


def _draw_matrix(result: Senses, order: list[int], axes: Axes) -> None:
    values, count = result.cosines[result.shown][np.ix_(order, order)], len(order)
    mesh = axes.pcolormesh(values, cmap="RdBu", vmin=-1, vmax=1, rasterized=count > _MOST_NUMBERS)
    axes.set_ylim(count, 0)
    names = _names(result)
    axes.set_yticks(np.arange(count) + 0.5, [names[i] for i in order], size=_LABEL, parse_math=False)
    numbers = [str(i + 1) if count <= _MOST_LABELS else "" for i in order]
    small = min(_LABEL, _side(count) * 72 * 0.62)
    axes.set_xticks(np.arange(count) + 0.5, numbers, size=small)
    axes.tick_params(length=0, pad=2, colors=INK, top=True, bottom=False, labeltop=True, labelbottom=False)
    axes.set_title(
        f"cosine, L{result.layers[result.shown]}",
        size=_WORD,
        color=INK,
        loc="left",
        pad=line_height(_LABEL) * 72,
    )
    only_spines(axes)
    labels = [result.usages[i].label for i in order]
    for place in (i for i in range(1, count) if labels[i] != labels[i - 1]):
        axes.axhline(place, color=INK, linewidth=1.0)
        axes.axvline(place, color=INK, linewidth=1.0)
    if count <= _MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(values):
            text = "-" if np.isnan(value) else f"{value:.2f}".replace("0.", ".")
            colour = ink_on(mesh, float(value))
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=_LABEL, color=colour)


def draw_senses(result: Senses, axes: Axes) -> None:
    """Layer by layer: of groups the means within and between, and the gap beside chance; else all pairs."""
    found = result.separation
    if found is None:
        upper = np.triu_indices(len(result.usages), 1)
        values = np.array([each[upper] for each in result.cosines])
        axes.fill_between(result.layers, values.min(1), values.max(1), color=_WITHIN, alpha=0.15, linewidth=0)
        _curve(axes, result, values.mean(1), "mean of all pairs", _WITHIN, "o")
    else:
        _curve(axes, result, found.within, "pairs of one group", _WITHIN, "o")
        _curve(axes, result, found.between, "pairs of two groups", _BETWEEN, "s")
        _curve(axes, result, found.gap, "gap", INK, "D")
        _curve(axes, result, found.chance, "gap of shuffled labels", _CHANCE, "")
        axes.axhline(0, color=FAINT, linewidth=0.5)
    axes.axvline(result.layers[result.shown], color=FAINT, linewidth=0.6, linestyle=":")
    axes.set_ylim(top=1.05)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_xlabel("layer", size=_WORD, color=INK)
    axes.set_ylabel("cosine", size=_WORD, color=INK)
    axes.tick_params(labelsize=_LABEL, length=2, colors=INK)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.08, 1.0), ncols=2, fontsize=7.0, frameon=False,
        borderaxespad=0.2, handlelength=1.6, columnspacing=1.0, labelspacing=0.2,
    )  # fmt: skip
    only_spines(axes, "left", "bottom")


def _curve(axes: Axes, result: Senses, values: np.ndarray, name: str, colour: str, marker: str) -> None:
    style = "-" if marker else "--"
    axes.plot(
        result.layers,
        values,
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=1.3,
        linestyle=style,
        label=name,
    )


def _words(result: Senses) -> Words:
    heading = f"{model_words(result.provenance)} · {subject(result)} · {attention_words(result.kind)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    certified = " · ".join(f"{GLYPHS[verdict]} {told}" for verdict, told in certified_words(result))
    foot = (" · ".join(remarks(result)), certified, source_words(result.provenance))
    return Words(printable(heading), shown_words(result), tuple(each for each in foot if each))
