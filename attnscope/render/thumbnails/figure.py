"""Thumbnails of every head as a figure with its page."""

import numpy as np
from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Words, colour_bar, page
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.figure import source_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.thumbnails.plot import draw_thumbnails, thumbnails_frame
from attnscope.render.thumbnails.words import (
    blank,
    cell_words,
    common_scale,
    remarks,
    subject,
    verdict_counts,
    where,
)
from attnscope.results import Thumbnails, Verdict
from attnscope.tokens import printable
from attnscope.vocabulary import Scaling


def thumbnails_figure(result: Thumbnails, asked: Scaling = Scaling.AUTO) -> Figure:
    """The weights of every head, layers by heads, on the one scale of the colour bar."""
    scale = common_scale(result, asked)
    with drawing():
        made = page(thumbnails_frame(result), _words(result, scale.legend))
        drawn = draw_thumbnails(result, made.axes, scale)
        colour_bar(made, drawn, scale.label)
        if scale.kind is Scaling.LOG and drawn.colorbar is not None:
            places, texts = zip(*scale.ticks, strict=True)
            drawn.colorbar.set_ticks(places, labels=texts)
            drawn.colorbar.minorticks_off()
    return made.figure


def _words(result: Thumbnails, legend: str) -> Words:
    heading = f"{model_words(result.provenance)} · {where(result)} · {subject(result)}"
    said = [f"rows: queries, columns: keys; {cell_words(result)}", f"colours of all heads: {legend}"]
    if bool(np.any(blank(result))):
        said.append("grey: masked")
    verdicts = verdict_counts(result)
    if result.verdict is not Verdict.CERTIFIED:
        verdicts += "; outlined: not certified"
    told = " · ".join((*said, *remarks(result)))
    sentence = printable(result.query_tokens.sentence)
    if result.key_tokens != result.query_tokens and result.key_tokens.texts:
        sentence = f"{sentence} → {printable(result.key_tokens.sentence)}"
    quoted = f"“{sentence}”" if sentence.strip(" →") else ""
    return Words(heading, quoted, (told, verdicts, source_words(result.provenance)))
