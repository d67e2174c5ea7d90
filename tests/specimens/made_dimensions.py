"""One pair of tokens by dimension, made in NumPy."""

import made_results as made
import numpy as np

from attnscope.results import Dimensions, Rotation


def dimensions(*, turned: bool = True, unpaired: str = "", key: int = 2, **changed: object) -> Dimensions:
    """Query 8 `it` and key 2 `cat`; pairs of which one never turns."""
    head = made.head(**changed)  # type: ignore[arg-type]
    half = head.q.shape[1] // 2
    places = np.arange(half)
    angle = np.where(places == half - 1, 0.0, -(10.0**-places))
    return Dimensions(head, 8, key, Rotation(places, places + half, angle) if turned else None, unpaired)
