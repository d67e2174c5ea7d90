"""A corpus as a figure: layers by heads, the mean of the measure that is looked at and its error in each."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from attnscope.render.corpus.words import (
    GAIN,
    LINK,
    PLACE,
    certified_words,
    error_text,
    head_name,
    held_out,
    left_out,
    link_words,
    mean_text,
    mean_words,
    ranked,
    read_words,
    setting,
    signed,
    subject,
)
from attnscope.render.kit.figure.page import INK, Frame, Words, colour_bar, ink_on, page
from attnscope.render.kit.typesetting import drawing, text_width
from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.render.overview.plot import name_classes
from attnscope.render.overview.words import shades_words
from attnscope.results import Corpus, HeadScores, Verdict
from attnscope.results.claims.corpus import CorpusScores
from attnscope.tokens import printable

_MOST_NUMBERS = 24  # heads of a layer that have their number in the cell
_WIDE, _HIGH, _SMALL = 0.46, 0.34, 0.24


def corpus_figure(result: Corpus) -> Figure:
    """The grid of means on its page."""
    with drawing():
        made = page(frame(result.layers, result.heads), _words(result))
        drawn = draw_corpus(result, made.axes)
        colour_bar(made, drawn, result.main.scores.description.scale)
        name_classes(result.main.scores, made.bar)
    return made.figure


def frame(layers: tuple[int, ...], heads: tuple[int, ...]) -> Frame:
    """Axes as large as the cells need, and room for `L11` and `H11` beside them."""
    wide = _WIDE if len(heads) <= _MOST_NUMBERS else max(_SMALL / 2, 11.5 / len(heads))
    high = _HIGH if len(heads) <= _MOST_NUMBERS else min(_SMALL, wide)
    label = text_width(f"L{max(layers)}", 8.0)
    return Frame(wide * len(heads), high * len(layers), left=label + 0.4, top=0.5)


def draw_corpus(result: Corpus, axes: Axes) -> QuadMesh:
    """Mean and error of every head, the strong end dark."""
    main = result.main
    mesh = draw_grid(main.scores, axes)
    if len(result.heads) <= _MOST_NUMBERS:
        for place in np.ndindex(main.values.shape):
            _cell(main, (place[0], place[1]), axes, ink_on(mesh, float(main.values[place])))
    return mesh


def draw_grid(scores: HeadScores, axes: Axes, extent: float | None = None) -> QuadMesh:
    """Layers by heads in shades; around 0 where the measure has a sign, or an `extent` is given."""
    least, most = scores.limits if extent is None else (-extent, extent)
    colours = "Blues_r" if scores.description.strong == "low" else "Blues"
    colours = "RdBu" if scores.description.signed or extent is not None else colours
    if extent is None and scores.description.signed:
        size = float(np.nanmax(np.abs(scores.values), initial=0.0)) or 1.0
        least, most = -size, size
    elif extent is None and not scores.description.classes:
        most = min(most, float(np.nanmax(scores.values, initial=least)) * 1.05) if most > least else most
    top = most if most > least else least + 1
    masked = np.ma.masked_invalid(scores.values)
    mesh = axes.pcolormesh(masked, cmap=colours, vmin=least, vmax=top, edgecolors="white", linewidth=0.6)
    axes.set_xlim(0, scores.values.shape[1])
    axes.set_ylim(scores.values.shape[0], 0)
    ticks(scores, axes)
    return mesh


def ticks(scores: HeadScores, axes: Axes) -> None:
    """The names of layers and heads."""
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=3, colors=INK)
    step = max(1, math.ceil(len(scores.heads) / _MOST_NUMBERS))
    heads, down = range(0, len(scores.heads), step), max(1, math.ceil(len(scores.layers) / 60))
    layers = range(0, len(scores.layers), down)
    axes.set_xticks([j + 0.5 for j in heads], [f"H{scores.heads[j]}" for j in heads], size=8)
    axes.set_yticks([i + 0.5 for i in layers], [f"L{scores.layers[i]}" for i in layers], size=8)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("head", size=9, color=INK, labelpad=5)
    axes.set_ylabel("layer", size=9, color=INK, labelpad=5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _cell(scores: CorpusScores, place: tuple[int, int], axes: Axes, colour: str) -> None:
    i, j = place
    error = error_text(scores, place)
    middle = 0.36 if error else 0.5
    axes.text(j + 0.5, i + middle, mean_text(scores, place), ha="center", va="center", size=7, color=colour)
    axes.text(j + 0.5, i + 0.74, error, ha="center", va="center", size=5, color=colour)


def _words(result: Corpus) -> Words:
    main = result.main
    heading = f"{subject(result)} · {setting(result)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    second = "" if main.scores.description.classes else "; ±: standard error over texts"
    second = "; %: share of texts of that class" if main.scores.description.classes else second
    shades = f"{shades_words(main.scores)}{second}"
    certified = " · ".join(f"{GLYPHS[verdict]} {told}" for verdict, told in certified_words(result))
    foot = (
        shades,
        *_link_words(result),
        " · ".join(each for each in (read_words(result.read), left_out(result.read)) if each),
        *result.notes,
        certified,
        source_words(result.provenance),
    )
    return Words(heading, mean_words(main), tuple(printable(each) for each in foot if each))


def _link_words(result: Corpus) -> tuple[str, ...]:
    if result.linked is None:
        return ()
    gain, link, place = (result.measure(name) for name in (GAIN, LINK, PLACE))
    listed = ranked(gain.scores)
    if not listed:
        return ()
    at = listed[0]
    best = (
        f"best {head_name(result, at)}: {link_words(result)} {mean_text(link, at)}, at the same distances "
        f"{mean_text(place, at)}, gain {signed(float(gain.values[at]))} {error_text(gain, at)}"
    )
    return best, held_out(result)
