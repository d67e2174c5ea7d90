"""Where labels go: geometry against slow loops, then no label on another, on a marker or outside."""

import itertools

import numpy as np
import pytest
from matplotlib.transforms import Bbox

from attnscope.render.plot.placement import Placement, Surroundings, crossing, overlapping, placement, through

UNIT = np.array([[0.0, 0.0, 1.0, 1.0]])


def boxes(count: int, seed: int) -> np.ndarray:
    low = np.random.default_rng(seed).random((count, 2))
    return np.concatenate([low, low + np.random.default_rng(seed + 1).random((count, 2)) * 0.3], axis=1)


def segments(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 4))


def test_overlap_is_what_matplotlib_finds() -> None:
    first, second = boxes(7, 0), boxes(5, 10)
    found = overlapping(first, second)
    for i, j in np.ndindex(found.shape):
        shared = Bbox.intersection(Bbox.from_extents(*first[i]), Bbox.from_extents(*second[j]))
        assert found[i, j] == (shared is not None and shared.width * shared.height > 0)
    assert 0 < found.sum() < found.size


def test_a_segment_goes_through_a_box_where_one_of_its_points_lies_inside() -> None:
    lines, rooms = segments(9, 3), boxes(6, 4)
    found = through(lines, rooms)
    steps = np.linspace(0, 1, 20_001)[:, None]
    for i, j in np.ndindex(found.shape):
        points = lines[i, :2] + steps * (lines[i, 2:] - lines[i, :2])
        assert found[i, j] == ((points > rooms[j, :2]) & (points < rooms[j, 2:])).all(axis=1).any()
    assert 0 < found.sum() < found.size


@pytest.mark.parametrize(
    ("segment", "inside"),
    [
        ((0.5, -1, 0.5, 2), True),
        ((-1, 0.5, 2, 0.5), True),
        ((0, -1, 0, 2), False),
        ((1.5, -1, 1.5, 2), False),
        ((0.5, 0.5, 0.5, 0.5), True),
        ((1.5, 0.5, 1.5, 0.5), False),
        ((-1, 0.5, 0, 0.5), False),
    ],
)
def test_segments_along_an_axis_need_no_mercy(segment: tuple[float, ...], inside: bool) -> None:
    assert through(np.array([segment], float), UNIT).tolist() == [[inside]]


def test_segments_cross_where_their_lines_meet_within_both() -> None:
    first, second = segments(8, 5), segments(11, 6)
    found = crossing(first, second)
    for i, j in np.ndindex(found.shape):
        a, b, c, d = first[i, :2], first[i, 2:], second[j, :2], second[j, 2:]
        along, other = np.linalg.solve(np.stack([b - a, c - d], axis=1), c - a)
        assert found[i, j] == (0 < along < 1 and 0 < other < 1)
    assert 0 < found.sum() < found.size


RADIUS = 0.04


def around(
    anchors: np.ndarray, width: float = 5.0, height: float = 4.0, links: np.ndarray | None = None
) -> Surroundings:
    markers = np.concatenate([anchors - RADIUS, anchors + RADIUS], axis=1)
    return Surroundings(width, height, markers, np.zeros((0, 4)) if links is None else links)


def placed(anchors: np.ndarray, width: float = 0.4, **surroundings: object) -> Placement:
    sizes = np.tile([width, 0.14], (len(anchors), 1))
    rough = placement(anchors, sizes, np.full(len(anchors), RADIUS), around(anchors, **surroundings))  # type: ignore[arg-type]
    return rough.improved()


def test_a_lonely_label_stands_right_beside_its_point() -> None:
    box = placed(np.array([[2.0, 2.0]])).boxes[0]
    assert 0 < box[0] - (2.0 + RADIUS) < 0.05
    assert (box[1] + box[3]) / 2 == pytest.approx(2.0)


def test_a_label_keeps_off_a_link_where_it_can() -> None:
    link = np.array([[2.0, 2.0, 4.0, 2.0]])
    assert through(link, placed(np.array([[2.0, 2.0]])).boxes).any()
    assert not through(link, placed(np.array([[2.0, 2.0]]), links=link).boxes).any()


@pytest.mark.parametrize("count", [22, 66])
def test_labels_cover_neither_each_other_nor_a_marker_nor_the_edge(count: int) -> None:
    anchors = np.random.default_rng(count).random((count, 2)) * [4.0, 3.4] + [0.5, 0.3]
    found = placed(anchors, width=0.3)
    assert found.free.all()
    covered = overlapping(found.boxes, found.boxes)
    np.testing.assert_array_equal(covered, np.eye(count, dtype=bool))
    assert not overlapping(found.boxes, around(anchors).markers).any()
    assert (found.boxes >= 0).all()
    assert (found.boxes[:, 2:] <= [5.0, 4.0]).all()


def test_a_leader_runs_from_the_point_to_the_nearest_place_of_its_label() -> None:
    anchors = np.array([[2.0, 2.0], [2.03, 2.0], [2.0, 2.03], [2.03, 2.03]])
    found = placed(anchors)
    np.testing.assert_array_equal(found.leaders[:, :2], anchors)
    for leader, box in zip(found.leaders, found.boxes, strict=True):
        corners = np.array(
            list(itertools.product(np.linspace(box[0], box[2], 41), np.linspace(box[1], box[3], 41)))
        )
        nearest = np.hypot(*(corners - leader[:2]).T).min()
        assert np.hypot(*(leader[2:] - leader[:2])) == pytest.approx(nearest, abs=0.01)


def test_labels_that_find_no_room_are_said_to_be_covered_the_last_ones_first() -> None:
    anchors = np.full((60, 2), 0.5)
    found = placed(anchors, width=0.3, height=1.0)
    assert 0 < found.free.sum() < 60
    assert found.free[0]
    kept = found.boxes[found.free]
    assert overlapping(kept, kept).sum() == len(kept)


def test_second_thoughts_leave_shorter_leaders_than_a_rough_placement() -> None:
    anchors = np.random.default_rng(9).random((90, 2)) * [1.6, 1.2] + [1.5, 1.2]
    sizes, radii = np.tile([0.3, 0.14], (90, 1)), np.full(90, RADIUS)
    rough = placement(anchors, sizes, radii, around(anchors))
    lengths = [
        np.hypot(*(found.leaders[:, 2:] - found.leaders[:, :2]).T).sum()
        for found in (rough, rough.improved())
    ]
    assert lengths[1] < lengths[0]
