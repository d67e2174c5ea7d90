"""Plane geometry of boxes (left, bottom, right, top) and segments (x, y to x, y), all pairs at once."""

import numpy as np
from jaxtyping import Bool, Float


def grown(boxes: Float[np.ndarray, "box 4"], by: float) -> Float[np.ndarray, "box 4"]:
    """Boxes with every edge moved outwards."""
    return boxes + np.array([-by, -by, by, by])


def overlapping(
    boxes: Float[np.ndarray, "box 4"], others: Float[np.ndarray, "other 4"]
) -> Bool[np.ndarray, "box other"]:
    """Which boxes share more than an edge."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared: Bool[np.ndarray, "box other"] = (low < high).all(axis=-1)
    return shared


def holding(boxes: Float[np.ndarray, "box 4"], point: Float[np.ndarray, " 2"]) -> Bool[np.ndarray, " box"]:
    """Which boxes hold `point`."""
    held: Bool[np.ndarray, " box"] = ((boxes[:, :2] <= point) & (point <= boxes[:, 2:])).all(axis=-1)
    return held


def through(
    segments: Float[np.ndarray, "segment 4"], boxes: Float[np.ndarray, "box 4"]
) -> Bool[np.ndarray, "segment box"]:
    """Which segments have a point inside which boxes (the slab method)."""
    start, step = segments[:, None, :2], segments[:, None, 2:] - segments[:, None, :2]
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (boxes[:, :2] - start) / step, (boxes[:, 2:] - start) / step
    beside = (start <= boxes[:, :2]) | (start >= boxes[:, 2:])  # of a segment that stands still on this axis
    enters = np.where(step == 0, np.where(beside, np.inf, -np.inf), np.minimum(first, second)).max(axis=-1)
    leaves = np.where(step == 0, np.inf, np.maximum(first, second)).min(axis=-1)
    crossed: Bool[np.ndarray, "segment box"] = np.maximum(enters, 0.0) < np.minimum(leaves, 1.0)
    return crossed


def crossing(
    segments: Float[np.ndarray, "segment 4"], others: Float[np.ndarray, "other 4"]
) -> Bool[np.ndarray, "segment other"]:
    """Which segments cross; those that only touch do not."""
    a, b = segments[:, None, :2], segments[:, None, 2:]
    c, d = others[None, :, :2], others[None, :, 2:]
    apart = _side(a, b, c) * _side(a, b, d) < 0
    crossed: Bool[np.ndarray, "segment other"] = apart & (_side(c, d, a) * _side(c, d, b) < 0)
    return crossed


def _side(
    start: Float[np.ndarray, "... 2"], end: Float[np.ndarray, "... 2"], point: Float[np.ndarray, "... 2"]
) -> Float[np.ndarray, "..."]:
    """Above 0 where `point` lies left of the line from `start` to `end`, below 0 where right."""
    along, away = end - start, point - start
    return np.asarray(along[..., 0] * away[..., 1] - along[..., 1] * away[..., 0])
