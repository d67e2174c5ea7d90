"""Attention of one query over the frames of a sound, of one head or of several."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import significant
from attnscope.render.kit.scale import scale_of
from attnscope.render.sheet.blocks import Drawing, Matrix, Named, Names
from attnscope.render.sheet.said import name
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets.media import flat, of_heads, of_one, place_name, place_of, query_words, said
from attnscope.results import Kind, SoundAttention, SoundHeads
from attnscope.vocabulary import Scaling


@dataclass(frozen=True, eq=False)
class Timeline(Drawing):
    """Weights over the frames of a sound, a row for a query or for each head, below its spectrogram.

    `pointed` is the frame that is asked about.
    """

    result: SoundAttention | SoundHeads
    plain: Matrix
    spectrogram: bool = True
    pointed: int | None = None


def sheet(result: SoundAttention | SoundHeads, focus: Focus = WHOLE) -> Sheet:
    """The row of one query, or those of all tokens of a decoder; of several heads a row each."""
    rows, say = _rows(result, focus.scale), said(result, focus.key)
    alone = Timeline(result, rows, spectrogram=False)
    if isinstance(result, SoundAttention):
        frame = place_of(result, focus.key)
        pointed = None if frame is None else frame[0]
        main = replace(alone, pointed=pointed)
        return of_one(result, say, focus, (Timeline(result, rows, pointed=pointed),), main)
    return of_heads(result, say, Timeline(result, rows), alone)


def _rows(result: SoundAttention | SoundHeads, asked: Scaling) -> Matrix:
    words = query_words(result)
    if not isinstance(result, SoundAttention):
        overview = result.overview
        heads = (name(layer, head) for layer in overview.layers for head in overview.heads)
        return _over_time(result, words, "head", Names(tuple(heads)), flat(result), asked)
    if result.head.kind is Kind.CROSS and result.gaze.query is None:
        rows = result.head.weights[:, result.gaze.keys]
        return _over_time(result, "all queries", "query", result.head.query_tokens, rows, asked)
    return _over_time(result, words, "query", Names((words,)), result.weights[None], asked)


def _over_time(
    result: SoundAttention | SoundHeads,
    title: str,
    word: str,
    rows: Named,
    values: Float[np.ndarray, "row frame"],
    asked: Scaling,
) -> Matrix:
    return Matrix(
        title=title,
        words=(word, "frame"),
        rows=rows,
        columns=Names(tuple(place_name(result, frame) for frame in range(values.shape[1]))),
        values=values,
        scale=scale_of(values, np.isfinite(values), asked),
        form=significant,
    )
