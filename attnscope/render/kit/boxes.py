"""Plane geometry of boxes (left, bottom, right, top) and segments (x, y to x, y), all pairs at once."""

import numpy as np
from jaxtyping import Bool, Float


def grown(boxes: Float[np.ndarray, "box 4"], by: float) -> Float[np.ndarray, "box 4"]:
    """Boxes with every edge moved outwards."""
    return np.asarray(boxes + np.array([-by, -by, by, by]))


def hull(boxes: Float[np.ndarray, "box 4"]) -> Float[np.ndarray, "1 4"]:
    """The smallest box around all."""
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])[None]


def overlapping(
    boxes: Float[np.ndarray, "box 4"], others: Float[np.ndarray, "other 4"]
) -> Bool[np.ndarray, "box other"]:
    """Which boxes share more than an edge."""
    shared = np.ones((len(boxes), len(others)), bool)
    for low, high in ((0, 2), (1, 3)):
        start = np.maximum(boxes[:, None, low], others[:, low])
        shared &= start < np.minimum(boxes[:, None, high], others[:, high])
    return shared


def holding(boxes: Float[np.ndarray, "box 4"], point: Float[np.ndarray, " 2"]) -> Bool[np.ndarray, " box"]:
    """Which boxes hold `point`."""
    return np.asarray(((boxes[:, :2] <= point) & (point <= boxes[:, 2:])).all(axis=1))


def through(
    segments: Float[np.ndarray, "segment 4"], boxes: Float[np.ndarray, "box 4"]
) -> Bool[np.ndarray, "segment box"]:
    """Which segments have a point inside which boxes (the slab method)."""
    enters: Float[np.ndarray, "segment box"] = np.zeros((len(segments), len(boxes)))
    leaves: Float[np.ndarray, "segment box"] = np.ones((len(segments), len(boxes)))
    for low, high in ((0, 2), (1, 3)):
        start = segments[:, None, low]
        step = segments[:, None, high] - start
        with np.errstate(divide="ignore", invalid="ignore"):  # along an axis the infinities come out right
            first, second = (boxes[:, low] - start) / step, (boxes[:, high] - start) / step
        enters = np.maximum(enters, np.minimum(first, second))
        leaves = np.minimum(leaves, np.maximum(first, second))
    return enters < leaves


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
