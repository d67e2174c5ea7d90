"""A result for every case and every optional part of what `heads --dims` says, made in NumPy."""

from collections.abc import Callable

import made_results as made
import numpy as np

from attnscope.render.sheets import Focus
from attnscope.render.sheets import terms as sheets
from attnscope.results import Dimensions, Rotation
from attnscope.results.score import Product

SAID, CASES = sheets.said_by_dimension, Product


def dimensions(
    names: list[str] = made.DOOR, *, turned: bool = True, unpaired: str = "", query: int = 8, key: int = 2
) -> Dimensions:
    """Query 8 `it` and key 2 `cat`; pairs of which one never turns."""
    head = made.head(names)
    half = head.q.shape[1] // 2
    places = np.arange(half)
    angle = np.where(places == half - 1, 0.0, -(10.0**-places))
    return Dimensions(head, query, key, Rotation(places, places + half, angle) if turned else None, unpaired)


EXAMPLES: dict[str, Callable[[], Dimensions] | tuple[Callable[[], Dimensions], Focus]] = {
    "below": dimensions,
    "below, a few shown": (dimensions, Focus(rows=3)),
    "above": lambda: dimensions(key=0, turned=False, unpaired="so it is"),
    "one key": lambda: dimensions(["a"], query=0, key=0),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "below": (Product.BELOW, "“cat” with <.01", "q·k −8.37", "12 other keys .58"),
    "above": (Product.ABOVE, "[CLS] with .05", "q·k 2.34", "12 other keys −.31"),
    "one key": (Product.ONE_KEY, "1.0 of its attention", "q·k 2.33"),
}
