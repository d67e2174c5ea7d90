"""How a map lies on its Axes, and its labels: which points share one, how large, where, and lines to them.

Lengths are inches from the lower left corner of the Axes unless they are said to be points.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from attnscope.printable import LEFT_TO_RIGHT
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import weight
from attnscope.render.kit.palette import INKS
from attnscope.render.kit.typesetting import line_height, text_width, wrapped
from attnscope.render.plot.placement import Placement, Surroundings, placement
from attnscope.render.sheets.map import LEAST_LINK, Map
from attnscope.results import Projection
from attnscope.tokens import Tokens

LEGEND = 0.28  # height of the strip above the map
_EDGE = 0.16
_RADII = {"query": 3.4, "key": 2.0}  # points, from the middle of a marker to its edge, where there is room
_RING = 2.0  # points between a marker and the ring around it
_ROOM, _SMALLEST = 0.3, 0.7  # square inches a point needs for that, and the share of the size left without
_SIZES = (8.0, 7.0, 6.2, 5.4)  # points
_WIDEST_NAME = 18  # cells
_SAME_PLACE, _GAP = 0.01, 0.04
_STACK_WIDTH, _MOST_LINES = 2.0, 14
_MOST_MARKS, _CROWD = 200, 10  # labels of one map, and of a square inch: more could not be told apart
_LEADER = 0.07  # a label further than this from its marker has a line that leads to it
_FAR = 0.16  # a mean distance of labels from their markers above which a smaller size is better


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


@dataclass(frozen=True, eq=False)
class Mark:
    """The label of one point, or of all of a side that lie in one place; `bold` where it stands out."""

    side: str
    place: Float[np.ndarray, " 2"]
    names: tuple[str, ...]
    bold: bool
    radius: float

    def lines(self, size: float) -> list[str]:
        """What is written, at `size` points; many names are wrapped, very many cut."""
        if len(self.names) == 1:
            return list(self.names)
        lines = wrapped(", ".join(self.names), _STACK_WIDTH, size)
        return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "…"]


def draw_labels(block: Map, axes: Axes, plane: Plane) -> int:
    """A label at every point, in the largest size in which all find room; returns how many have none."""
    every, around = _marks(block, plane), _surroundings(block, plane)
    marks = _roomiest(every, int(min(_MOST_MARKS, _CROWD * plane.width * plane.height)))
    for size in _SIZES:
        rough = _placed(marks, size, around)
        if bool(rough.free.all() and _distances(marks, rough).mean() < _FAR):
            break
    placed = rough.improved()
    shown = np.flatnonzero(placed.free).tolist()
    for i in shown:
        _write(axes, plane, marks[i], size, placed.boxes[i])
    far = placed.free & (_distances(marks, placed) > _LEADER)
    lines = [plane.places(leader.reshape(2, 2)) for leader in placed.leaders[far]]
    inks = [INKS[mark.side] for mark, led in zip(marks, far, strict=True) if led]
    leaders = LineCollection(lines, colors=inks, linewidths=0.5, alpha=0.55, zorder=2, label="leaders")
    axes.add_collection(leaders, autolim=False)
    return sum(len(mark.names) for mark in every) - sum(len(marks[i].names) for i in shown)


def _marks(block: Map, plane: Plane) -> list[Mark]:
    found: dict[tuple[object, ...], Mark] = {}
    for side, tokens, places in (
        ("query", block.result.query_tokens, block.result.queries),
        ("key", block.result.key_tokens, block.result.keys),
    ):
        for position, place in enumerate(plane.inches(places)):
            bold = block.stands_out(side, position)
            spot = (side, *np.round(place / _SAME_PLACE).tolist(), position if bold else None)
            radius = plane.radius(side, ring=position == block.chosen(side)) / 72
            names = found[spot].names if spot in found else ()
            name = _name(tokens, position) + (_weight(block, position) if side == "key" else "")
            found[spot] = Mark(side, place, (*names, name), bold, radius)
    return sorted(found.values(), key=lambda mark: not mark.bold)


def _roomiest(marks: list[Mark], most: int) -> list[Mark]:
    if len(marks) <= most:
        return marks
    places = np.array([mark.place for mark in marks])
    distances = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    np.fill_diagonal(distances, np.inf)
    room = np.where([mark.bold for mark in marks], np.inf, distances.min(axis=1))
    kept = np.argsort(-room, kind="stable")[:most]
    return [marks[i] for i in sorted(kept.tolist())]


def _name(tokens: Tokens, position: int) -> str:
    name, label = settled(tokens.names[position]), tokens.labels[position]
    cut = fit(name, _WIDEST_NAME)
    number = f"@{tokens.positions[position]}" if cut != name or label != tokens.names[position] else ""
    return (LEFT_TO_RIGHT if name.endswith(LEFT_TO_RIGHT) else "") + cut + number


def _weight(block: Map, key: int) -> str:
    if block.query is None or not block.stands_out("key", key):
        return ""
    result = block.result
    if not result.allowed[block.query, key]:
        return " masked"
    if not result.answered[block.query]:
        return ""
    given = float(result.weights[block.query, key])
    return f" {weight(given)}" if given >= LEAST_LINK else f" <{weight(LEAST_LINK)}"


def _surroundings(block: Map, plane: Plane) -> Surroundings:
    result, markers = block.result, []
    for side, places in (("query", result.queries), ("key", result.keys)):
        chosen = np.arange(len(places)) == block.chosen(side)
        radii = np.where(chosen, plane.radius(side, ring=True), plane.radius(side))[:, None] / 72
        centres = plane.inches(places)
        markers.append(np.concatenate([centres - radii, centres + radii], axis=1))
    ends = plane.inches(result.keys[list(block.linked)])
    start = (
        ends[:0]
        if block.query is None
        else np.broadcast_to(plane.inches(result.queries[block.query]), ends.shape)
    )
    links = np.concatenate([start, ends], axis=1)
    return Surroundings(plane.width, plane.height, np.concatenate(markers), links)


def _placed(marks: list[Mark], size: float, around: Surroundings) -> Placement:
    texts = [mark.lines(size) for mark in marks]
    sizes = [
        (max(text_width(line, size, mark.bold) for line in lines) + _GAP, len(lines) * line_height(size))
        for mark, lines in zip(marks, texts, strict=True)
    ]
    anchors = np.array([mark.place for mark in marks])
    return placement(anchors, np.array(sizes), np.array([mark.radius for mark in marks]), around)


def _distances(marks: list[Mark], placed: Placement) -> Float[np.ndarray, " label"]:
    lengths = np.hypot(*(placed.leaders[:, 2:] - placed.leaders[:, :2]).T)
    return np.asarray(lengths - [mark.radius for mark in marks])


def _write(axes: Axes, plane: Plane, mark: Mark, size: float, box: Float[np.ndarray, " 4"]) -> None:
    x, y = plane.places((box[:2] + box[2:]) / 2).tolist()
    axes.text(
        x, y, "\n".join(mark.lines(size)), size=size, color=INKS[mark.side], ha="center", va="center",
        weight="bold" if mark.bold else "normal", zorder=5, parse_math=False,
    )  # fmt: skip
