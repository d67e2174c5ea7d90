"""The places that the labels of a map may take, and what each costs before any other label stands.

Sixteen directions around a point, further and further out, the right side preferred. All lengths are
inches, from the lower left corner.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attnscope.render.kit.boxes import grown, holding, hull, overlapping, through

CLEAR = 0.012  # left free around each label and each marker
COVERS = 40.0  # cost of each marker or label that is covered
_ANGLES = np.arange(16) * np.pi / 8
_GAPS = np.array([0, 0.03, 0.07, 0.11, 0.16, 0.22, 0.3, 0.4, 0.52, 0.67, 0.85, 1.05, 1.3, 1.6, 2.0])
_FAR, _ASIDE = 8.0, 0.25  # costs of an inch between point and label, and of standing not at the right
_CLOSE, _NEAR = 2.0, 0.05  # cost of each other marker that is near, and what is near
_ON_LINK, _PAST_MARKER, _OUTSIDE = (
    3.0,
    6.0,
    1e6,
)  # a label on a link, a leader over a marker, no room
_MARGIN = 0.04  # free at the edge


@dataclass(frozen=True)
class Surroundings:
    """What labels keep clear of: the edge of the axes, the boxes of markers, and, if possible, the links."""

    width: float
    height: float
    markers: Float[np.ndarray, "marker 4"]
    links: Float[np.ndarray, "link 4"]


@dataclass(frozen=True)
class Choices:
    """The places that every label may take, and what each would cost without the other labels.

    A hull is the box around a label's box and its leader.
    """

    boxes: Float[np.ndarray, "label choice 4"]
    leaders: Float[np.ndarray, "label choice 4"]
    hulls: Float[np.ndarray, "label choice 4"]
    costs: Float[np.ndarray, "label choice"]


def choices_of(
    anchors: Float[np.ndarray, "label 2"],
    sizes: Float[np.ndarray, "label 2"],
    radii: Float[np.ndarray, " label"],
    around: Surroundings,
) -> Choices:
    angles, gaps = (axis.ravel() for axis in np.meshgrid(_ANGLES, _GAPS, indexing="ij"))
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    inwards = np.clip(np.sqrt(2) * directions, -1, 1)  # from the edge of a box to its centre, in half sizes
    reach = 1.45 * (radii[:, None, None] + CLEAR) + gaps[:, None]  # 1.45: round markers have square boxes
    centres = anchors[:, None] + directions * reach + inwards * sizes[:, None] / 2
    boxes = np.concatenate([centres - sizes[:, None] / 2, centres + sizes[:, None] / 2], axis=-1)
    starts = np.broadcast_to(anchors[:, None], centres.shape)
    leaders = np.concatenate([starts, np.clip(starts, boxes[..., :2], boxes[..., 2:])], axis=-1)
    hulls = np.concatenate([np.minimum(boxes[..., :2], starts), np.maximum(boxes[..., 2:], starts)], axis=-1)
    costs = np.stack([_lonely_costs(*pair, around) for pair in zip(boxes, leaders, strict=True)])
    slanted = np.abs(directions).min(axis=-1)
    return Choices(boxes, leaders, hulls, costs + _FAR * gaps + _ASIDE * (1 - directions[:, 0] + slanted))


def _lonely_costs(
    boxes: Float[np.ndarray, "choice 4"], leaders: Float[np.ndarray, "choice 4"], around: Surroundings
) -> Float[np.ndarray, " choice"]:
    """What the places of one label cost before any other label is there."""
    outside = ~inside(boxes, around)
    markers = around.markers[overlapping(grown(hull(boxes), _NEAR), around.markers)[0]]
    foreign = markers[~holding(markers, leaders[0, :2])]
    costs: Float[np.ndarray, " choice"] = (
        _OUTSIDE * outside
        + COVERS * overlapping(grown(boxes, CLEAR), markers).sum(axis=1)
        + _CLOSE * overlapping(grown(boxes, _NEAR), foreign).sum(axis=1)
        + _ON_LINK * through(around.links, boxes).sum(axis=0)
        + _PAST_MARKER * through(leaders, foreign).sum(axis=1)
    )
    return costs


def inside(boxes: Float[np.ndarray, "box 4"], around: Surroundings) -> Bool[np.ndarray, " box"]:
    low, high = _MARGIN, np.array([around.width, around.height]) - _MARGIN
    return np.asarray((boxes[:, :2] >= low).all(axis=1) & (boxes[:, 2:] <= high).all(axis=1))
