"""Two corpora as a figure: layers by heads, what the second gives more, and in how many errors."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from attnscope.render.corpus.apart_words import (
    beyond_words,
    head_name,
    ranked,
    read_words,
    setting,
    signed,
    subject,
)
from attnscope.render.corpus.figure import draw_grid, frame
from attnscope.render.corpus.words import small
from attnscope.render.kit.figure.page import Words, colour_bar, ink_on, page
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.figure import source_words
from attnscope.results import CorpusDifference, Verdict

_MOST_NUMBERS = 24


def corpora_figure(result: CorpusDifference) -> Figure:
    """The grid of differences on its page."""
    with drawing():
        made = page(frame(result.layers, result.heads), _words(result))
        drawn = draw_corpora(result, made.axes)
        colour_bar(made, drawn, f"{result.main.scores.description.name}, B less A")
    return made.figure


def draw_corpora(result: CorpusDifference, axes: Axes) -> QuadMesh:
    """Difference of every head, blue where the second has more, and how many errors that is."""
    main = result.main
    mesh = draw_grid(main.scores, axes, extent=main.scores.limits[1])
    if len(result.heads) <= _MOST_NUMBERS:
        for i, j in np.ndindex(main.difference.shape):
            value, reached = float(main.difference[i, j]), float(main.reached[i, j])
            if np.isnan(value):
                continue
            colour = ink_on(mesh, value)
            axes.text(j + 0.5, i + 0.36, f"{value:+.2f}", ha="center", va="center", size=6.5, color=colour)
            if not np.isnan(reached):
                said = f"{reached:+.1f} se"
                axes.text(j + 0.5, i + 0.74, said, ha="center", va="center", size=5, color=colour)
    return mesh


def _words(result: CorpusDifference) -> Words:
    heading = f"{subject(result)} · {setting(result)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    main, listed = result.main, ranked(result.main)
    most = ""
    if listed:
        at = listed[0]
        most = (
            f"most {head_name(result, at)}: {float(main.first[at]):.3f} to {float(main.second[at]):.3f}, "
            f"{signed(float(main.difference[at]))} ±{small(float(main.error[at]))}"
        )
    foot = (
        "blue: more in B, red: less; se: standard errors of the difference, texts as trials",
        " · ".join(each for each in (most, beyond_words(main)) if each),
        read_words(result),
        *result.notes,
        *dict.fromkeys(source_words(each) for each in result.provenances),
    )
    title = f"{main.scores.description.title}: mean over texts, B less A"
    return Words(heading, title, tuple(each for each in foot if each))
