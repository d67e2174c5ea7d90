"""Attention of one query over the patches of a picture or the frames of a sound, of one head or several."""

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.cells import fit
from attnscope.render.kit.numbers import cell, largest_magnitude, percent, significant
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.kit.palette import scale_of
from attnscope.render.sheet.blocks import Beside, Drawing, Matrix, Named, Names
from attnscope.render.sheet.heads import Companion, HeadGrid
from attnscope.render.sheet.said import name
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Scale
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.sheets.media import (
    flat,
    largest,
    of_heads,
    of_one,
    place_name,
    place_of,
    query_words,
    said,
    share,
)
from attnscope.render.words import Said
from attnscope.results import Kind, Picture, PictureAttention, PictureHeads, SoundAttention, SoundHeads
from attnscope.spans import patch_at
from attnscope.tokens import patch
from attnscope.vocabulary import Scaling


@dataclass(frozen=True, eq=False)
class Original(Drawing):
    """The picture as the model saw it."""

    picture: Picture
    title: str = "as the model sees it"


@dataclass(frozen=True, eq=False)
class Overlay(Drawing):
    """The weights of one query on the patches of a picture; `plain` has them in per cent.

    `pointed` is the patch that is asked about, by row and column.
    """

    result: PictureAttention
    plain: Matrix
    pointed: tuple[int, ...] | None = None
    scale: Weights = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Overlays(Drawing):
    """A small picture for every head; `plain` has the largest weight of each on one patch."""

    result: PictureHeads
    plain: HeadGrid
    scale: Weights = field(kw_only=True)


def sheet(
    result: PictureAttention | PictureHeads | SoundAttention | SoundHeads, focus: Focus = WHOLE
) -> Sheet:
    """The picture beside the weights of one head on it, or a small picture for each of several."""
    if isinstance(result, SoundAttention | SoundHeads):
        return _over_sound(result, focus)
    original, say = Original(result.picture), said(result, focus.key)
    if isinstance(result, PictureAttention):
        pointed, scale = place_of(result, focus.key), _scale(result.weights.reshape(1, -1), focus.scale)
        overlay = Overlay(result, _patches(result, say, pointed, scale), pointed, scale=scale)
        return of_one(result, say, focus, (Beside((original, overlay)),), overlay)
    overlays = Overlays(result, _grid(result, say), scale=_scale(flat(result), focus.scale))
    return replace(of_heads(result, say, overlays, overlays), more=(original,))


def _scale(weights: Float[np.ndarray, "head patch"], asked: Scaling) -> Weights:
    return scale_of(weights, np.isfinite(weights), asked)


def _patches(result: PictureAttention, say: Said, pointed: tuple[int, ...] | None, scale: Weights) -> Matrix:
    cells, place = 100 * result.weights, result.gaze.cell
    largest = largest_magnitude(cells) or 1.0
    decimals = max(0, 1 - math.floor(math.log10(largest)))
    named = (each and patch(each[0], each[1]) for each in (place, pointed))
    return Matrix(
        title=say("patches"),
        words=("row", "column"),
        rows=_numbered(len(cells)),
        columns=_numbered(cells.shape[1]),
        values=cells,
        scale=Weights(scale.kind, np.full(len(cells), 100 * scale.top), 100 * scale.least),
        form=partial(cell, decimals=decimals),
        says=" · ".join(say.lines("patches_says", *named, np.isnan(cells).any())),
        unanswered="",
        marked=tuple((each[0], each[1]) for each in (place, pointed) if each is not None),
        blank="",
    )


def fitting(called: str, cells: int) -> str:
    """`row 3, column 5`, or `r3c5` where so many cells do not hold that."""
    return fit(called if len(called) <= cells else patch_at(called), cells)


def _numbered(count: int) -> Names:
    return Names(("",) * count, tuple(range(count)))


def _grid(result: PictureHeads, say: Said) -> HeadGrid:
    overview = result.overview
    values = flat(result).max(axis=1, initial=0.0, where=~np.isnan(flat(result)))
    return HeadGrid(
        title=say("grid"),
        layers=overview.layers,
        heads=overview.heads,
        values=values.reshape(len(overview.layers), -1),
        scale=Scale(0.0, float(values.max()) or 1.0),
        form=significant,
        companion=Companion(
            say("companion"),
            lambda i, j: percent(share(result, i, j)),
            lambda i, j, cells: fitting(largest(result, i, j)[0], cells),
        ),
        verdicts=tuple(tuple(each.verdict for each in row) for row in overview.certificates),
    )


@dataclass(frozen=True, eq=False)
class Timeline(Drawing):
    """Weights over the frames of a sound, a row for a query or for each head, below its spectrogram.

    `pointed` is the frame that is asked about.
    """

    result: SoundAttention | SoundHeads
    plain: Matrix
    spectrogram: bool = True
    pointed: int | None = None


def _over_sound(result: SoundAttention | SoundHeads, focus: Focus) -> Sheet:
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
