"""Attention over a picture or a sound: the heads' own file, and what was laid over the medium.

Pixels, samples and the spectrogram stand in the npz only.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.media import (
    Gaze,
    Picture,
    PictureAttention,
    PictureHeads,
    Sound,
    SoundAttention,
    SoundHeads,
    Spectrogram,
)
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.record import Arrays, Record
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.typed import hints_of
from attnscope.results.stored.heads.head import read_attention
from attnscope.results.stored.heads.overview import read_overview
from attnscope.tokens import Tokens

_PATCHES, _FRAMES = Int[np.ndarray, "row column"], Int[np.ndarray, " frame"]


@document.register
def _(result: PictureAttention, arrays: bool = True) -> dict[str, Value]:
    told = _one(result, "picture", _picture(result.picture), arrays)
    return told | {"elsewhere": result.elsewhere}


@document.register
def _(result: PictureHeads, arrays: bool = True) -> dict[str, Value]:
    return _several(result, "picture", _picture(result.picture), arrays)


@document.register
def _(result: SoundAttention, arrays: bool = True) -> dict[str, Value]:
    told = _one(result, "sound", _sound(result), arrays)
    return told | {"elsewhere": result.elsewhere}


@document.register
def _(result: SoundHeads, arrays: bool = True) -> dict[str, Value]:
    return _several(result, "sound", _sound(result), arrays)


def _one(
    result: PictureAttention | SoundAttention, medium: str, told: dict[str, Value], arrays: bool
) -> dict[str, Value]:
    """The head's document with what is laid over the medium; `over` is by patch or frame."""
    own = document(result.head, arrays) | {"schema": f"attnscope.{medium}/1", medium: told}
    return own | _gaze(result.gaze) | ({"over": result.weights} if arrays else {})


def _several(
    result: PictureHeads | SoundHeads, medium: str, told: dict[str, Value], arrays: bool
) -> dict[str, Value]:
    own = document(result.overview, arrays) | {"schema": f"attnscope.{medium}-heads/1", medium: told}
    return own | _gaze(result.gaze) | ({"over": result.weights} if arrays else {})


def _gaze(gaze: Gaze) -> dict[str, Value]:
    """`query` null stands for the mean; `keys` are the key positions of the patches or frames."""
    cell = None if gaze.cell is None else list(gaze.cell)
    return {"query": gaze.query, "query_cell": cell, "keys": gaze.keys.tolist()}


def _picture(picture: Picture) -> dict[str, Value]:
    height, width = picture.size
    return {
        "name": picture.name,
        "digest": picture.digest,
        "height": height,
        "width": width,
        "covered": list(picture.covered),
    }


def _sound(result: SoundAttention | SoundHeads) -> dict[str, Value]:
    sound = result.sound
    told = {"name": sound.name, "digest": sound.digest, "rate": sound.rate, "samples": sound.count}
    return told | {"frame_seconds": result.seconds}


@arrays_of.register
def _(result: PictureAttention) -> Arrays:
    return arrays_of(result.head) | _seen(result)


@arrays_of.register
def _(result: PictureHeads) -> Arrays:
    return arrays_of(result.overview) | _seen(result)


@arrays_of.register
def _(result: SoundAttention) -> Arrays:
    return arrays_of(result.head) | _heard(result)


@arrays_of.register
def _(result: SoundHeads) -> Arrays:
    return arrays_of(result.overview) | _heard(result)


def _seen(result: PictureAttention | PictureHeads) -> Arrays:
    return {"over": result.weights, "keys": result.gaze.keys, "pixels": result.picture.image}


def _heard(result: SoundAttention | SoundHeads) -> Arrays:
    """The spectrogram is band frame, each `spectrogram_seconds` after the one before; `centres` in hertz."""
    heard = result.heard
    return {
        "over": result.weights,
        "keys": result.gaze.keys,
        "samples": result.sound.wave,
        "spectrogram": heard.levels,
        "centres": heard.centres,
        "spectrogram_seconds": np.array(heard.seconds),
    }


@reads("attnscope.picture/1")
def read_picture_head(record: Record) -> PictureAttention:
    head = read_attention(record)
    over, gaze = _read_gaze(record, _PATCHES, PictureAttention, head.query_tokens, head.key_tokens)
    return PictureAttention(head, _read_picture(record), gaze, over, _elsewhere(record))


@reads("attnscope.picture-heads/1")
def read_picture_heads(record: Record) -> PictureHeads:
    overview = read_overview(record)
    over, gaze = _read_gaze(record, _PATCHES, PictureHeads, overview.query_tokens, overview.key_tokens)
    return PictureHeads(overview, _read_picture(record), gaze, over)


@reads("attnscope.sound/1")
def read_sound_head(record: Record) -> SoundAttention:
    head = read_attention(record)
    over, gaze = _read_gaze(record, _FRAMES, SoundAttention, head.query_tokens, head.key_tokens)
    sound, seconds = _read_sound(record)
    return SoundAttention(head, sound, _spectrogram(record), gaze, over, seconds, _elsewhere(record))


@reads("attnscope.sound-heads/1")
def read_sound_heads(record: Record) -> SoundHeads:
    overview = read_overview(record)
    over, gaze = _read_gaze(record, _FRAMES, SoundHeads, overview.query_tokens, overview.key_tokens)
    sound, seconds = _read_sound(record)
    return SoundHeads(overview, sound, _spectrogram(record), gaze, over, seconds)


def _elsewhere(record: Record) -> dict[str, float]:
    elsewhere: dict[str, float] = record.get("elsewhere", dict[str, float])
    return elsewhere


def _read_gaze(
    record: Record, hint: Any, kind: type, query_tokens: Tokens, key_tokens: Tokens
) -> tuple[Float[np.ndarray, "..."], Gaze]:
    """What was laid over the medium, and whose gaze it is."""
    over = record.array("over", hints_of(kind)["weights"])
    keys = record.array("keys", hint)
    query, cell = record.get("query", int | None), record.get("query_cell", tuple[int, ...] | None)
    if keys.size and not -1 <= keys.min() <= keys.max() < len(key_tokens):
        raise Damaged("'keys' has a position that is no key's")
    if query is not None and not 0 <= query < len(query_tokens):
        raise Damaged(f"'query' is {query}, which is no token's position")
    if cell is not None and not _within(cell, keys.shape):
        raise Damaged("'query_cell' lies outside of the picture or the sound")
    return over, Gaze(query, cell, keys)


def _within(cell: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(cell) == len(shape) and all(0 <= i < size for i, size in zip(cell, shape, strict=True))


def _read_picture(record: Record) -> Picture:
    own = record.part("picture")
    size = own.get("height", int), own.get("width", int)
    pixels = None
    if record.arrays is not None:
        pixels = record.array("pixels", Float[np.ndarray, "height width 3"])
        if pixels.shape[:2] != size:
            raise Damaged("'pixels' has not the picture's height and width")
    name, digest, covered = (own.get(each, kind) for each, kind in _PICTURE.items())
    return Picture(name, digest, pixels, covered, told_size=size)


_PICTURE: dict[str, Any] = {"name": str, "digest": str, "covered": tuple[int, int]}


def _read_sound(record: Record) -> tuple[Sound, float]:
    """The sound, and how many seconds one frame takes."""
    own = record.part("sound")
    name, digest, rate = own.get("name", str), own.get("digest", str), own.get("rate", int)
    count, seconds = own.get("samples", int), own.get("frame_seconds", float)
    samples = None if record.arrays is None else record.array("samples", Float[np.ndarray, " sample"])
    if rate < 1 or count < 0 or not seconds > 0 or (samples is not None and len(samples) != count):
        raise Damaged("'sound' does not say how long it is")
    return Sound(name, digest, samples, rate, told_count=count), seconds


def _spectrogram(record: Record) -> Spectrogram | None:
    """None in JSON, and in an old file."""
    if record.arrays is None or (record.old and not record.has("spectrogram")):
        return None
    own, hints = Record(record.told, record.arrays, record.prefix), hints_of(Spectrogram)
    levels, centres = own.array("spectrogram", hints["levels"]), own.array("centres", hints["centres"])
    return Spectrogram(levels, centres, float(own.array("spectrogram_seconds", Float[np.ndarray, ""])))
