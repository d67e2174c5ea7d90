"""Places the labels of a map near their points, off every marker and every other label.

A label may stand in sixteen directions around its point, at growing distances, the right side preferred.
Labels choose in turn, the crowded ones first, until none would move; then badly placed ones and their
neighbours choose again. It uses no random numbers and no clock. Lengths are inches from the lower left
corner, boxes (left, bottom, right, top), segments (x, y, to x, to y).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int


def grown(boxes: Float[np.ndarray, "box 4"], by: float) -> Float[np.ndarray, "box 4"]:
    """Boxes with every edge moved outwards by `by`."""
    return np.asarray(boxes + np.array([-by, -by, by, by]))


def hull(boxes: Float[np.ndarray, "box 4"]) -> Float[np.ndarray, "1 4"]:
    """The smallest box around all boxes."""
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])[None]


def overlapping(
    boxes: Float[np.ndarray, "box 4"], others: Float[np.ndarray, "other 4"]
) -> Bool[np.ndarray, "box other"]:
    """True where a box and another one overlap by more than an edge."""
    left, low, right, high = boxes.T[:, :, None]
    other_left, other_low, other_right, other_high = others.T
    beside = np.maximum(left, other_left) < np.minimum(right, other_right)
    return np.asarray(beside & (np.maximum(low, other_low) < np.minimum(high, other_high)))


def holding(boxes: Float[np.ndarray, "box 4"], point: Float[np.ndarray, " 2"]) -> Bool[np.ndarray, " box"]:
    """True for each box that contains `point`."""
    return np.asarray(((boxes[:, :2] <= point) & (point <= boxes[:, 2:])).all(axis=1))


def through(
    segments: Float[np.ndarray, "segment 4"], boxes: Float[np.ndarray, "box 4"]
) -> Bool[np.ndarray, "segment box"]:
    """True where a segment has a point inside a box (the slab method)."""
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
    """True where two segments cross; segments that only touch do not."""
    x, y, to_x, to_y = segments.T[:, :, None]
    other_x, other_y, other_to_x, other_to_y = others.T
    along, up, other_along, other_up = to_x - x, to_y - y, other_to_x - other_x, other_to_y - other_y
    # each product is above 0 where an end of one lies left of the other, below 0 where right
    right, over = other_x - x, other_y - y
    apart = (along * over - up * right) * (along * (other_to_y - y) - up * (other_to_x - x)) < 0
    near_end = other_up * right - other_along * over
    far_end = other_along * (to_y - other_y) - other_up * (to_x - other_x)
    return np.asarray(apart & (near_end * far_end < 0))


_CLEAR = 0.012  # left free around each label and each marker
_COVERS = 40.0  # cost of each marker or label that is covered
_ANGLES = np.arange(16) * np.pi / 8
_GAPS = np.array([0, 0.03, 0.07, 0.11, 0.16, 0.22, 0.3, 0.4, 0.52, 0.67, 0.85, 1.05, 1.3, 1.6, 2.0])
_FAR, _ASIDE = 8.0, 0.25  # costs of an inch between point and label, and of standing not at the right
_CLOSE, _NEAR = 2.0, 0.05  # cost of each other marker that is near, and what is near
_ON_LINK, _PAST_MARKER, _OUTSIDE = 3.0, 6.0, 1e6  # a label on a link, a leader over a marker, no room
_MARGIN = 0.04  # free at the edge
_ON_LEADER, _CROSSED = 12.0, 6.0  # costs of a leader under a label, and of two that cross
_NEIGHBOURHOOD = 0.5
_BAD, _TAKEN_OFF = 3.0, 6  # the cost of a label that stands badly, and how many then choose anew
_SWEEPS, _ROUNDS = 4, 2
_PARTS = (24, 72)  # where the choices of a label, the cheapest first, are parted to be weighed in turn


@dataclass(frozen=True)
class Surroundings:
    """Obstacles of labels: the edge of the axes, the boxes of markers, and, if possible, the links."""

    width: float
    height: float
    markers: Float[np.ndarray, "marker 4"]
    links: Float[np.ndarray, "link 4"]


@dataclass(frozen=True)
class Choices:
    """Candidate places of every label, with their costs before other labels count.

    A hull is the box around a label's box and its leader.
    """

    boxes: Float[np.ndarray, "label choice 4"]
    leaders: Float[np.ndarray, "label choice 4"]
    hulls: Float[np.ndarray, "label choice 4"]
    costs: Float[np.ndarray, "label choice"]


def _choices(
    anchors: Float[np.ndarray, "label 2"],
    sizes: Float[np.ndarray, "label 2"],
    radii: Float[np.ndarray, " label"],
    around: Surroundings,
) -> Choices:
    angles, gaps = (axis.ravel() for axis in np.meshgrid(_ANGLES, _GAPS, indexing="ij"))
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    inwards = np.clip(np.sqrt(2) * directions, -1, 1)  # from the edge of a box to its centre, in half sizes
    reach = 1.45 * (radii[:, None, None] + _CLEAR) + gaps[:, None]  # 1.45: round markers have square boxes
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
    outside = ~_inside(boxes, around)
    markers = around.markers[overlapping(grown(hull(boxes), _NEAR), around.markers)[0]]
    foreign = markers[~holding(markers, leaders[0, :2])]
    costs: Float[np.ndarray, " choice"] = (
        _OUTSIDE * outside
        + _COVERS * overlapping(grown(boxes, _CLEAR), markers).sum(axis=1)
        + _CLOSE * overlapping(grown(boxes, _NEAR), foreign).sum(axis=1)
        + _ON_LINK * through(around.links, boxes).sum(axis=0)
        + _PAST_MARKER * through(leaders, foreign).sum(axis=1)
    )
    return costs


def _inside(boxes: Float[np.ndarray, "box 4"], around: Surroundings) -> Bool[np.ndarray, " box"]:
    low, high = _MARGIN, np.array([around.width, around.height]) - _MARGIN
    return np.asarray((boxes[:, :2] >= low).all(axis=1) & (boxes[:, 2:] <= high).all(axis=1))


@dataclass(frozen=True)
class Placement:
    """Box and leader (from its point to its edge) of every label; `free` where it covers nothing.

    `improved` computes a better placement.
    """

    boxes: Float[np.ndarray, "label 4"]
    leaders: Float[np.ndarray, "label 4"]
    free: Bool[np.ndarray, " label"]
    improved: Callable[[], "Placement"]


def placement(
    anchors: Float[np.ndarray, "label 2"],
    sizes: Float[np.ndarray, "label 2"],
    radii: Float[np.ndarray, " label"],
    around: Surroundings,
) -> Placement:
    """Place labels of `sizes` beside the points `anchors`, whose markers have radii `radii`.

    Labels come most important first: where two collide, the first one is free. The returned placement is
    rough, enough to tell whether the labels find room.
    """
    choices = _choices(anchors, sizes, radii, around)
    near = [holding(grown(around.markers, _NEIGHBOURHOOD), anchor).sum() for anchor in anchors]
    chosen, order = np.full(len(anchors), -1), np.argsort(-np.array(near), kind="stable")
    _settle(choices, chosen, order)

    def improved() -> Placement:
        better = chosen.copy()
        for _ in range(_ROUNDS):
            _rearrange(choices, better, anchors)
            _settle(choices, better, order)
        return placed(better)

    def placed(chosen: Int[np.ndarray, " label"]) -> Placement:
        every = np.arange(len(anchors))
        boxes, leaders = choices.boxes[every, chosen], choices.leaders[every, chosen]
        return Placement(boxes, leaders, _free(boxes, around), improved)

    return placed(chosen)


def _settle(choices: Choices, chosen: Int[np.ndarray, " label"], order: Int[np.ndarray, " label"]) -> None:
    """Move each label to its cheapest place, repeatedly, until nothing changes or the sweeps are spent."""
    for _ in range(_SWEEPS):
        before = chosen.copy()
        for label in order.tolist():
            chosen[label], _ = _cheapest(choices, chosen, label)
        if (chosen == before).all():
            break


def _rearrange(
    choices: Choices, chosen: Int[np.ndarray, " label"], anchors: Float[np.ndarray, "label 2"]
) -> None:
    costs = np.array([_cost(choices, chosen, label) for label in range(len(chosen))])
    for label in np.argsort(-costs, kind="stable"):
        if costs[label] < _BAD:
            break
        distances = np.hypot(*(anchors - anchors[label]).T)
        distances[label] = -1
        group = np.argsort(distances, kind="stable")[:_TAKEN_OFF]
        before, now, after = chosen[group], 0.0, 0.0
        chosen[group] = -1
        for each, choice in zip(group, before, strict=True):
            chosen[each] = choice
            now += _cost(choices, chosen, each)
        chosen[group] = -1
        for each in group:
            chosen[each], cost = _cheapest(choices, chosen, each)
            after += cost
        if round(after, 6) >= round(now, 6):
            chosen[group] = before


def _cost(choices: Choices, chosen: Int[np.ndarray, " label"], label: int) -> float:
    choice = chosen[label : label + 1]
    return float((choices.costs[label, choice] + _added(choices, chosen, label, choice))[0])


def _added(
    choices: Choices, chosen: Int[np.ndarray, " label"], label: int, few: Int[np.ndarray, " choice"]
) -> Float[np.ndarray, " choice"]:
    others = np.flatnonzero(chosen >= 0)
    others = others[others != label]
    reach, theirs = hull(choices.hulls[label, few]), choices.hulls[others, chosen[others]]
    others = others[overlapping(grown(reach, _CLEAR), theirs)[0]]
    if not others.size:
        return np.zeros(len(few))
    theirs = chosen[others]
    boxes, leaders = choices.boxes[others, theirs], choices.leaders[others, theirs]
    own, lines = choices.boxes[label, few], choices.leaders[label, few]
    covered = overlapping(grown(own, _CLEAR), boxes) * _COVERS
    on_leader = through(lines, boxes) * _ON_LEADER + through(leaders, own).T * _ON_LEADER
    added: Float[np.ndarray, " choice"] = (covered + on_leader + crossing(lines, leaders) * _CROSSED).sum(
        axis=1
    )
    return added


def _cheapest(choices: Choices, chosen: Int[np.ndarray, " label"], label: int) -> tuple[int, float]:
    """A label's cheapest choice while the others keep theirs, and its cost.

    Other labels only add to a choice's own cost, so most choices can be skipped.
    """
    alone = choices.costs[label]
    best, cost, least = -1, np.inf, np.inf
    for few in np.split(np.argsort(alone, kind="stable"), _PARTS):
        if not (few := few[alone[few] < least]).size:
            break
        costs = alone[few] + _added(choices, chosen, label, few)
        rounded = costs.round(6)
        if rounded.min() < least:
            at = int(rounded.argmin())
            best, cost, least = int(few[at]), float(costs[at]), float(rounded[at])
    return best, cost


def _free(boxes: Float[np.ndarray, "label 4"], around: Surroundings) -> Bool[np.ndarray, " label"]:
    free = _inside(boxes, around) & ~overlapping(boxes, around.markers).any(axis=1)
    covered = overlapping(boxes, boxes)
    for label in range(len(boxes)):
        free[label] &= not covered[label, :label][free[:label]].any()
    return free
