"""What a page shows of heads: one or all of them, a map, a report, a prediction, a picture or a sound."""

from collections.abc import Sequence
from typing import Any

from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.kit.words.weights import weights_words
from attnscope.render.sheet.said import attention, grid_size
from attnscope.render.sheets.thumbnails import pooled_words
from attnscope.render.web import answers, media
from attnscope.render.web import readings as sides
from attnscope.render.web.beside import Beside
from attnscope.render.web.document.parts import Document, all_heads, opens, told
from attnscope.results import (
    HeadAttention,
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


def of_head(made: Document, head: HeadWeights, beside: Beside) -> None:
    made.heading = told(head.name, where_words(head), model_words(head.provenance))
    made.readings.append(sides.of_heads([head], made.blocks))
    made.says += weights_words(head)
    opens(made, head.layer, head.head)


def of_view(made: Document, view: HeadView, beside: Beside) -> None:
    of_head(made, view.head, beside)
    made.opening |= {"words": view.words, "special": view.special.value}


def of_terms(made: Document, terms: HeadTerms, beside: Beside) -> None:
    of_head(made, terms.head, beside)
    made.opening["view"] = "parts"


def of_overview(made: Document, overview: Overview, beside: Beside) -> None:
    heads = f"{counted(len(overview.layers), 'layer')} x {counted(len(overview.heads), 'head')}"
    made.heading = told(heads, where_words(overview), model_words(overview.provenance))
    made.readings.append(sides.of_overview(overview, made.blocks, beside.full))
    looked: dict[str, Any] = {"words": overview.words, "special": overview.special.value}
    query, key = overview.aim or (None, None)
    looked |= {} if query is None else {"query": query} | ({} if key is None else {"key": key})
    opens(made, *_first(overview, beside.full), **looked)


def _first(overview: Overview, full: Sequence[HeadAttention]) -> tuple[int, int]:
    """The head that opens: the first in full, else that of the strongest link."""
    if full:
        return full[0].layer, full[0].head
    i, j = divmod(int(overview.strongest_weight.argmax()), len(overview.heads))
    return overview.layers[i], overview.heads[j]


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
    of_map(made, report.projection, beside)
    made.prediction = None if report.prediction is None else answers.of_prediction(report.prediction)
    made.opening |= {"view": "sentence", "query": report.query}
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
