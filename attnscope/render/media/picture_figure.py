"""Attention over a picture as a figure with its page: one head, or a grid of heads."""

import numpy as np
from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import INK, Frame, Words, sheet
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.kit.words.figure import heading_words, proof_words, source_words
from attnscope.render.kit.words.header import attention_words, feature_words, model_words
from attnscope.render.media.plot_picture import (
    draw_heads,
    draw_picture,
    draw_plain,
    grid_frame,
    picture_frame,
)
from attnscope.render.media.words import medium_words, query_words, shares_words, text_words
from attnscope.results import Overview, PictureAttention, PictureHeads, Verdict


def picture_figure(result: PictureAttention) -> Figure:
    """The picture as the model saw it, beside it the attention of one query under its outlines."""
    with drawing():
        frame = picture_frame(result.picture)
        bar_frame = Frame(0.9, frame.height, left=0.1, top=frame.top)
        figure, (plain, axes, beside) = sheet([frame, frame, bar_frame], _words(result))
        draw_plain(result.picture, plain)
        drawn = draw_picture(result, axes)
        plain.set_title("as the model sees it", size=8, color=INK, pad=4)
        axes.set_title(query_words(result), size=8, color=INK, pad=4, parse_math=False)
        beside.set_axis_off()
        bar = figure.colorbar(drawn, cax=beside.inset_axes((0.0, 0.0, 0.16, 1.0)))
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.ax.tick_params(labelsize=7, length=2, colors=INK)
        bar.ax.set_ylabel("attention weight", size=8, color=INK)
    return figure


def picture_heads_figure(result: PictureHeads) -> Figure:
    """One small picture for each head."""
    with drawing():
        figure, (axes,) = sheet([grid_frame(result)], _grid_words(result))
        draw_heads(result, axes)
    return figure


def _words(result: PictureAttention) -> Words:
    told = f"{shares_words(result)}; white lines: outlines of the picture"
    if result.gaze.cell is not None:
        told += "; framed: the query's own patch"
    if np.isnan(result.weights).any():
        told += "; without colour: not read here"
    head = result.head
    told = " · ".join([told, *feature_words(head)])
    foot = (told, proof_words(head.certificate), source_words(head.provenance))
    return Words(heading_words(head), _sentence(result), foot)


def _sentence(result: PictureAttention | PictureHeads) -> str:
    return " · ".join([medium_words(result), query_words(result), *text_words(result)])


def _grid_words(result: PictureHeads) -> Words:
    overview = result.overview
    heading = f"{model_words(overview.provenance)} · {attention_words(overview.kind)} · over a picture"
    legend = (
        "above each: the largest weight on a patch, which its brightest colour stands for, and the share "
        "of the query's attention that lies on the picture; white lines: outlines of the picture"
    )
    return Words(
        heading, _sentence(result), (legend, verdict_counts(overview), source_words(overview.provenance))
    )


def verdict_counts(overview: Overview) -> str:
    """`24 heads: ✓ 22 certified, ~ 2 inconclusive; outlined: not certified`."""
    every = [certificate.verdict for layer in overview.certificates for certificate in layer]
    counts = [f"{GLYPHS[each]} {every.count(each)} {each.value}" for each in Verdict if each in every]
    told = f"{counted(len(every), 'head')}: {', '.join(counts)}"
    return told if set(every) == {Verdict.CERTIFIED} else told + "; outlined: not certified"
