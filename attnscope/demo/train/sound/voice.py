"""One spoken syllable out of nothing but arithmetic: no recording of a voice goes into it.

A voiced sound is a train of pulses, and each pulse rings at three formants, damped sine waves (Rodet's
formant wave functions, 1984). The formants of a pulse are those of its moment, so that they glide: out of
the consonant into the vowel, and within "ai" and "au". Hissing and bursts are noise through one resonance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.signal import lfilter

Sound = Float[np.ndarray, " sample"]
Formants = tuple[float, float, float]  # Hz

RATE = 16_000  # samples a second
RINGING = np.arange(256) / RATE  # how long one pulse is heard, in seconds
WIDTHS = np.array([80.0, 100.0, 160.0])  # Hz
DAMPING = np.exp(-math.pi * WIDTHS[:, None] * RINGING)  # formant sample

# Where the formants of a vowel begin and end, and how loud they are.
VOWELS: dict[str, tuple[Formants, Formants]] = {
    "a": ((760, 1300, 2600), (740, 1280, 2600)),
    "i": ((290, 2250, 2950), (290, 2250, 2950)),
    "u": ((330, 820, 2300), (330, 800, 2300)),
    "ai": ((750, 1300, 2600), (350, 2100, 2850)),
    "au": ((750, 1250, 2550), (370, 850, 2350)),
}
LOUDNESS = np.array([1.0, 0.5, 0.25])
# From where the formants glide into the vowel.
CONSONANTS: dict[str, Formants] = {
    "m": (260, 950, 2200),
    "l": (370, 1150, 2800),
    "w": (310, 650, 2250),
    "s": (400, 1650, 2600),
    "t": (400, 1800, 2650),
    "k": (400, 2050, 2400),
}
SYLLABLES = tuple(consonant + vowel for consonant in CONSONANTS for vowel in VOWELS)
SONOROUS = {"m": (0.05, 0.08, 0.4), "l": (0.05, 0.08, 0.5), "w": (0.05, 0.08, 0.6)}  # seconds, loudness
HISSING = {"s": (0.06, 0.10, 0.30, 5000.0, 6500.0, 1600.0)}  # seconds, loudness, Hz, width in Hz
BURSTING = {  # seconds, loudness, Hz, width in Hz
    "t": (0.015, 0.025, 0.5, 3400.0, 4200.0, 1400.0),
    "k": (0.020, 0.035, 0.5, 1700.0, 2100.0, 800.0),
}
CLOSED = (0.025, 0.045)  # seconds of silence before a burst


@dataclass(frozen=True)
class Manner:
    """How one syllable is spoken: its speed, its pitch in Hz and the length of the speaker's throat."""

    speed: float
    pitch: float
    throat: float


@dataclass(frozen=True)
class Spoken:
    """A syllable's samples after the silence, if any, that its consonant begins with."""

    silence: int
    samples: Sound


def speak(rng: np.random.Generator, syllable: str, manner: Manner) -> Spoken:
    """One syllable. A burst is preceded by silence, which is no part of what is heard."""

    def samples(least: float, most: float) -> int:
        return int(rng.uniform(least, most) / manner.speed * RATE)

    consonant, vowel = syllable[0], syllable[1:]
    start, end = VOWELS[vowel]
    scale = manner.throat * rng.uniform(0.96, 1.04, 3)
    points = [np.array(one) * scale for one in (CONSONANTS[consonant], start, end)]
    held = samples(0.13, 0.19) if len(vowel) > 1 else samples(0.10, 0.16)
    glide = min(samples(0.03, 0.06), held // 2)
    if consonant in SONOROUS:
        least, most, loud = SONOROUS[consonant]
        first = samples(least, most)
        moments = [0, first, first + glide, first + held]
        levels = [loud, loud, 1.0, 0.8]
        return Spoken(0, voiced(rng, moments, [points[0], *points], levels, manner.pitch))
    vowels = voiced(rng, [0, glide, held], points, [0.6, 1.0, 0.8], manner.pitch)
    least, most, loud, low, high, width = (HISSING | BURSTING)[consonant]
    first = samples(least, most)
    hiss = loud * noise(rng, first, rng.uniform(low, high) * manner.throat, width)
    silence = samples(*CLOSED) if consonant in BURSTING else 0
    return Spoken(silence, np.concatenate([hiss, vowels]))


def voiced(
    rng: np.random.Generator,
    moments: list[int],
    formants: list[Float[np.ndarray, " 3"]],
    levels: list[float],
    pitch: float,
) -> Sound:
    """Pulses that ring at formants which pass through `formants` at the samples of `moments`."""
    count = moments[-1]
    falling = np.linspace(1.06, 0.94, count) * pitch * (1 + 0.01 * rng.standard_normal())
    phase = np.cumsum(falling) / RATE + rng.random()
    pulses = np.flatnonzero(np.diff(np.floor(phase), prepend=math.floor(phase[0])))
    level = np.interp(pulses, moments, levels) * np.clip((count - pulses) / (0.02 * RATE), 0, 1)
    hertz = np.stack([np.interp(pulses, moments, track) for track in np.array(formants).T], axis=1)
    rings = np.sin((2 * math.pi * hertz[:, :, None] * RINGING).astype(np.float32))
    grains = np.einsum("pfs,fs->ps", rings, (LOUDNESS[:, None] * DAMPING).astype(np.float32))
    made = np.zeros(count + len(RINGING))
    for place, grain, loud in zip(pulses, grains, level, strict=True):
        made[place : place + len(RINGING)] += loud * grain
    return _level(made)[:count]


def noise(rng: np.random.Generator, count: int, hertz: float, width: float) -> Sound:
    """Noise around one frequency, faded in and out."""
    radius = math.exp(-math.pi * width / RATE)
    made = lfilter(
        [1.0], [1, -2 * radius * math.cos(2 * math.pi * hertz / RATE), radius**2], rng.standard_normal(count)
    )
    edge = min(60, count // 3)
    made[:edge] *= np.linspace(0, 1, edge)
    made[count - edge :] *= np.linspace(1, 0, edge)
    return _level(made)


def _level(made: Sound) -> Sound:
    """The sound at a mean power of 1."""
    louder: Sound = made / (np.sqrt(np.mean(made**2)) + 1e-9)
    return louder
