"""A head's t-SNE map on Axes: a circle for every query, a square for every key, each with its token.

The axes have no unit and no ticks. Points in one place share a label. Lengths are inches from the lower left
corner of the Axes, unless they are called points.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from attnscope.printable import LEFT_TO_RIGHT
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.numbers import counted, weight
from attnscope.render.kit.palette import FAINT, INK, INKS
from attnscope.render.kit.typesetting import line_height, text_width, wrapped
from attnscope.render.plot.panel import Panel
from attnscope.render.plot.placement import Placement, Surroundings, placement
from attnscope.render.sheets.projection import LEAST_LINK, Map
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
    """Scale of a map on Axes: size in inches, map units per inch, and relative marker size."""

    width: float
    height: float
    origin: Float[np.ndarray, " 2"]
    scale: float
    share: float

    def radius(self, side: str, ring: bool = False) -> float:
        """Radius in points of a marker, or of the ring around it."""
        return self.share * _RADII[side] + (_RING if ring else 0.0)

    def inches(self, places: Float[np.ndarray, "*point 2"]) -> Float[np.ndarray, "*point 2"]:
        return np.asarray((places - self.origin) / self.scale)

    def places(self, inches: Float[np.ndarray, "*point 2"]) -> Float[np.ndarray, "*point 2"]:
        return np.asarray(self.origin + inches * self.scale)


def plane_on(axes: Axes, result: Projection) -> Plane:
    """Set equal-scale limits on both axes, with room for labels and legend around the map."""
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
    """The label of one point, or of several points of a side in one place; `bold` where it stands out."""

    side: str
    place: Float[np.ndarray, " 2"]
    names: tuple[str, ...]
    bold: bool
    radius: float

    def lines(self, size: float) -> list[str]:
        """Lines of the label at `size` points; many names are wrapped, very many cut."""
        if len(self.names) == 1:
            return list(self.names)
        lines = wrapped(", ".join(self.names), _STACK_WIDTH, size)
        return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "…"]


def draw_labels(block: Map, axes: Axes, plane: Plane) -> int:
    """Draw point labels in the largest size in which all fit; returns how many are left out."""
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


LINK_WIDTH = 8.0  # points of a link of weight 1
_MARKERS = {"query": "o", "key": "s"}
_LINK_INK, _RING_INK, _EDGE_INK = "#a3a8b0", "#111111", "#c9ccd1"
_WORDS = 7.0


def panel(block: Map) -> Panel:
    """Panel of a map, sized for its labels."""
    places = np.concatenate([block.result.queries, block.result.keys])
    width = float(np.clip(2.8 + 0.52 * np.sqrt(len(places)), 5.9, 11.0))
    spread = np.ptp(places, axis=0)
    shape = float(np.clip(spread[1] / (spread[0] or 1.0), 0.6, 1.0))
    return Panel(
        title=block.title,
        says=block.says,
        width=width,
        height=shape * width + LEGEND,
        draw=partial(draw, block),
        least=0.5,
    )


def draw(block: Map, axes: Axes) -> None:
    """Draw markers, labels, legend, and links as wide as their weights."""
    plane = plane_on(axes, block.result)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=_EDGE_INK, linewidth=0.6)
    _draw_links(block, axes)
    for side in ("query", "key"):
        _draw_markers(block, axes, plane, side)
    _draw_legend(block, axes, plane, left_out=draw_labels(block, axes, plane))


def _draw_links(block: Map, axes: Axes) -> None:
    if block.query is None:
        return
    result, keys = block.result, list(block.linked)
    start = result.queries[block.query]
    axes.add_collection(
        LineCollection(
            [(start, result.keys[key]) for key in keys],
            linewidths=LINK_WIDTH * result.weights[block.query, keys],
            colors=_LINK_INK,
            capstyle="butt",
            zorder=1,
            label="links",
        ),
        autolim=False,
    )


def _draw_markers(block: Map, axes: Axes, plane: Plane, side: str) -> None:
    places = block.result.queries if side == "query" else block.result.keys
    style = {
        "markersize": 2 * plane.radius(side),
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
        "zorder": 3,
    }
    axes.plot(*places.T, _MARKERS[side], color=INKS[side], label=side, **style)  # type: ignore[arg-type]
    if (chosen := block.chosen(side)) is not None:
        ring = {"markersize": 2 * plane.radius(side, ring=True), "markeredgewidth": 1.1, "zorder": 4}
        axes.plot(*places[chosen], "o", mfc="none", mec=_RING_INK, label=f"chosen {side}", **ring)  # type: ignore[arg-type]


def _draw_legend(block: Map, axes: Axes, plane: Plane, left_out: int) -> None:
    handles = [
        Line2D([], [], ls="", marker=_MARKERS[side], color=INKS[side], ms=2 * plane.radius(side), label=side)
        for side in ("query", "key")
    ]
    if block.query is not None:
        handles.append(Line2D([], [], color=_LINK_INK, linewidth=2.5, label="link, as wide as its weight"))
    axes.legend(
        handles=handles, loc="upper left", ncols=3, fontsize=_WORDS, frameon=False, borderaxespad=0.2,
        columnspacing=1.2, handletextpad=0.6, labelcolor=INK,
    )  # fmt: skip
    if left_out:
        told = f"{counted(left_out, 'label')} left out"
        at = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "center"}
        place = (-5, -36 * LEGEND)
        axes.annotate(told, (1, 1), place, size=_WORDS, color=FAINT, **at)  # type: ignore[arg-type]
