"""Which measures can be taken of a corpus, what they need, how far two of them are apart: without torch."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need

DISCRETE = {"fixed", "offset", "pattern"}  # a rounding of weights may move a whole query to another key
_KNOWN = {Need.ALLOWED, Need.SPECIAL, Need.PUNCTUATION, Need.ALIKE, Need.NORMS}


def measurable(names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that can be taken of a corpus, in their order."""
    return tuple(name for name in names if MEASURES[name].needs <= _KNOWN)


def check_measurable(names: Sequence[str]) -> None:
    """Raises `InputError` for a measure that is not taken of a corpus."""
    if others := [name for name in names if name not in measurable(names)]:
        there = ", ".join(measurable(tuple(MEASURES)))
        raise InputError(f"no {', '.join(others)} over a corpus: what can be measured is {there}")


def needs_norms(names: Sequence[str]) -> bool:
    """Whether one of them needs what takes the heads' outputs to the hidden state."""
    return any(Need.NORMS in MEASURES[name].needs for name in names)


def apart(
    values: Float[np.ndarray, "measure layer head"],
    others: Float[np.ndarray, "measure layer head"],
    names: Sequence[str],
    keys: int,
) -> tuple[float, str]:
    """The largest difference of one text's values as a share of its measure's range, and of which measure.

    Those that jump (`DISCRETE`) are left out, and one that has no upper end ranges to its largest value.
    Infinite where one has a number and the other none.
    """
    worst, of = 0.0, ""
    for name, mine, theirs in zip(names, values, others, strict=True):
        if name.removesuffix("-norm") in DISCRETE or (np.isnan(mine).all() and np.isnan(theirs).all()):
            continue
        low, high = MEASURES[name].limits(keys) if name in MEASURES else (0.0, 1.0)
        most = float(np.nanmax(np.abs(theirs), initial=0.0)) or 1.0
        width = high - low if np.isfinite(high - low) and high > low else most
        off = np.where(np.isnan(mine) & np.isnan(theirs), 0.0, np.abs(mine - theirs)) / width
        if not (share := float(off.max())) <= worst:
            worst, of = (share if not np.isnan(share) else np.inf), name
    return worst, of
