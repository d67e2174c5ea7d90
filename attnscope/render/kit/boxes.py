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
    left, low, right, high = boxes.T[:, :, None]
    other_left, other_low, other_right, other_high = others.T
    beside = np.maximum(left, other_left) < np.minimum(right, other_right)
    return np.asarray(beside & (np.maximum(low, other_low) < np.minimum(high, other_high)))


def holding(boxes: Float[np.ndarray, "box 4"], point: Float[np.ndarray, " 2"]) -> Bool[np.ndarray, " box"]:
    """Which boxes hold `point`."""
    return np.asarray(((boxes[:, :2] <= point) & (point <= boxes[:, 2:])).all(axis=1))


def through(
    segments: Float[np.ndarray, "segment 4"], boxes: Float[np.ndarray, "box 4"]
) -> Bool[np.ndarray, "segment box"]:
    """Which segments have a point inside which boxes (the slab method)."""
    enters: Float[np.ndarray, "segment box"] | float = 0.0
    leaves: Float[np.ndarray, "segment box"] | float = 1.0
    x, y, to_x, to_y = segments.T[:, :, None]
    left, low, right, high = boxes.T
    with np.errstate(divide="ignore", invalid="ignore"):  # along an axis the infinities come out right
        for start, step, near, far in ((x, to_x - x, left, right), (y, to_y - y, low, high)):
            first, second = (near - start) / step, (far - start) / step
            enters = np.maximum(enters, np.minimum(first, second))
            leaves = np.minimum(leaves, np.maximum(first, second))
    return np.asarray(enters < leaves)


def crossing(
    segments: Float[np.ndarray, "segment 4"], others: Float[np.ndarray, "other 4"]
) -> Bool[np.ndarray, "segment other"]:
    """Which segments cross; those that only touch do not."""
    x, y, to_x, to_y = segments.T[:, :, None]
    other_x, other_y, other_to_x, other_to_y = others.T
    along, up, other_along, other_up = to_x - x, to_y - y, other_to_x - other_x, other_to_y - other_y
    # each product is above 0 where an end of one lies left of the other, below 0 where right
    right, over = other_x - x, other_y - y
    apart = (along * over - up * right) * (along * (other_to_y - y) - up * (other_to_x - x)) < 0
    near_end = other_up * right - other_along * over
    far_end = other_along * (to_y - other_y) - other_up * (to_x - other_x)
    return np.asarray(apart & (near_end * far_end < 0))
