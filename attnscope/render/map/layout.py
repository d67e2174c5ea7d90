"""What a drawing of a map points at, and how the map lies on its Axes.

Lengths are inches from the lower left corner of the Axes unless they are said to be points.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from attnscope.results import Projection

INKS = {"query": "#b23a00", "key": "#0a559c"}
LEGEND = 0.28  # height of the strip above the map
_EDGE = 0.16
LEAST_LINK = 0.01  # the weight of a link that is seen, and the smallest that is written as a number
_RADII = {"query": 3.4, "key": 2.0}  # points, from the middle of a marker to its edge, where there is room
_RING = 2.0  # points between a marker and the ring around it
_ROOM, _SMALLEST = 0.3, 0.7  # square inches a point needs for that, and the share of the size left without


@dataclass(frozen=True)
class Linked:
    """One query with the keys that are linked to it, and a key that has a ring; no query: all alike."""

    query: int | None
    keys: tuple[int, ...]
    key: int | None

    def chosen(self, side: str) -> int | None:
        return self.query if side == "query" else self.key

    def stands_out(self, side: str, position: int) -> bool:
        return position == self.chosen(side) or (side == "key" and position in self.keys)


def linked_to(result: Projection, query: int | None, key: int | None, links: int) -> Linked:
    """The `links` strongest keys of `query`, and `key` too where `query` may look at it.

    A link that would be too thin to be seen is left out, but that of the strongest key.
    """
    if query is None:
        return Linked(None, (), key)
    ranked = result.ranked_keys(query).tolist()
    seen = [each for each in ranked[:links] if result.weights[query, each] >= LEAST_LINK] or ranked[:1]
    further = [position for position in ranked[len(seen) :] if position == key]
    return Linked(query, (*seen, *further), key)


@dataclass(frozen=True)
class Plane:
    """`width` by `height` of the Axes, `scale` units of the map to an inch, markers `share` of their size."""

    width: float
    height: float
    origin: Float[np.ndarray, " 2"]
    scale: float
    share: float

    def radius(self, side: str, ring: bool = False) -> float:
        """From the middle of a marker to its edge, or to the ring around it, in points."""
        return self.share * _RADII[side] + (_RING if ring else 0.0)

    def inches(self, places: Float[np.ndarray, "*point 2"]) -> Float[np.ndarray, "*point 2"]:
        return np.asarray((places - self.origin) / self.scale)

    def places(self, inches: Float[np.ndarray, "*point 2"]) -> Float[np.ndarray, "*point 2"]:
        return np.asarray(self.origin + inches * self.scale)


def plane_on(axes: Axes, result: Projection) -> Plane:
    """Sets limits of one scale on both axes: the map in the middle, room for labels and legend around it."""
    box, dpi = axes.get_window_extent(), axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    # rounded, so that panels of one size have limits of the same bits
    width, height = round(box.width / dpi, 6), round(box.height / dpi, 6) - LEGEND
    points = np.concatenate([result.queries, result.keys])
    low, high = points.min(axis=0), points.max(axis=0)
    room = np.array([width - 6 * _EDGE, height - 2 * _EDGE])
    scale = float(((high - low) / room).max()) or 1.0
    origin = (low + high) / 2 - np.array([width, height]) / 2 * scale
    axes.set_xlim(origin[0], origin[0] + width * scale)
    axes.set_ylim(origin[1], origin[1] + (height + LEGEND) * scale)
    axes.set_aspect("equal", adjustable="box")
    share = float(np.clip(np.sqrt(width * height / len(points) / _ROOM), _SMALLEST, 1.0))
    return Plane(width, height, origin, scale, share)
