"""A result as a part of an entry, in the form in which it is stored anywhere, in as few bytes as are exact.

Vectors that a kernel had in float32 are float64 only by name; a scaled score is a product of two numbers that
are there. What is left out is left out only where putting it back gives every bit again, which is tried.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from attnscope.errors import Damaged
from attnscope.results import Result
from attnscope.results.base.parts import Arrays
from attnscope.results.stored.arrays import parted
from attnscope.results.stored.document import document, of_document
from attnscope.results.stored.strict import strict
from attnscope.session.cache.entry import DamagedEntryError, Part

_TIMES, _MASKED = "times_scale", "scaled"
Pairs = Float[np.ndarray, "query key"]


def packed(result: Result) -> Part:
    """The result as plain values and arrays; the same result gives the same part."""
    whole: Arrays = {}
    values: dict[str, Any] = {"result": strict(parted(document(result, npz=True), whole))}
    values["made"] = left_out = {}
    for name, (sources, again) in _AGAIN.items():
        there = name in whole and all(source in whole for source in sources)
        if there and _same(
            again(*(whole[source] for source in sources), *_scale(values["result"])), whole[name]
        ):
            left_out[name] = list(sources)
    return Part(values, {name: _narrowed(array) for name, array in whole.items() if name not in left_out})


def unpacked(part: Part) -> Result:
    """The result again, with every check that a stored file passes; `DamagedEntryError` where it does not."""
    try:
        stored = part.values["result"]
        arrays = {name: _widened(array) for name, array in part.arrays.items()}
        for name in part.values["made"]:
            sources, again = _AGAIN[name]
            arrays[name] = again(*(arrays[source] for source in sources), *_scale(stored))
        return of_document(stored, arrays)
    except (Damaged, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DamagedEntryError("it does not fit together") from error


def _scale(stored: Mapping[str, Any]) -> tuple[Any, ...]:
    return (stored.get("scale"),)


def _times(scores: Pairs, scale: float | None) -> Pairs:
    return scores * (np.nan if scale is None else scale)


def _masked(capped: Pairs, allowed: Bool[np.ndarray, "query key"], _: float | None) -> Pairs:
    return np.where(allowed, capped, np.nan)


def _alike(times_scale: Pairs, _: float | None) -> Pairs:
    return times_scale.copy()


_AGAIN: dict[str, tuple[tuple[str, ...], Callable[..., Pairs]]] = {  # in the order in which they are put back
    _TIMES: (("scores",), _times),
    "capped": ((_TIMES,), _alike),
    _MASKED: (("capped", "allowed"), _masked),
}


def _same(one: Shaped[np.ndarray, "..."], other: Shaped[np.ndarray, "..."]) -> bool:
    """Bit for bit, signs of zeros too: at most one product was made, which all processors round alike."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _narrowed(values: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    if values.dtype != np.float64:
        return values
    with np.errstate(all="ignore"):
        narrow = values.astype(np.float32)
        return narrow if _same(narrow.astype(np.float64), np.ascontiguousarray(values)) else values


def _widened(values: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    """As it was, and writable as every result's arrays are; what a file holds is neither."""
    return values.astype(np.float64) if values.dtype == np.float32 else values.copy()
