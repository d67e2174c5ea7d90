"""A head, or several, over a picture or a sound: what one query gives to every patch or frame."""

from typing import TypeVar

import numpy as np
from jaxtyping import Float

from attnscope.analysis.spectrogram import spectrogram
from attnscope.errors import InputError
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
from attnscope.tokens import Frames, Patches, Tokens

Stretch = TypeVar("Stretch", Patches, Frames)
SILENCE = "silence after the end"


def over_picture(head: HeadAttention, picture: Picture, query: int | None) -> PictureAttention:
    """What `query`, or the mean of all (None), gives to each patch; `InputError` where there is none."""
    patches = _stretch(head.key_tokens, Patches)
    gaze = picture_gaze(head.query_tokens, patches, query)
    row = query_row(head.weights, query)
    return PictureAttention(head, picture, gaze, row[gaze.keys], _elsewhere(row, gaze, head.key_tokens))


def heads_over_picture(overview: Overview, picture: Picture, query: int | None) -> PictureHeads:
    """The same for several heads."""
    gaze = picture_gaze(overview.query_tokens, _stretch(overview.key_tokens, Patches), query)
    return PictureHeads(overview, picture, gaze, _of_heads(overview, gaze))


def over_sound(head: HeadAttention, sound: Sound, query: int | None) -> SoundAttention:
    """What `query`, or the mean of all (None), gives to each frame; `InputError` where there is none.

    Frames that a processor added after the end of the sound are left out and counted as silence.
    """
    frames = _stretch(head.key_tokens, Frames)
    gaze = sound_gaze(head.query_tokens, frames, sound, query)
    row = query_row(head.weights, query)
    elsewhere = _elsewhere(row, gaze, head.key_tokens)
    if len(gaze.keys) < frames.count:
        elsewhere[SILENCE] = float(row[frames.first + len(gaze.keys) : frames.first + frames.count].sum())
    heard = spectrogram(sound)
    return SoundAttention(head, sound, heard, gaze, row[gaze.keys], frames.seconds, elsewhere)


def heads_over_sound(overview: Overview, sound: Sound, query: int | None) -> SoundHeads:
    """The same for several heads."""
    frames = _stretch(overview.key_tokens, Frames)
    gaze = sound_gaze(overview.query_tokens, frames, sound, query)
    weights = _of_heads(overview, gaze)
    return SoundHeads(overview, sound, spectrogram(sound), gaze, weights, frames.seconds)


def default_query(tokens: Tokens, *, causal: bool) -> int | None:
    """The query to look at where none is named: the class token, in a decoder the last token, else None."""
    if "[CLS]" in tokens.names:
        return tokens.names.index("[CLS]")
    return len(tokens) - 1 if causal else None


def query_row(weights: Float[np.ndarray, "query key"], query: int | None) -> Float[np.ndarray, " key"]:
    """The row of one query, or the mean of those that may look at a key; `InputError` where none may."""
    answered = ~np.isnan(weights).any(axis=1)
    if not answered.any() or (query is not None and not answered[query]):
        raise InputError(
            "the query has no key that it may look at" if query is not None else "no query has a key"
        )
    row = weights[query] if query is not None else weights[answered].mean(axis=0)
    return np.asarray(row)


def picture_gaze(queries: Tokens, patches: Patches, query: int | None) -> Gaze:
    keys = np.arange(patches.first, patches.first + patches.count).reshape(patches.rows, patches.columns)
    own = next((each for each in queries.stretches if isinstance(each, Patches)), None)
    if query is None or own is None or not 0 <= query - own.first < own.count:
        return Gaze(query, None, keys)
    return Gaze(query, divmod(query - own.first, own.columns), keys)


def sound_gaze(queries: Tokens, frames: Frames, sound: Sound, query: int | None) -> Gaze:
    heard = min(frames.count, int(np.ceil(sound.seconds / frames.seconds - 1e-9)))
    keys = np.arange(frames.first, frames.first + heard)
    own = next((each for each in queries.stretches if isinstance(each, Frames)), None)
    inside = query is not None and own is not None and 0 <= query - own.first < own.count
    return Gaze(query, (query - own.first,) if inside else None, keys)  # type: ignore[operator,union-attr]


def _stretch(tokens: Tokens, kind: type[Stretch]) -> Stretch:
    found = [each for each in tokens.stretches if isinstance(each, kind)]
    if not found:
        what = "patches of a picture" if kind is Patches else "frames of a sound"
        raise InputError(f"the keys of this attention are not known to be {what}: it cannot be laid over one")
    return found[0]


def _of_heads(overview: Overview, gaze: Gaze) -> Float[np.ndarray, "layer head ..."]:
    rows = [[query_row(each, gaze.query)[gaze.keys] for each in layer] for layer in overview.weights]
    return np.array(rows)


def _elsewhere(row: Float[np.ndarray, " key"], gaze: Gaze, tokens: Tokens) -> dict[str, float]:
    """What lies outside of the picture or sound: special tokens one by one, the rest as text."""
    stretches = [range(each.first, each.first + each.count) for each in tokens.stretches]
    told: dict[str, float] = {}
    for key, token in enumerate(tokens.items):
        if not any(key in stretch for stretch in stretches):
            name = token.name if token.special else "text"
            told[name] = told.get(name, 0.0) + float(row[key])
    return told
