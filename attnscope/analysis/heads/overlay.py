"""Lays the attention of one query over the patches of a picture or the frames of a sound.

A sound is shown as its spectrogram: power in mel bands over time.
"""

from typing import TypeVar

import numpy as np
from jaxtyping import Float

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
    Spectrogram,
)
from attnscope.tokens import Frames, Patches, Tokens

Stretch = TypeVar("Stretch", Patches, Frames)
SILENCE = "silence after the end"

_WINDOW, _HOP = 0.025, 0.010  # seconds
_BANDS = 64
_FLOOR = -80.0  # decibels below the strongest


def over_picture(head: HeadAttention, picture: Picture, query: int | None) -> PictureAttention:
    """The weights of `query` (None: mean over queries) on each patch; `InputError` where it has no key."""
    patches = _stretch(head.key_tokens, Patches)
    gaze = picture_gaze(head.query_tokens, patches, query)
    row = query_row(head.weights, query)
    weights = _at(row, gaze)
    return PictureAttention(head, picture, gaze, weights, _elsewhere(row, head.key_tokens))


def heads_over_picture(overview: Overview, picture: Picture, query: int | None) -> PictureHeads:
    """The weights of `query` (None: mean over queries) on each patch, for several heads."""
    gaze = picture_gaze(overview.query_tokens, _stretch(overview.key_tokens, Patches), query)
    return PictureHeads(overview, picture, gaze, _of_heads(overview, gaze))


def over_sound(head: HeadAttention, sound: Sound, query: int | None) -> SoundAttention:
    """The weights of `query` (None: mean over queries) on each frame; `InputError` where it has no key.

    Frames that a processor added after the end of the sound are left out and counted as silence.
    """
    frames = _stretch(head.key_tokens, Frames)
    gaze = sound_gaze(head.query_tokens, frames, sound, query)
    row = query_row(head.weights, query)
    elsewhere = _elsewhere(row, head.key_tokens)
    if len(gaze.keys) < frames.count:
        elsewhere[SILENCE] = float(row[frames.first + len(gaze.keys) : frames.first + frames.count].sum())
    heard = compute_spectrogram(sound)
    return SoundAttention(head, sound, heard, gaze, row[gaze.keys], frames.seconds, elsewhere)


def heads_over_sound(overview: Overview, sound: Sound, query: int | None) -> SoundHeads:
    """The weights of `query` (None: mean over queries) on each frame, for several heads."""
    frames = _stretch(overview.key_tokens, Frames)
    gaze = sound_gaze(overview.query_tokens, frames, sound, query)
    weights = _of_heads(overview, gaze)
    return SoundHeads(overview, sound, compute_spectrogram(sound), gaze, weights, frames.seconds)


def default_query(queries: Tokens, keys: Tokens) -> int | None:
    """The default query: the class token, else the last token of a text, else None (the mean of all).

    None also for a text that attends to a sound: its tokens' frames tell when each was said.

    """
    if "[CLS]" in queries.names:
        return queries.names.index("[CLS]")
    listens = any(isinstance(each, Frames) for each in keys.stretches)
    return len(queries) - 1 if queries.texts and not listens else None


def query_row(weights: Float[np.ndarray, "query key"], query: int | None) -> Float[np.ndarray, " key"]:
    """The weights of one query, or the mean over queries that have a key; `InputError` where none has."""
    answered = ~np.isnan(weights).any(axis=1)
    if not answered.any() or (query is not None and not answered[query]):
        raise InputError(
            "the query has no key that it may look at" if query is not None else "no query has a key"
        )
    row = weights[query] if query is not None else weights[answered].mean(axis=0)
    return np.asarray(row)


def picture_gaze(queries: Tokens, patches: Patches, query: int | None) -> Gaze:
    keys = np.array(patches.positions).reshape(patches.rows, patches.columns)
    own = next((each for each in queries.stretches if isinstance(each, Patches)), None)
    if query is None or own is None or query not in own.positions:
        return Gaze(query, None, keys)
    return Gaze(query, divmod(own.positions.index(query), own.columns), keys)


def sound_gaze(queries: Tokens, frames: Frames, sound: Sound, query: int | None) -> Gaze:
    heard = int(np.ceil(sound.seconds / frames.seconds - 1e-9))
    keys = np.array(frames.positions[:heard])
    own = next((each for each in queries.stretches if isinstance(each, Frames)), None)
    if query is None or own is None or query not in own.positions:
        return Gaze(query, None, keys)
    return Gaze(query, (own.positions.index(query),), keys)


def _stretch(tokens: Tokens, kind: type[Stretch]) -> Stretch:
    stretches = [each for each in tokens.stretches if isinstance(each, kind)]
    if not stretches:
        what = "patches of a picture" if kind is Patches else "frames of a sound"
        raise InputError(f"the keys of this attention are not known to be {what}: it cannot be laid over one")
    return stretches[0]


def _of_heads(overview: Overview, gaze: Gaze) -> Float[np.ndarray, "layer head ..."]:
    return np.array(
        [[_at(query_row(each, gaze.query), gaze) for each in layer] for layer in overview.dense_weights]
    )


def _at(row: Float[np.ndarray, " key"], gaze: Gaze) -> Float[np.ndarray, "..."]:
    """The weights laid out like the gaze's keys; NaN where a patch has no key."""
    return np.where(gaze.keys < 0, np.nan, row[gaze.keys])


def _elsewhere(row: Float[np.ndarray, " key"], tokens: Tokens) -> dict[str, float]:
    inside = {position for each in tokens.stretches for position in each.positions}
    by_name: dict[str, float] = {}
    for key, token in enumerate(tokens.items):
        if key not in inside:
            name = token.name if token.special else "text"
            by_name[name] = by_name.get(name, 0.0) + float(row[key])
    return by_name


def compute_spectrogram(sound: Sound) -> Spectrogram:
    """The mel spectrogram: 64 bands every 10 ms, in decibels below the strongest, -80 to 0.

    The short-time power spectrum under a Hann window of 25 ms, summed by triangles that stand evenly on the
    mel scale, 2595 log10(1 + f / 700) (O'Shaughnessy 1987). A sound without any power is -80 throughout.
    """
    hop, length = round(_HOP * sound.rate), round(_WINDOW * sound.rate)
    size = 1 << (length - 1).bit_length()
    padded = np.pad(sound.wave, (size // 2, size))
    count = 1 + sound.count // hop
    starts = hop * np.arange(count)[:, None] + np.arange(size)
    window = np.zeros(size)
    window[(size - length) // 2 : (size - length) // 2 + length] = np.hanning(length)
    power = np.abs(np.fft.rfft(padded[starts] * window)) ** 2
    frequencies = np.fft.rfftfreq(size, 1 / sound.rate)
    edges = np.asarray(700 * (10 ** (np.linspace(0, _mel(sound.rate / 2), _BANDS + 2) / 2595) - 1))
    bands = power @ _triangles(frequencies, edges).T
    strongest = bands.max(initial=0.0)
    levels = np.full_like(bands, _FLOOR)
    heard = bands > strongest * 10 ** (_FLOOR / 10)
    levels[heard] = 10 * np.log10(bands[heard] / strongest)
    return Spectrogram(levels.T, edges[1:-1], hop / sound.rate)


def _mel(hertz: float) -> float:
    return 2595 * float(np.log10(1 + hertz / 700))


def _triangles(
    frequencies: Float[np.ndarray, " frequency"], edges: Float[np.ndarray, " edge"]
) -> Float[np.ndarray, "band frequency"]:
    """Triangular mel filters: weight 1 at a band's centre, falling to 0 at its neighbours' centres.

    A band that is narrower than the frequencies lie apart takes the nearest one.
    """
    low, middle, high = (edges[i : len(edges) - 2 + i, None] for i in range(3))
    rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    triangles = np.minimum(rising, falling).clip(0)
    empty = ~triangles.any(axis=1)
    nearest = np.abs(frequencies - middle).argmin(axis=1)
    triangles[empty, nearest[empty]] = 1.0
    return np.asarray(triangles)
