"""Attention over a picture or a sound as JSON, CSV and npz: the head's own file and what was laid over it."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.file_csv import Row, comments, exact, rows
from attnscope.render.file_json import Value, document, numbers
from attnscope.render.file_npz import Arrays, arrays_of
from attnscope.render.media.words import medium_words, query_words, shares_words
from attnscope.results import (
    Gaze,
    HeadAttention,
    Overview,
    Picture,
    PictureAttention,
    PictureHeads,
    Sound,
    SoundAttention,
    SoundHeads,
)


@document.register
def _(result: PictureAttention, arrays: bool = True) -> dict[str, Value]:
    told = _one(result, "picture", _picture(result.picture), arrays)
    return told | {"elsewhere": result.elsewhere}


@document.register
def _(result: PictureHeads, arrays: bool = True) -> dict[str, Value]:
    return _several(result, "picture", _picture(result.picture), arrays)


@document.register
def _(result: SoundAttention, arrays: bool = True) -> dict[str, Value]:
    told = _one(result, "sound", _sound(result.sound, result.seconds), arrays)
    return told | {"elsewhere": result.elsewhere}


@document.register
def _(result: SoundHeads, arrays: bool = True) -> dict[str, Value]:
    return _several(result, "sound", _sound(result.sound, result.seconds), arrays)


def _one(
    result: PictureAttention | SoundAttention, medium: str, told: dict[str, Value], arrays: bool
) -> dict[str, Value]:
    """The head's document with what is laid over the medium; `over` is by patch or frame."""
    own = document(result.head, arrays) | {"schema": f"attnscope.{medium}/1", medium: told}
    return own | _gaze(result.gaze) | ({"over": numbers(result.weights)} if arrays else {})


def _several(
    result: PictureHeads | SoundHeads, medium: str, told: dict[str, Value], arrays: bool
) -> dict[str, Value]:
    own = document(result.overview, arrays) | {"schema": f"attnscope.{medium}-heads/1", medium: told}
    return own | _gaze(result.gaze) | ({"over": numbers(result.weights)} if arrays else {})


def _gaze(gaze: Gaze) -> dict[str, Value]:
    """`query` null stands for the mean; `keys` are the key positions of the patches or frames."""
    cell = None if gaze.cell is None else list(gaze.cell)
    return {"query": gaze.query, "query_cell": cell, "keys": gaze.keys.tolist()}


def _picture(picture: Picture) -> dict[str, Value]:
    height, width = picture.size
    covered = list(picture.covered)
    return {
        "name": picture.name,
        "digest": picture.digest,
        "height": height,
        "width": width,
        "covered": covered,
    }


def _sound(sound: Sound, seconds: float) -> dict[str, Value]:
    told = {"name": sound.name, "digest": sound.digest, "rate": sound.rate, "samples": len(sound.samples)}
    return told | {"frame_seconds": seconds}


@arrays_of.register
def _(result: PictureAttention) -> Arrays:
    return arrays_of(result.head) | {
        "over": result.weights,
        "keys": result.gaze.keys,
        "pixels": result.picture.pixels,
    }


@arrays_of.register
def _(result: PictureHeads) -> Arrays:
    own = {"over": result.weights, "keys": result.gaze.keys, "pixels": result.picture.pixels}
    return arrays_of(result.overview) | own


@arrays_of.register
def _(result: SoundAttention) -> Arrays:
    own = {"over": result.weights, "keys": result.gaze.keys, "samples": result.sound.samples}
    return arrays_of(result.head) | own


@arrays_of.register
def _(result: SoundHeads) -> Arrays:
    own = {"over": result.weights, "keys": result.gaze.keys, "samples": result.sound.samples}
    return arrays_of(result.overview) | own


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
    yield "schema", document(result, arrays=False)["schema"]
    yield "over", medium_words(result)
    yield "query", query_words(result)
    if isinstance(result, PictureAttention | SoundAttention):
        yield "shares", shares_words(result)
    yield from ((key, value) for key, value in comments(shown) if key != "schema")
