"""The marks of a row of a ranking, on one axis for all rows that is as wide as the page lets it be.

Where controls have an interval, that is a band behind the value, their mean a tick, and the value a dot,
which is hollow within the band. The number of everything is under the pointer.
"""

import math
from collections.abc import Iterator

from attnscope.render.kit.numbers import cell, parameter
from attnscope.render.kit.palette import TINTS
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.scale import missing
from attnscope.render.sheet.table import Mark
from attnscope.render.web.blocks import escape

_HIGH, _LOW = 22, 5  # pixels of a row, and that a low mark is below its middle
_ORDER = {"band": 0, "span": 1, "bar": 2, "line": 3}
_WITHIN = "hollow: within its controls"


class Axis:
    """Where a number lies between the ends of a ranking, in percent of its width."""

    def __init__(self, block: Ranking) -> None:
        self.low, self.high = block.extent()
        self.ticks = ticks(self.low, self.high, 4)
        self.interval = next((each for each in block.marks if _is_interval(each)), None)

    def at(self, value: float) -> float:
        return round((value - self.low) / ((self.high - self.low) or 1.0) * 100, 2)

    def heading(self) -> str:
        """Its round numbers, to stand above the rows."""
        texts = (
            f'<text x="{self.at(value)}%" y="10" text-anchor="{self._side(value)}">{escape(text)}</text>'
            for value, text in self.ticks
        )
        return f'<svg class="row" height="12" aria-hidden="true">{"".join(texts)}</svg>'

    def _side(self, value: float) -> str:
        place = self.at(value)
        return "start" if place < 4 else "end" if place > 96 else "middle"

    def lines(self) -> str:
        """A faint line through every row at its round numbers, and a clear one at 0."""
        return "".join(
            f'<line x1="{self.at(value)}%" x2="{self.at(value)}%" y2="{_HIGH}" '
            f'class="{"zero" if value == 0 and self.low < 0 else "grid"}"/>'
            for value, _ in self.ticks
        )

    def within(self, value: float, row: int) -> bool:
        """Whether a value lies in the interval of the controls of its row."""
        ends = () if self.interval is None else self.interval.ends(row)
        return len(ends) == 2 and min(ends) <= value <= max(ends)


def _is_interval(mark: Mark) -> bool:
    return mark.shape == "span" and mark.tint == "control"


def drawn(block: Ranking, row: int, axis: Axis, lines: str) -> str:
    """The marks of one row over the `lines` of its axis."""
    shapes = []
    for mark in sorted(block.marks, key=lambda each: _ORDER.get(each.shape, 4)):
        places = range(len(mark.at)) if mark.shape == "line" else (row,)
        shapes += [_shape(mark, place, axis) for place in places if not missing(mark.at[place])]
    return f'<svg class="row" height="{_HIGH}" aria-hidden="true">{lines}{"".join(shapes)}</svg>'


def _shape(mark: Mark, row: int, axis: Axis) -> str:
    value = float(mark.at[row])
    pale = mark.tint == "floor" and mark.shape != "band"
    x, tint, middle = (
        axis.at(value),
        colour("faint" if pale else mark.tint),
        _HIGH // 2 + (_LOW if mark.low else 0),
    )
    end = axis.at(float(mark.to[row])) if mark.to else axis.at(0.0)
    low, wide = min(x, end), round(abs(x - end), 2)
    numbers = " to ".join(parameter(each) for each in mark.ends(row))
    told = f"<title>{escape(' '.join(filter(None, (mark.label, numbers))))}</title>"
    whole, lines = f'class="fills" {tint}', f'class="lines" {tint}'
    round_ = f'class="{"hollow" if axis.within(value, row) else "fills"}" {tint}'

    def upright(place: float, half: int) -> str:
        ends = f'x1="{place}%" x2="{place}%" y1="{middle - half}" y2="{middle + half}"'
        return f"<line {ends} {lines}>{told}</line>"

    span = f'x="{low}%" width="{wide}%"'
    level = f'<line x1="{x}%" x2="{end}%" y1="{middle}" y2="{middle}" {lines}>{told}</line>'
    match mark.shape:
        case "bar" if axis.interval is not None:
            return f'{level}<circle cx="{x}%" cy="{middle}" r="4.5" {round_}>{told}</circle>'
        case "bar":
            return f'<rect {span} y="5" height="{_HIGH - 10}" {whole}>{told}</rect>'
        case "band":
            return f'<rect {span} y="0" height="{_HIGH}" {whole}>{told}</rect>'
        case "span" if _is_interval(mark):
            return f'<rect {span} y="5" height="{_HIGH - 10}" rx="3" class="held">{told}</rect>'
        case "span":
            return f"{level}{upright(x, 3)}{upright(end, 3)}"
        case "dot":
            return f'<circle cx="{x}%" cy="{middle}" r="4.5" {round_}>{told}</circle>'
        case "ring" if axis.interval is not None and mark.tint == "control":
            return upright(x, 6)
        case "ring":
            return f'<circle cx="{x}%" cy="{middle}" r="3.2" class="hollow" {tint}>{told}</circle>'
        case "diamond":
            path = f'<path d="M-4.5 {middle}l4.5 -4.5 4.5 4.5 -4.5 4.5z" class="hollow" {tint}>{told}</path>'
            return f'<svg x="{x}%" overflow="visible">{path}</svg>'
        case "line":
            return f'<line x1="{x}%" x2="{x}%" y2="{_HIGH}" stroke-dasharray="4 2" {lines}>{told}</line>'
    return upright(x, 6)


def key(block: Ranking, axis: Axis) -> str:
    """What each mark is, beside a sample of it."""
    samples = [(_sample(mark, axis), mark.label) for mark in block.marks if mark.label]
    if any(_hollow(block, axis)):
        samples.append(('<circle cx="12" cy="11" r="4.5" class="hollow" style="--c:var(--faint)"/>', _WITHIN))
    told = (f'<span><svg width="24" height="{_HIGH}" aria-hidden="true">{drawn}</svg> {escape(label)}</span>'
            for drawn, label in samples)  # fmt: skip
    return f'<p class="marks">{"".join(told)}</p>' if samples else ""


def _hollow(block: Ranking, axis: Axis) -> Iterator[bool]:
    for mark in block.marks:
        if mark.shape in ("bar", "dot"):
            yield from (axis.within(float(at), row) for row, at in enumerate(mark.at) if not missing(at))


class _Sample(Axis):
    def __init__(self, like: Axis) -> None:
        self.low, self.high, self.ticks, self.interval = 0.0, 24.0, [], None
        if like.interval is not None:
            self.interval = Mark("span", "control", "", [3.0], [21.0])

    def within(self, value: float, row: int) -> bool:
        return False


def _sample(mark: Mark, like: Axis) -> str:
    axis = _Sample(like)
    long = mark.shape in ("bar", "band", "span") and (mark.shape != "bar" or like.interval is None)
    sample = Mark(mark.shape, mark.tint, "", [3.0 if long else 12.0], [21.0] if long else [2.0])
    own = _shape(sample, 0, axis)
    if axis.interval is not None and mark.shape == "ring" and mark.tint == "control":
        return _shape(axis.interval, 0, axis) + own
    return own


_LARGE = 1e5
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_THEMED = {
    "control": "var(--ink)",
    "noise": "var(--ink)",
    "floor": "var(--rule)",
    "faint": "var(--pale)",
}  # as the page is


def ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """At most so many round numbers from `low` to `high`, 0 among them, and how they are written."""
    if not high > low:
        return [(low, parameter(low))]
    least, largest = (math.log10(each) for each in ((high - low) / most, high - low))
    for exponent in range(math.floor(least) - 1, math.ceil(largest) + 1):
        for step in (each * 10.0**exponent for each in _STEPS):
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if last - first < most:
                return _written([each * step for each in range(first, last + 1)], step)
    return []


def _written(values: list[float], step: float) -> list[tuple[float, str]]:
    places = next((each for each in range(4) if abs(step - round(step, each)) < 1e-9 * step), None)
    ordinary = places is not None and max(map(abs, values)) < _LARGE
    return [(each, cell(each, places or 0) if ordinary and each else parameter(each)) for each in values]


def colour(tint: str) -> str:
    """The style that an element of the class `fills`, `lines` or `hollow` takes its colour from."""
    return f'style="--c:{_THEMED.get(tint, TINTS[tint])}"'
