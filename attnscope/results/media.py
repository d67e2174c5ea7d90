"""Attention over a picture or a sound: rows of one query laid out as the patches or frames they weigh."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.heads import HeadAttention, Overview


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture as the model saw it: cropped and resized by its processor, colours from 0 to 1.

    `covered` is the height and width, in pixels from the top left, that the model cuts into patches;
    `digest` the SHA-256 of the file.
    """

    name: str
    digest: str
    pixels: Float[np.ndarray, "height width 3"]
    covered: tuple[int, int]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]


@dataclass(frozen=True, eq=False)
class Sound:
    """A sound as the model heard it: one channel, `rate` samples a second; `digest` of the file, SHA-256."""

    name: str
    digest: str
    samples: Float[np.ndarray, " sample"]
    rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate


@dataclass(frozen=True, eq=False)
class Spectrogram:
    """Power of a sound in mel bands, in decibels below the strongest: 0 at most.

    Frame i is centred at `i * seconds` from the start; band j at `centres[j]` hertz.
    """

    levels: Float[np.ndarray, "band frame"]
    centres: Float[np.ndarray, " band"]
    seconds: float


@dataclass(frozen=True, eq=False)
class Gaze:
    """What one query, or the mean over the queries (`query` None), gives to one stretch of keys.

    `keys` are the key positions of the patches row by row, or of the frames. What lies `elsewhere` (on a
    class token, on text) and what lies on the stretch are the whole row. `cell` is the patch, as row and
    column, or the frame that the query itself stands for.
    """

    query: int | None
    keys: Int[np.ndarray, "*place"]
    elsewhere: dict[str, float]
    cell: tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class PictureAttention:
    """One head over a picture; `weights` are those of the gaze's query on every patch."""

    head: HeadAttention
    picture: Picture
    gaze: Gaze
    weights: Float[np.ndarray, "row column"]


@dataclass(frozen=True, eq=False)
class PictureHeads:
    """Several heads over a picture, all for the same query."""

    overview: Overview
    picture: Picture
    gaze: Gaze
    weights: Float[np.ndarray, "layer head row column"]


@dataclass(frozen=True, eq=False)
class SoundAttention:
    """One head over a sound; each frame is `seconds` later than the one before."""

    head: HeadAttention
    sound: Sound
    spectrogram: Spectrogram
    gaze: Gaze
    weights: Float[np.ndarray, " frame"]
    seconds: float


@dataclass(frozen=True, eq=False)
class SoundHeads:
    """Several heads over a sound, all for the same query."""

    overview: Overview
    sound: Sound
    spectrogram: Spectrogram
    gaze: Gaze
    weights: Float[np.ndarray, "layer head frame"]
    seconds: float
