"""Attention over a picture or a sound as CSV: a row per patch or frame."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.media.words import medium_words, query_words, shares_words
from attnscope.results import (
    HeadAttention,
    Overview,
    PictureAttention,
    PictureHeads,
    SoundAttention,
    SoundHeads,
)
from attnscope.results.stored.document import document


@rows.register
def _(result: PictureAttention) -> Iterator[Row]:
    yield "row", "column", "key", "weight"
    for row, column in np.argwhere(result.gaze.keys >= 0).tolist():
        yield row, column, int(result.gaze.keys[row, column]), exact(float(result.weights[row, column]))


@rows.register
def _(result: PictureHeads) -> Iterator[Row]:
    yield "layer", "head", "row", "column", "key", "weight", "verdict"
    overview = result.overview
    for i, j in np.ndindex(result.weights.shape[:2]):
        verdict = overview.certificates[i][j].verdict.value
        for row, column in np.argwhere(result.gaze.keys >= 0).tolist():
            told = (row, column, int(result.gaze.keys[row, column]))
            weight = exact(float(result.weights[i, j, row, column]))
            yield overview.layers[i], overview.heads[j], *told, weight, verdict


@rows.register
def _(result: SoundAttention) -> Iterator[Row]:
    yield "frame", "start", "key", "weight"
    for frame, weight in enumerate(result.weights):
        yield frame, exact(frame * result.seconds), int(result.gaze.keys[frame]), exact(weight)


@rows.register
def _(result: SoundHeads) -> Iterator[Row]:
    yield "layer", "head", "frame", "start", "key", "weight", "verdict"
    overview = result.overview
    for i, j, frame in np.ndindex(result.weights.shape):
        told = (frame, exact(frame * result.seconds), int(result.gaze.keys[frame]))
        verdict = overview.certificates[i][j].verdict.value
        yield overview.layers[i], overview.heads[j], *told, exact(float(result.weights[i, j, frame])), verdict


@comments.register
def _(result: PictureAttention) -> Iterator[tuple[str, object]]:
    yield from _comments(result, result.head)


@comments.register
def _(result: PictureHeads) -> Iterator[tuple[str, object]]:
    yield from _comments(result, result.overview)


@comments.register
def _(result: SoundAttention) -> Iterator[tuple[str, object]]:
    yield from _comments(result, result.head)


@comments.register
def _(result: SoundHeads) -> Iterator[tuple[str, object]]:
    yield from _comments(result, result.overview)


def _comments(
    result: PictureAttention | PictureHeads | SoundAttention | SoundHeads, shown: HeadAttention | Overview
) -> Iterator[tuple[str, object]]:
    """The schema of the file, whose attention over what it holds, and all that is said of the heads."""
    yield "schema", document(result)["schema"]
    yield "over", medium_words(result)
    yield "query", query_words(result)
    if isinstance(result, PictureAttention | SoundAttention):
        yield "shares", shares_words(result)
    yield from ((key, value) for key, value in comments(shown) if key != "schema")
