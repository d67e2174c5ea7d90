"""Weights as codes of 16 or 8 bits: the square root in equal steps, so that small weights are not lost.

Code 0 is a pair that is masked or has no number; a code c above it stands for ((c - 1) / STEPS)^2.
"""

import numpy as np
from jaxtyping import Float, UInt16

FINE, COARSE = 65534, 254
_SMALL = 31  # codes below it are spared
DECIMALS = 4  # of a weight that a page prints: with fine codes every one of them is that of the exact number

Codes = UInt16[np.ndarray, "..."]


def fine(weights: Float[np.ndarray, "..."]) -> Codes:
    """Codes of 16 bits. The nearest one, or that beside it where only that has the same printed digits.

    The largest error is one step, 3.1e-5, the mean far below half of one.
    """
    none = np.isnan(weights)
    known = np.clip(np.where(none, 0.0, weights).astype(np.float64, copy=False), 0.0, 1.0)
    steps = np.rint(np.sqrt(known) * FINE)
    again = steps / FINE
    again *= again  # as `decoded` has it, without the way over integers
    off = _printed(known) - _printed(again.astype(np.float32).astype(np.float64))
    steps += np.sign(off, out=off)
    steps += 1
    steps[none] = 0
    return np.asarray(steps, dtype=np.uint16)


def coarse(weights: Float[np.ndarray, "..."]) -> Codes:
    """Codes of 8 bits: the largest error is .004, and a weight below 4e-6 is 0."""
    return _marked(_steps(np.nan_to_num(weights), COARSE), weights)


def sparing(weights: Float[np.ndarray, "..."]) -> Codes:
    """The same with steps three times as large below .015, where nearly all weights of a long text lie.

    The largest error is the same, and a third fewer bytes are left once it is deflated.
    """
    spared = np.arange(COARSE + 1)
    spared[:_SMALL] = np.rint(spared[:_SMALL] / 3) * 3
    return _marked(spared[_steps(np.nan_to_num(weights), COARSE)], weights)


def decoded(codes: np.ndarray, steps: int) -> Float[np.ndarray, "..."]:
    """The weights again as the page has them, in single precision, NaN for code 0."""
    root = (codes.astype(np.float64) - 1) / steps
    return np.asarray(np.where(codes == 0, np.nan, root * root).astype(np.float32), dtype=np.float64)


def planes(codes: Codes) -> bytes:
    """All high bytes, then all low ones: the first half is the picture, and both deflate better apart."""
    return (codes >> 8).astype(np.uint8).tobytes() + (codes & 0xFF).astype(np.uint8).tobytes()


def _steps(weights: Float[np.ndarray, "..."], steps: int) -> np.ndarray:
    return np.asarray(np.rint(np.sqrt(np.clip(weights, 0.0, 1.0)) * steps), dtype=np.int16)


def _printed(weights: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The weight, from 0 to 1, as it is printed, in units of its last digit."""
    return np.asarray(np.floor(weights * 10**DECIMALS + 0.5))


def _marked(steps: np.ndarray, weights: Float[np.ndarray, "..."]) -> Codes:
    return np.where(np.isnan(weights), 0, steps + 1).astype(np.uint16)
