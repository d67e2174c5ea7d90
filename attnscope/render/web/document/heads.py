"""What a page shows of heads: one or all of them, a map, a report, a picture or a sound."""

from typing import Any

import numpy as np

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.kit.words.weights import weights_words
from attnscope.render.sheet.said import attention, grid_size
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.map import (
    DISCLAIMER,
    correlation_words,
    points_words,
    settings_words,
    trust_words,
)
from attnscope.render.sheets.thumbnails import pooled_words
from attnscope.render.web import media
from attnscope.render.web import readings as sides
from attnscope.render.web.beside import Beside, Laid
from attnscope.render.web.blocks import short
from attnscope.render.web.document.parts import Document, all_heads, opened, opens, told
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
    Thumbnails,
)
from attnscope.results.base.evidence import Opening
from attnscope.vocabulary import Unit


def of_head(made: Document, head: HeadWeights, beside: Beside, by: Unit = Unit.WORD) -> None:
    made.heading = told(head.name, where_words(head), model_words(head.provenance))
    made.readings.append(sides.of_heads([head], made.blocks, by=by))
    made.says += weights_words(head)
    opens(made, head.layer, head.head, **opened(made, sheet_of(head).opens))


def of_view(made: Document, view: HeadView, beside: Beside) -> None:
    of_head(made, view.head, beside, view.by)
    made.opening |= opened(made, sheet_of(view).opens)


def of_terms(made: Document, terms: HeadTerms, beside: Beside) -> None:
    of_head(made, terms.head, beside)
    made.opening["view"] = "parts"


def of_overview(made: Document, overview: Overview, beside: Beside) -> None:
    heads = f"{counted(len(overview.layers), 'layer')} x {counted(len(overview.heads), 'head')}"
    made.heading = told(heads, where_words(overview), model_words(overview.provenance))
    made.readings.append(sides.of_overview(overview, made.blocks, beside.full))
    looked: dict[str, Any] = {"words": overview.by.joins, "special": overview.special.value}
    found = overview.tokens or overview
    if overview.aim is not None:
        query, key = overview.aim
        i, j = _strongest(overview)
        if overview.aim_spans:  # a page has no spans: it opens on the first token of each
            query, *keys = (span[0] for span in overview.aim_spans)
            key = keys[0] if keys else None
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
    values = overview.strongest_weight if overview.aim is None else overview.main.values
    i, j = divmod(int(np.nan_to_num(values).argmax()), len(overview.heads))
    return i, j


def of_thumbnails(made: Document, small: Thumbnails, beside: Beside) -> None:
    size, where = grid_size(small.layers, small.heads), attention(small.kind, small.tower)
    made.heading = told(size, where, model_words(small.provenance))
    all_heads(made, beside, small.by)
    first = beside.full[0] if beside.full else None
    opened = (small.layers[0], small.heads[0]) if first is None else (first.layer, first.head)
    if made.readings:  # the weights that the thumbnails were made of
        opens(made, *opened, "heads", words=small.by.joins, special=small.special.value)
        return
    made.readings.append(sides.of_thumbnails(small, made.blocks))
    if cell := pooled_words(small):
        made.says.append(f"a cell is {cell}")
    opens(made, *opened, "heads")


def of_map(made: Document, found: Projection, beside: Beside) -> None:
    of_head(made, found.head, beside, Unit.WORD if found.view is None else found.view.by)
    made.map = known_map(found)
    made.opening["view"] = "map"
    if found.view is not None:
        made.opening |= {"words": found.view.by.joins, "special": found.view.special.value}


def of_report(made: Document, report: Report, beside: Beside) -> None:
    """One page from the answer to the proof, over a picture or a sound too."""
    made.first = "sheet"
    of_map(made, report.projection, beside)
    made.below = ("map", "proof")
    if beside.laid is not None:
        _medium(made, beside.laid)
    if report.prediction is not None:
        predicted = sheet_of(report.prediction)
        made.says += (predicted.answer, *predicted.notes)
    made.opening |= {"view": "matrix", "query": report.query, "key": None}
    if report.view is not None:
        made.opening |= {"words": report.view.by.joins, "special": report.view.special.value}


def of_medium(made: Document, found: Laid, beside: Beside) -> None:
    """Opens on the patch or frame that its answer names, of the head that it names."""
    weights = _by_place(found)
    *place, at = np.unravel_index(int(np.nan_to_num(weights).argmax()), weights.shape)
    if isinstance(found, PictureAttention | SoundAttention):
        of_head(made, found.head, beside)
    else:
        of_overview(made, found.overview, beside)
        made.told = None
        layers, heads = found.overview.layers, found.overview.heads
        made.opening |= {"layer": layers[place[0]], "head": heads[place[1]]}
    query = found.gaze.query
    made.opening |= {"query": query, "key": None if query is None else int(found.gaze.keys.ravel()[at])}
    _medium(made, found)


def _medium(made: Document, found: Laid) -> None:
    if isinstance(found, PictureAttention | PictureHeads):
        made.picture = media.of_picture(found)
    else:
        made.sound = media.of_sound(found, made.blocks)


def _by_place(found: Laid) -> np.ndarray:
    laid = found.gaze.keys.ndim
    return np.asarray(found.weights.reshape(*found.weights.shape[:-laid], -1))


def known_map(found: Projection) -> dict[str, Any]:
    """Points with their names and weights; a point of a view stands for the tokens in its group."""
    view = found.view
    rows = [[i] for i in range(len(found.query_tokens))] if view is None else view.query_groups
    says = [trust_words(found), correlation_words(found), ", ".join(settings_words(found))]
    return {
        "queries": short(found.queries),
        "keys": short(found.keys),
        "queryNames": [settled(name) for name in found.query_tokens.names],
        "keyNames": [settled(name) for name in found.key_tokens.names],
        "rows": rows,
        "weights": [
            [weight if allowed else None for weight, allowed in zip(*row, strict=True)]
            for row in zip(short(found.weights), found.allowed.tolist(), strict=True)
        ],
        "says": [each for each in (*says, *points_words(found), DISCLAIMER) if each],
    }
