"""What a page shows of heads: one or all of them, a map, a report, a prediction, a picture or a sound."""

from typing import Any

import numpy as np

from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.kit.words.weights import weights_words
from attnscope.render.sheet.said import attention, grid_size
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.thumbnails import pooled_words
from attnscope.render.web import answers, media
from attnscope.render.web import readings as sides
from attnscope.render.web.beside import Beside
from attnscope.render.web.document.parts import Document, all_heads, opened, opens, told, weights_view
from attnscope.render.web.opening import told as told_first
from attnscope.results import (
    HeadTerms,
    HeadView,
    HeadWeights,
    Overview,
    PictureAttention,
    PictureHeads,
    Projection,
    Report,
    SoundAttention,
    SoundHeads,
    Thumbnails,
)
from attnscope.results.base.evidence import Opening


def of_head(made: Document, head: HeadWeights, beside: Beside) -> None:
    made.heading = told(head.name, where_words(head), model_words(head.provenance))
    made.readings.append(sides.of_heads([head], made.blocks))
    made.says += weights_words(head)
    opens(made, head.layer, head.head, **opened(made, sheet_of(head).opens))


def of_view(made: Document, view: HeadView, beside: Beside) -> None:
    of_head(made, view.head, beside)
    made.opening |= opened(made, sheet_of(view).opens)


def of_terms(made: Document, terms: HeadTerms, beside: Beside) -> None:
    of_head(made, terms.head, beside)
    made.opening["view"] = "parts"


def of_overview(made: Document, overview: Overview, beside: Beside) -> None:
    heads = f"{counted(len(overview.layers), 'layer')} x {counted(len(overview.heads), 'head')}"
    made.heading = told(heads, where_words(overview), model_words(overview.provenance))
    made.readings.append(sides.of_overview(overview, made.blocks, beside.full))
    looked: dict[str, Any] = {"words": overview.words, "special": overview.special.value}
    found = overview.tokens or overview
    if overview.aim is not None:
        query, key = overview.aim
        i, j = _strongest(overview)
    else:
        opening = beside.opening or Opening(overview.most_telling())
        link = opening.link
        if found.query_tokens.texts and found.key_tokens.texts:
            made.told = told_first(overview, opening)
        i, j = _strongest(overview) if link is None else (link.layer, link.head)
        query, key = (int(at) for at in found.strongest[i, j]) if link is None else (link.query, link.key)
    there = {"query": query, "key": key}
    looked |= {name: at for name, at in there.items() if at is not None and at >= 0}
    opens(made, overview.layers[i], overview.heads[j], **looked)


def _strongest(overview: Overview) -> tuple[int, int]:
    """The head of the strongest link, or of what was asked for."""
    values = overview.strongest_weight if overview.aim is None else np.nan_to_num(overview.main.values)
    i, j = divmod(int(values.argmax()), len(overview.heads))
    return i, j


def of_thumbnails(made: Document, small: Thumbnails, beside: Beside) -> None:
    size, where = grid_size(small.layers, small.heads), attention(small.kind, small.tower)
    made.heading = told(size, where, model_words(small.provenance))
    all_heads(made, beside)
    first = beside.full[0] if beside.full else None
    opened = (small.layers[0], small.heads[0]) if first is None else (first.layer, first.head)
    if made.readings:  # the weights that the thumbnails were made of
        opens(made, *opened, "heads", words=small.words, special=small.special.value)
        return
    made.readings.append(sides.of_thumbnails(small, made.blocks))
    if cell := pooled_words(small):
        made.says.append(f"a cell is {cell}")
    opens(made, *opened, "heads")


def of_map(made: Document, found: Projection, beside: Beside) -> None:
    of_head(made, found.head, beside)
    made.map = answers.of_map(found)
    made.opening["view"] = "map"
    if found.view is not None:
        made.opening |= {"words": found.view.words, "special": found.view.special.value}


def of_report(made: Document, report: Report, beside: Beside) -> None:
    made.first = "sheet"
    of_map(made, report.projection, beside)
    made.prediction = None if report.prediction is None else answers.of_prediction(report.prediction)
    made.opening |= {"view": weights_view(made), "query": report.query, "key": None}
    if report.view is not None:
        made.opening |= {"words": report.view.words, "special": report.view.special.value}


def of_picture(made: Document, found: PictureAttention | PictureHeads, beside: Beside) -> None:
    _laid_over(made, found, beside)
    made.picture = media.of_picture(found)
    made.opening["view"] = "picture"


def of_sound(made: Document, found: SoundAttention | SoundHeads, beside: Beside) -> None:
    _laid_over(made, found, beside)
    made.sound = media.of_sound(found, made.blocks)
    made.opening["view"] = "sound"


def _laid_over(made: Document, found: Any, beside: Beside) -> None:
    if isinstance(found, PictureAttention | SoundAttention):
        of_head(made, found.head, beside)
    else:
        of_overview(made, found.overview, beside)
    made.opening |= {"query": found.gaze.query, "one": False}
