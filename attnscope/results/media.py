"""Attention over a picture or a sound: rows of one query laid out as the patches or frames they weigh."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Float, Int

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.results.base.origin import Verdict
from attnscope.results.base.presented import Presented, fits, within
from attnscope.results.heads import HeadAttention, OfOneHead
from attnscope.results.overview import Overview

_HALF = 0.5  # of its attention: a head that gives a picture less looks elsewhere


class Case(StrEnum):
    """The conclusion for one head, or several, over a picture or a sound."""

    PLACE = "place"
    ELSEWHERE = "elsewhere"
    NO_PLACE = "no place"
    HEADS = "heads"
    NO_HEAD = "no head"


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture as the model saw it: cropped and resized by its processor, colours from 0 to 1.

    `covered` is the height and width, in pixels from the top left, that the model cuts into patches;
    `digest` the SHA-256 of the file. `pixels` are None when read from JSON, which holds only their
    `told_size`.
    """

    name: str
    digest: str
    pixels: Float[np.ndarray, "height width 3"] | None = field(metadata={"npz": True, "of": "image"})
    covered: tuple[int, int]
    told_size: tuple[int, int] = field(default=(0, 0), metadata={"file": "size", "of": "size"})

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.told_size if self.pixels is None else (self.pixels.shape[0], self.pixels.shape[1])

    @property
    def image(self) -> Float[np.ndarray, "height width 3"]:
        """The pixels; `InputError` where they were not stored."""
        if self.pixels is None:
            raise InputError("this picture was read from JSON, which leaves its pixels out: read the npz")
        return self.pixels

    @property
    def described(self) -> str:
        """`door.png, read as 224 x 224 pixels`: the file name, and the size that was read."""
        height, width = self.size
        return f"{printable(self.name)}, read as {height} x {width} pixels"

    def check_parts(self) -> None:
        same = self.pixels is None or self.pixels.shape[:2] == self.told_size
        fits(same, "'pixels' has not the picture's height and width")


@dataclass(frozen=True, eq=False)
class Sound:
    """A sound as the model heard it: one channel, `rate` samples a second; `digest` of the file, SHA-256.

    `samples` are None when read from JSON, which holds only their `told_count`.
    """

    name: str
    digest: str
    samples: Float[np.ndarray, " sample"] | None = field(metadata={"file": "wave", "npz": True, "of": "wave"})
    rate: int
    told_count: int = field(default=0, metadata={"file": "samples", "of": "count"})

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self.count / self.rate

    @property
    def count(self) -> int:
        """The number of samples."""
        return self.told_count if self.samples is None else len(self.samples)

    @property
    def wave(self) -> Float[np.ndarray, " sample"]:
        """The samples; `InputError` where they were not stored."""
        if self.samples is None:
            raise InputError("this sound was read from JSON, which leaves its samples out: read the npz")
        return self.samples

    @property
    def described(self) -> str:
        """The file name, duration and sampling rate: `door.wav, 1.20 s at 16000 Hz`."""
        return f"{printable(self.name)}, {self.seconds:.2f} s at {self.rate} Hz"

    def check_parts(self) -> None:
        same = self.samples is None or len(self.samples) == self.told_count
        fits(self.rate >= 1 and self.told_count >= 0 and same, "'sound' does not say how long it is")


@dataclass(frozen=True, eq=False)
class Spectrogram:
    """Power of a sound in mel bands, in decibels below the strongest: 0 at most.

    Moment i is `i * seconds` from the start; band j at `centres[j]` hertz. `levels` are these powers,
    `seconds` is from one moment to the next.
    """

    levels: Float[np.ndarray, "band moment"]
    centres: Float[np.ndarray, " band"]
    seconds: float


@dataclass(frozen=True, eq=False)
class Gaze:
    """The query whose attention is laid over a picture or a sound, and the keys of its patches or frames.

    `query` is a position, None for the mean over queries that have a key; `cell` the patch (row, column) or
    frame of the query itself, if any; `keys` the key positions of the patches, row by row, or of the frames,
    -1 for a patch outside of this attention.
    """

    query: int | None
    cell: tuple[int, ...] | None = field(metadata={"file": "query_cell"})
    keys: Int[np.ndarray, "..."]

    def check_places(self, heads: HeadAttention | Overview, weights: Float[np.ndarray, "..."]) -> None:
        """Raises `Damaged` where positions do not fit the heads' tokens, or the shape of the weights."""
        queries, keys = heads.query_tokens, heads.key_tokens
        shape = weights.shape[-self.keys.ndim :]
        fits(not (weights < 0).any(), "'over' has a weight below 0")
        fits(self.keys.shape == shape, "'keys' are not one for each patch or frame")
        inside = not self.keys.size or -1 <= self.keys.min() <= self.keys.max() < len(keys)
        fits(inside, "'keys' has a position that is no key's")
        fits(within(self.query, len(queries)), f"'query' is {self.query}, which is no token's position")
        inside = self.cell is None or (len(self.cell) == len(shape) and all(map(within, self.cell, shape)))
        fits(inside, "'query_cell' lies outside of the picture or the sound")


class _HeadLaidOver(OfOneHead):
    """Base of results that lay one head over a picture or a sound."""

    head: HeadAttention
    gaze: Gaze
    weights: Float[np.ndarray, "..."]

    for_readers = ("verdict", "case")

    @property
    def case(self) -> Case:
        """The conclusion: whether the head reads patches or frames, and gives them half of its weight."""
        if not np.isfinite(self.weights).any():
            return Case.NO_PLACE
        return Case.PLACE if np.nansum(self.weights) >= _HALF else Case.ELSEWHERE

    def check_parts(self) -> None:
        self.gaze.check_places(self.head, self.weights)


class _HeadsLaidOver(Presented):
    """Base of results that lay several heads over a picture or a sound."""

    overview: Overview
    gaze: Gaze
    weights: Float[np.ndarray, "..."]

    for_readers = ("verdict", "case")

    @property
    def case(self) -> Case:
        """The conclusion: whether any head reads a patch or frame."""
        return Case.HEADS if np.isfinite(self.weights).any() else Case.NO_HEAD

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return self.overview.verdict

    def check_parts(self) -> None:
        self.gaze.check_places(self.overview, self.weights)


class _Heard:
    """Base of results over a sound: holds its spectrogram."""

    spectrogram: Spectrogram | None

    @property
    def heard(self) -> Spectrogram:
        """The spectrogram; `InputError` where it was not stored."""
        if self.spectrogram is None:
            raise InputError(
                "this sound was read without its spectrogram, which only an npz of this version has"
            )
        return self.spectrogram


@dataclass(frozen=True, eq=False, repr=False)
class PictureAttention(_HeadLaidOver):
    """One head over a picture: `weights` on every patch, and the weight `elsewhere` by name."""

    head: HeadAttention = field(metadata={"spread": True})
    picture: Picture
    gaze: Gaze = field(metadata={"spread": True})
    weights: Float[np.ndarray, "row column"] = field(metadata={"file": "over"})
    elsewhere: dict[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class PictureHeads(_HeadsLaidOver):
    """Several heads over a picture, all for the same query.

    `weights` are those of each head on every patch.
    """

    overview: Overview = field(metadata={"spread": True})
    picture: Picture
    gaze: Gaze = field(metadata={"spread": True})
    weights: Float[np.ndarray, "layer head row column"] = field(metadata={"file": "over"})


@dataclass(frozen=True, eq=False, repr=False)
class SoundAttention(_HeadLaidOver, _Heard):
    """One head over a sound: `weights` on every frame, each `seconds` later than the one before.

    `elsewhere` is by name what lies on no frame.
    """

    head: HeadAttention = field(metadata={"spread": True})
    sound: Sound
    spectrogram: Spectrogram | None = field(metadata={"npz": True, "of": "heard"})
    gaze: Gaze = field(metadata={"spread": True})
    weights: Float[np.ndarray, " frame"] = field(metadata={"file": "over"})
    seconds: float = field(metadata={"file": "frame_seconds"})
    elsewhere: dict[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class SoundHeads(_HeadsLaidOver, _Heard):
    """Several heads over a sound, all for the same query.

    `weights` are those of each head on every frame, each `seconds` later than the one before.
    """

    overview: Overview = field(metadata={"spread": True})
    sound: Sound
    spectrogram: Spectrogram | None = field(metadata={"npz": True, "of": "heard"})
    gaze: Gaze = field(metadata={"spread": True})
    weights: Float[np.ndarray, "layer head frame"] = field(metadata={"file": "over"})
    seconds: float = field(metadata={"file": "frame_seconds"})
