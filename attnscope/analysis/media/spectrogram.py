"""The spectrogram of a sound, for the eye: power in mel bands over time."""

import numpy as np
from jaxtyping import Float

from attnscope.results import Sound, Spectrogram

_WINDOW, _HOP = 0.025, 0.010  # seconds
_BANDS = 64
_FLOOR = -80.0  # decibels below the strongest


def compute_spectrogram(sound: Sound) -> Spectrogram:
    """Decibels below the strongest, -80 to 0, in 64 mel bands up to half the rate, every 10 ms.

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
    edges = _hertz(np.linspace(0, _mel(sound.rate / 2), _BANDS + 2))
    bands = power @ _triangles(frequencies, edges).T
    strongest = bands.max(initial=0.0)
    levels = np.full_like(bands, _FLOOR)
    heard = bands > strongest * 10 ** (_FLOOR / 10)
    levels[heard] = 10 * np.log10(bands[heard] / strongest)
    return Spectrogram(levels.T, edges[1:-1], hop / sound.rate)


def _mel(hertz: float) -> float:
    return 2595 * float(np.log10(1 + hertz / 700))


def _hertz(mel: Float[np.ndarray, " edge"]) -> Float[np.ndarray, " edge"]:
    return np.asarray(700 * (10 ** (mel / 2595) - 1))


def _triangles(
    frequencies: Float[np.ndarray, " frequency"], edges: Float[np.ndarray, " edge"]
) -> Float[np.ndarray, "band frequency"]:
    """Weights of the frequencies in each band: 1 at its middle edge, 0 at and beyond its neighbours.

    A band that is narrower than the frequencies lie apart takes the nearest one.
    """
    low, middle, high = (edges[i : len(edges) - 2 + i, None] for i in range(3))
    rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    triangles = np.minimum(rising, falling).clip(0)
    empty = ~triangles.any(axis=1)
    nearest = np.abs(frequencies - middle).argmin(axis=1)
    triangles[empty, nearest[empty]] = 1.0
    return np.asarray(triangles)
