"""Where the labels of a map go: near their points, off every marker and every other label.

Each label has the same few hundred places to choose from, in sixteen directions around its point and
further and further out. Labels choose in turn, the crowded ones first, and choose again until none would
rather stand elsewhere. No random numbers and no clock: the same input gives the same places. All lengths
are inches, from the lower left corner.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.render.boxes import crossing, grown, holding, overlapping, through

_ANGLES = np.arange(16) * np.pi / 8
_GAPS = np.array([0, 0.03, 0.07, 0.11, 0.16, 0.22, 0.3, 0.4, 0.52, 0.67, 0.85, 1.05, 1.3, 1.6, 2.0])
_CLEAR = 0.012  # left free around each label and each marker
_NEIGHBOURHOOD = 0.5
_FAR, _ASIDE = 8.0, 0.25  # costs of an inch between point and label, and of standing not at the right
_COVERS, _ON_LINK = 40.0, 3.0  # of each label or marker covered, of each link
_ON_LEADER, _PAST_MARKER, _CROSSED = 12.0, 6.0, 6.0  # of leaders: under a label, over a marker, crossing
_OUTSIDE = 1e6
_MOST_SWEEPS = 12


@dataclass(frozen=True)
class Surroundings:
    """What labels keep clear of: the edge of the axes, the boxes of markers, and, if possible, the links."""

    width: float
    height: float
    markers: Float[np.ndarray, "marker 4"]
    links: Float[np.ndarray, "link 4"]


@dataclass(frozen=True)
class Placement:
    """Box and leader (from its point to its edge) of every label; `free` where it covers nothing."""

    boxes: Float[np.ndarray, "label 4"]
    leaders: Float[np.ndarray, "label 4"]
    free: Bool[np.ndarray, " label"]


@dataclass(frozen=True)
class _Choices:
    """The places that every label may take, and what each would cost without the other labels."""

    boxes: Float[np.ndarray, "label choice 4"]
    leaders: Float[np.ndarray, "label choice 4"]
    costs: Float[np.ndarray, "label choice"]


def placement(
    anchors: Float[np.ndarray, "label 2"],
    sizes: Float[np.ndarray, "label 2"],
    radii: Float[np.ndarray, " label"],
    around: Surroundings,
) -> Placement:
    """Places for labels of `sizes` beside the points `anchors`, whose markers reach `radii` far.

    Labels come most important first: where two cannot both be free, the first one is.
    """
    choices = _choices(anchors, sizes, radii, around)
    chosen = _chosen(choices, _crowded_first(anchors, around.markers))
    every = np.arange(len(anchors))
    boxes, leaders = choices.boxes[every, chosen], choices.leaders[every, chosen]
    return Placement(boxes, leaders, _free(boxes, around))


def _choices(
    anchors: Float[np.ndarray, "label 2"],
    sizes: Float[np.ndarray, "label 2"],
    radii: Float[np.ndarray, " label"],
    around: Surroundings,
) -> _Choices:
    angles, gaps = (axis.ravel() for axis in np.meshgrid(_ANGLES, _GAPS, indexing="ij"))
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    inwards = np.clip(np.sqrt(2) * directions, -1, 1)  # from the edge of a box to its centre, in half sizes
    reach = 1.45 * (radii[:, None, None] + _CLEAR) + gaps[:, None]  # 1.45: round markers have square boxes
    centres = anchors[:, None] + directions * reach + inwards * sizes[:, None] / 2
    boxes = np.concatenate([centres - sizes[:, None] / 2, centres + sizes[:, None] / 2], axis=-1)
    starts = np.broadcast_to(anchors[:, None], centres.shape)
    leaders = np.concatenate([starts, np.clip(starts, boxes[..., :2], boxes[..., 2:])], axis=-1)
    costs = np.stack([_lonely_costs(*pair, around) for pair in zip(boxes, leaders, strict=True)])
    slanted = np.abs(directions).min(axis=-1)
    return _Choices(boxes, leaders, costs + _FAR * gaps + _ASIDE * (1 - directions[:, 0] + slanted))


def _lonely_costs(
    boxes: Float[np.ndarray, "choice 4"], leaders: Float[np.ndarray, "choice 4"], around: Surroundings
) -> Float[np.ndarray, " choice"]:
    """What the places of one label cost before any other label is there."""
    outside = (boxes[:, :2] < 0).any(axis=1) | (boxes[:, 2:] > (around.width, around.height)).any(axis=1)
    foreign = around.markers[~holding(around.markers, leaders[0, :2])]
    costs: Float[np.ndarray, " choice"] = (
        _OUTSIDE * outside
        + _COVERS * overlapping(grown(boxes, _CLEAR), around.markers).sum(axis=1)
        + _ON_LINK * through(around.links, boxes).sum(axis=0)
        + _PAST_MARKER * through(leaders, foreign).sum(axis=1)
    )
    return costs


def _crowded_first(
    anchors: Float[np.ndarray, "label 2"], markers: Float[np.ndarray, "marker 4"]
) -> Int[np.ndarray, " label"]:
    """The labels in the order in which they choose."""
    near = [holding(grown(markers, _NEIGHBOURHOOD), anchor).sum() for anchor in anchors]
    return np.argsort(-np.array(near), kind="stable")


def _chosen(choices: _Choices, order: Int[np.ndarray, " label"]) -> Int[np.ndarray, " label"]:
    """The choice of every label: each takes its cheapest, again and again until nothing changes."""
    chosen = np.full(len(order), -1)
    for _ in range(_MOST_SWEEPS):
        before = chosen.copy()
        for label in order:
            chosen[label] = -1
            others = np.flatnonzero(chosen >= 0)
            boxes = choices.boxes[others, chosen[others]]
            leaders = choices.leaders[others, chosen[others]]
            costs = choices.costs[label] + _shared_costs(choices, label, boxes, leaders)
            chosen[label] = costs.round(6).argmin()
        if (chosen == before).all():
            break
    return chosen


def _shared_costs(
    choices: _Choices,
    label: int,
    boxes: Float[np.ndarray, "other 4"],
    leaders: Float[np.ndarray, "other 4"],
) -> Float[np.ndarray, " choice"]:
    """What the places of one label cost where the others stand as they do."""
    own, lines = choices.boxes[label], choices.leaders[label]
    costs: Float[np.ndarray, " choice"] = (
        _COVERS * overlapping(grown(own, _CLEAR), boxes).sum(axis=1)
        + _ON_LEADER * through(lines, boxes).sum(axis=1)
        + _ON_LEADER * through(leaders, own).sum(axis=0)
        + _CROSSED * crossing(lines, leaders).sum(axis=1)
    )
    return costs


def _free(boxes: Float[np.ndarray, "label 4"], around: Surroundings) -> Bool[np.ndarray, " label"]:
    """Labels inside the axes that cover no marker and none of the free labels before them."""
    inside = (boxes[:, :2] >= 0).all(axis=1) & (boxes[:, 2:] <= (around.width, around.height)).all(axis=1)
    free = inside & ~overlapping(boxes, around.markers).any(axis=1)
    covered = overlapping(boxes, boxes)
    for label in range(len(boxes)):
        free[label] &= not covered[label, :label][free[:label]].any()
    return free
