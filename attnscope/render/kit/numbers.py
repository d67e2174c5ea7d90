"""Numbers as a person reads them: two or three decimals, no leading zero for weights, short exponents."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Shaped


def weight_text(weight: float, decimals: int = 2) -> str:
    """A weight between 0 and 1 in `decimals + 1` characters: `.87`, `1.0`, `.421`."""
    if not math.isfinite(weight):
        return str(weight)
    text = f"{weight:.{decimals}f}"
    return text[1:] if text.startswith("0.") else text[: decimals + 1]


def signed_texts(values: Float[np.ndarray, "..."], decimals: int) -> Shaped[np.ndarray, "..."]:
    """Every value as text, an object array of the same shape, all in one notation.

    `decimals` holds for values from 0.1 to 1000; smaller ones get up to two more, larger ones fewer, and
    beyond that all are written with an exponent.
    """
    return in_words(notation(values, decimals), values)


def notation(values: Float[np.ndarray, "..."], decimals: int) -> Callable[[float], str]:
    """How each of these values is written, so that all are in one notation."""
    extent = largest_magnitude(values)
    if extent and not 1e-3 <= extent < 1e5:
        return short
    more = 2 if 0 < extent < 0.01 else 1 if 0 < extent < 0.1 else 0
    places = 0 if extent >= 1000 else decimals + more
    return lambda value: _positive_zero(f"{value:.{places}f}")


def in_words(word: Callable[[float], str], values: Float[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    """Every value through `word`, as an object array of the same shape."""
    words: Shaped[np.ndarray, " ..."] = np.vectorize(word, otypes=[object])(values)
    return words


def _positive_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def largest_magnitude(values: Float[np.ndarray, "..."]) -> float:
    """Largest finite absolute value, 0 where there is none."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def short(value: float) -> str:
    """Two significant digits for errors and tolerances: `3.1e-8`, `0.25`, `0`."""
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.2g}" if abs(value) < 100 else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def descending(values: Float[np.ndarray, " key"]) -> list[int]:
    """Positions by falling value, the earlier first where two are alike, NaN last."""
    return [int(i) for i in np.argsort(-values, kind="stable")]


def counted(number: int, noun: str) -> str:
    """`1 head`, `1,024 heads`, `3 queries`, `2 patches`."""
    plural = noun[:-1] + "ies" if noun.endswith("ry") else noun + ("es" if noun.endswith("ch") else "s")
    return f"{number:,} {noun if number == 1 else plural}"
