"""Attention over a picture or a sound: rows of one query laid out as the patches or frames they weigh."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.heads import HeadAttention, Overview
from attnscope.results.origin import Verdict
from attnscope.results.presented import Presented


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
    """Whose attention is laid over a picture or a sound, and where that lies among the keys.

    `query` is a position, None for the mean over the queries that may look somewhere; `cell` the patch (row,
    column) or the frame that it stands for itself, if any; `keys` the key positions of the patches, row by
    row, or of the frames, -1 for a patch that this attention does not read.
    """

    query: int | None
    cell: tuple[int, ...] | None
    keys: Int[np.ndarray, "..."]


@dataclass(frozen=True, eq=False, repr=False)
class PictureAttention(Presented):
    """One head over a picture: `weights` on every patch, and by name what lies `elsewhere`."""

    head: HeadAttention
    picture: Picture
    gaze: Gaze
    weights: Float[np.ndarray, "row column"]
    elsewhere: dict[str, float]

    @property
    def verdict(self) -> Verdict:
        """The verdict of the head's certificate."""
        return self.head.verdict


@dataclass(frozen=True, eq=False, repr=False)
class PictureHeads(Presented):
    """Several heads over a picture, all for the same query."""

    overview: Overview
    picture: Picture
    gaze: Gaze
    weights: Float[np.ndarray, "layer head row column"]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return self.overview.verdict


@dataclass(frozen=True, eq=False, repr=False)
class SoundAttention(Presented):
    """One head over a sound: `weights` on every frame, each `seconds` later than the one before."""

    head: HeadAttention
    sound: Sound
    spectrogram: Spectrogram
    gaze: Gaze
    weights: Float[np.ndarray, " frame"]
    seconds: float
    elsewhere: dict[str, float]

    @property
    def verdict(self) -> Verdict:
        """The verdict of the head's certificate."""
        return self.head.verdict


@dataclass(frozen=True, eq=False, repr=False)
class SoundHeads(Presented):
    """Several heads over a sound, all for the same query."""

    overview: Overview
    sound: Sound
    spectrogram: Spectrogram
    gaze: Gaze
    weights: Float[np.ndarray, "layer head frame"]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return self.overview.verdict
