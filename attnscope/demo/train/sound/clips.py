"""Clips of a few spoken words, and when each of their syllables is heard.

A word has one to three syllables. Its first is a little higher and longer than the others, and between words
there is a pause. Every clip is spoken at another speed and pitch, by another throat, in another noise. Clip
`number` of a `part` is the same for the same seed, alone or in a batch. One word of two or three syllables
in ten is kept out of training, by a checksum.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from zlib import crc32

import numpy as np
from scipy.signal import lfilter

from attnscope.demo.train.sound.voice import RATE, SYLLABLES, Manner, Sound, Spoken, speak

SECONDS = 3  # the longest clip
MOST = 9  # syllables of a clip
NOISE = (6.0, 30.0)  # dB that the speech is above the noise
HELD_OUT_SHARE = 10
PARTS = ("training", "selection", "reported", "example")

Word = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """What clips are to be drawn: how many syllables, how long at most, which words, how much noise."""

    least: int = 3
    most: int = MOST
    seconds: float = SECONDS
    new: bool = False  # every word of two syllables and more is one that is kept out of training
    noise: tuple[float, float] = NOISE


ANY = Kind()


@dataclass(frozen=True)
class Clip:
    """A sound, the words that are spoken in it, and the seconds in which each syllable is heard."""

    sound: Sound
    words: tuple[Word, ...]
    times: tuple[tuple[float, float], ...]

    @property
    def text(self) -> str:
        """What is said, as it is written."""
        return " ".join("".join(word) for word in self.words)

    @property
    def seconds(self) -> float:
        """How long the clip is."""
        return len(self.sound) / RATE


def held_out(word: Word) -> bool:
    """Whether a word is kept out of training; words of one syllable never are."""
    return len(word) > 1 and crc32("-".join(word).encode()) % HELD_OUT_SHARE == 0


def clip(seed: int, part: str, number: int, kind: Kind = ANY) -> Clip:
    """Clip `number` of a part of the stream."""
    rng = np.random.default_rng((seed, PARTS.index(part), number))
    while True:
        words = draw(rng, kind)
        sound, times = sounded(rng, words)
        if len(sound) <= kind.seconds * RATE:
            return Clip(_in_noise(rng, sound, kind.noise), words, times)


def draw(rng: np.random.Generator, kind: Kind) -> tuple[Word, ...]:
    """Words that have the wanted number of syllables together."""
    left, words = int(rng.integers(kind.least, kind.most + 1)), []
    while left:
        size = min(left, 1 + int(rng.choice(3, p=(0.25, 0.45, 0.30))))
        word = tuple(SYLLABLES[index] for index in rng.integers(len(SYLLABLES), size=size))
        if size == 1 or held_out(word) == kind.new:
            words.append(word)
            left -= size
    return tuple(words)


def sounded(
    rng: np.random.Generator, words: tuple[Word, ...]
) -> tuple[Sound, tuple[tuple[float, float], ...]]:
    """These words without noise, and the seconds in which each syllable is heard."""
    speed, pitch, throat = rng.uniform(0.9, 1.5), rng.uniform(90, 230), rng.uniform(0.88, 1.15)
    at, parts, times = (
        int(rng.uniform(0.02, 0.35) * RATE),
        list[tuple[int, Sound]](),
        list[tuple[float, float]](),
    )
    for word in words:
        for place, name in enumerate(word):
            stress = 1.0 if place else 1.12
            manner = Manner(
                speed * rng.uniform(0.9, 1.1) / stress, pitch * stress * rng.uniform(0.93, 1.07), throat
            )
            one: Spoken = speak(rng, name, manner)
            at += one.silence
            parts.append((at, one.samples * rng.uniform(0.65, 1)))
            times.append((at / RATE, (at + len(one.samples)) / RATE))
            at += len(one.samples)
        at += int(rng.uniform(0.08, 0.30) * RATE)
    sound = np.zeros(int(times[-1][1] * RATE + rng.uniform(0.03, 0.35) * RATE))
    for start, samples in parts:
        sound[start : start + len(samples)] += samples
    return sound, tuple(times)


def _in_noise(rng: np.random.Generator, sound: Sound, decibels: tuple[float, float]) -> Sound:
    """The sound in noise of a random colour, at a random level."""
    noise = lfilter([1.0], [1, -rng.uniform(0, 0.9)], rng.standard_normal(len(sound)))
    below = 10 ** (-rng.uniform(*decibels) / 20) * np.sqrt(np.mean(sound**2) / np.mean(noise**2))
    mixed = sound + below * noise
    played: Sound = (mixed * rng.uniform(0.2, 0.9) / abs(mixed).max()).astype(np.float32)
    return played


def digest(clips: list[Clip]) -> str:
    """A checksum of what is said and when; the samples, which may differ in their last bits, are left out."""
    told = sha256()
    for one in clips:
        told.update(f"{one.text} {[tuple(round(1000 * at) for at in time) for time in one.times]}\n".encode())
    return told.hexdigest()
