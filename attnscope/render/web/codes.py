"""Weights as codes of 16 or 8 bits: the angle whose sine squared is the weight, in equal steps.

Equal steps of the angle are fine near 0 and 1: the error is largest at .5 and none at 0 and 1. Code 0 is a
masked pair or NaN; an 8-bit code c stands for sin(pi / 2 (c - 1) / 254)^2, a 16-bit code for sin(pi / 2 (c -
256) / 65279)^2. The page draws the sine, the root of the weight.
"""

from functools import cache

import numpy as np
from jaxtyping import Float, UInt16

FINE, COARSE = 65279, 254  # with 256 more the high byte of a fine code is 0 only where it is masked
_SPARED = ((0, 21, 4), (21, 31, 3))  # from which code to which only every so many are used
_ERROR, _SHARE = 2.4e-5, 0.005  # how far fine codes lie apart at most, and as a share of a small weight
DECIMALS = 4  # of a weight that a page prints: with fine codes every one of them is that of the exact number

LOST = 2  # a code that `sparing` leaves out: a weight that is not kept

Codes = UInt16[np.ndarray, "..."]


def fine(weights: Float[np.ndarray, "..."]) -> Codes:
    """16-bit codes: the nearest code, or its neighbour where only that has the same printed digits.

    The largest error is 2.5e-5. Where codes lie closer than that, and than half a per cent of a small weight,
    only every second, fourth, ... is used, which makes a page a tenth smaller.
    """
    none = np.isnan(weights)
    known = np.clip(np.where(none, 0.0, weights).astype(np.float64, copy=False), 0.0, 1.0)
    steps = np.rint(_angles(known) * FINE)
    apart = _apart()[(steps.astype(np.int64) + 256) >> 8]
    # 256 is a multiple of every distance: what is used does not depend on where the high byte changes
    steps = np.minimum(np.rint(steps / apart) * apart, FINE)
    off = _printed(known) - _printed(_weights(steps / FINE).astype(np.float32).astype(np.float64))
    steps += np.sign(off, out=off) * apart
    steps += 256
    steps[none] = 0
    return np.asarray(steps, dtype=np.uint16)


@cache
def _apart() -> np.ndarray:
    """Distance between used codes, by their high byte: a power of two."""
    angles = np.clip((np.arange(256) - 0.5) * 256 / FINE, 0.0, 1.0)
    weights = _weights(angles)
    step = np.pi * np.sqrt(weights * (1 - weights)) / FINE
    wanted = np.minimum(_ERROR, _SHARE * weights)
    return np.asarray(2.0 ** np.floor(np.log2(np.clip(wanted / np.maximum(step, 1e-12), 1.0, 128.0))))


def coarse(weights: Float[np.ndarray, "..."]) -> Codes:
    """8-bit codes of weights; the largest error is .0031."""
    return _marked(_steps(weights), weights)


def sparing(weights: Float[np.ndarray, "..."]) -> Codes:
    """8-bit codes of weights with larger steps below .036, which compress to two thirds of the bytes.

    The largest error is .0034.
    """
    spared = np.arange(COARSE + 1)
    for first, end, step in _SPARED:
        spared[first:end] = first + np.rint((spared[first:end] - first) / step) * step
    return _marked(spared[_steps(weights)], weights)


def largest(
    weights: Float[np.ndarray, "head query key"], most: int
) -> tuple[Codes, Float[np.ndarray, " head"]]:
    """Codes of the `most` largest weights of each row, `LOST` for the others; and each head's kept share."""
    found, known = sparing(weights), np.nan_to_num(weights)
    others = np.argpartition(-known, most, axis=-1)[..., most:]
    lost = np.take_along_axis(found, others, -1)
    np.put_along_axis(found, others, np.where(lost == 0, 0, LOST).astype(np.uint16), -1)
    kept = np.where(found == LOST, 0.0, known).sum(axis=(1, 2), dtype=np.float64)
    return found, np.asarray(kept / np.maximum(known.sum(axis=(1, 2), dtype=np.float64), 1e-12))


def decoded(codes: np.ndarray, *, both: bool) -> Float[np.ndarray, "..."]:
    """Weights of codes in single precision, NaN for code 0; `both` means 16-bit codes."""
    share = (codes.astype(np.float64) - 256) / FINE if both else (codes.astype(np.float64) - 1) / COARSE
    return np.asarray(np.where(codes == 0, np.nan, _weights(share)).astype(np.float32), dtype=np.float64)


def planes(codes: Codes) -> tuple[bytes, bytes]:
    """High bytes, which are drawn, and low bytes, which add digits, each in column order.

    Columns compress better: different queries give one key more similar weights than one query its keys.
    """
    return (codes >> 8).astype(np.uint8).tobytes("F"), (codes & 0xFF).astype(np.uint8).tobytes("F")


def _angles(weights: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return np.asarray(np.arcsin(np.sqrt(weights)) / (np.pi / 2))


def _weights(shares: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return np.asarray(np.square(np.sin(np.pi / 2 * shares)))


def _steps(weights: Float[np.ndarray, "..."]) -> np.ndarray:
    known = np.clip(np.nan_to_num(weights), 0.0, 1.0)
    return np.asarray(np.rint(_angles(known) * COARSE), dtype=np.int16)


def _printed(weights: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return np.asarray(np.floor(weights * 10**DECIMALS + 0.5))


def _marked(steps: np.ndarray, weights: Float[np.ndarray, "..."]) -> Codes:
    return np.where(np.isnan(weights), 0, steps + 1).astype(np.uint16)
