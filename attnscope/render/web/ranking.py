"""Markup of rankings, curves and heaps, with every exact number as a tooltip.

An interval of controls is a band behind the value, their mean a tick, the value a dot, which is hollow within
the band. It needs no script, and all text is escaped.
"""

import math
import re
from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.numbers import cell, parameter
from attnscope.render.kit.palette import TINTS
from attnscope.render.sheet.blocks import Curve, Heap, Ranking, Rows
from attnscope.render.sheet.table import Column, Line, Mark, missing
from attnscope.render.web.blocks import escape, paragraph, shaded

_ROW_HIGH, _LOW = 22, 5  # pixels of a row, and that a low mark is below its middle
_ORDER = {"band": 0, "span": 1, "bar": 2, "line": 3}
_WITHIN = "hollow: within its controls"


class Axis:
    """Horizontal axis of a ranking: places of numbers in percent of its width."""

    def __init__(self, block: Ranking) -> None:
        self.low, self.high = block.extent()
        self.ticks = ticks(self.low, self.high, 4)
        self.interval = next((each for each in block.marks if _is_interval(each)), None)

    def at(self, value: float) -> float:
        return round((value - self.low) / ((self.high - self.low) or 1.0) * 100, 2)

    def heading(self) -> str:
        """Markup of the axis numbers above the rows."""
        texts = (
            f'<text x="{self.at(value)}%" y="10" text-anchor="{self._side(value)}">{escape(text)}</text>'
            for value, text in self.ticks
        )
        return f'<svg class="row" height="12" aria-hidden="true">{"".join(texts)}</svg>'

    def _side(self, value: float) -> str:
        place = self.at(value)
        return "start" if place < 4 else "end" if place > 96 else "middle"

    def lines(self) -> str:
        """Markup of grid lines through a row, with a clear one at 0."""
        return "".join(
            f'<line x1="{self.at(value)}%" x2="{self.at(value)}%" y2="{_ROW_HIGH}" '
            f'class="{"zero" if value == 0 and self.low < 0 else "grid"}"/>'
            for value, _ in self.ticks
        )

    def within(self, value: float, row: int) -> bool:
        """True where a value lies in its row's control interval."""
        ends = () if self.interval is None else self.interval.ends(row)
        return len(ends) == 2 and min(ends) <= value <= max(ends)


def _is_interval(mark: Mark) -> bool:
    return mark.shape == "span" and mark.tint == "control"


def drawn(block: Ranking, row: int, axis: Axis, lines: str) -> str:
    """Markup of the marks of one row over the axis `lines`."""
    shapes = []
    for mark in sorted(block.marks, key=lambda each: _ORDER.get(each.shape, 4)):
        places = range(len(mark.at)) if mark.shape == "line" else (row,)
        shapes += [_shape(mark, place, axis) for place in places if not missing(mark.at[place])]
    return f'<svg class="row" height="{_ROW_HIGH}" aria-hidden="true">{lines}{"".join(shapes)}</svg>'


def _shape(mark: Mark, row: int, axis: Axis) -> str:
    value = float(mark.at[row])
    pale = mark.tint == "floor" and mark.shape != "band"
    x, tint, middle = (
        axis.at(value),
        colour("faint" if pale else mark.tint),
        _ROW_HIGH // 2 + (_LOW if mark.low else 0),
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
            return f'<rect {span} y="5" height="{_ROW_HIGH - 10}" {whole}>{told}</rect>'
        case "band":
            return f'<rect {span} y="0" height="{_ROW_HIGH}" {whole}>{told}</rect>'
        case "span" if _is_interval(mark):
            return f'<rect {span} y="5" height="{_ROW_HIGH - 10}" rx="3" class="held">{told}</rect>'
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
            return f'<line x1="{x}%" x2="{x}%" y2="{_ROW_HIGH}" stroke-dasharray="4 2" {lines}>{told}</line>'
    return upright(x, 6)


def key(block: Ranking, axis: Axis) -> str:
    """Markup of the legend: a sample and label for each mark."""
    samples = [(_sample_of(mark, axis), mark.label) for mark in block.marks if mark.label]
    if any(_hollow(block, axis)):
        samples.append(('<circle cx="12" cy="11" r="4.5" class="hollow" style="--c:var(--faint)"/>', _WITHIN))
    return _marks(samples, _ROW_HIGH)


def _marks(samples: list[tuple[str, str]], high: int) -> str:
    svg = f'<svg width="24" height="{high}" aria-hidden="true">'
    told = (f"<span>{svg}{drawn}</svg> {escape(label)}</span>" for drawn, label in samples)
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


def _sample_of(mark: Mark, like: Axis) -> str:
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
    """At most `most` round numbers between `low` and `high`, with their texts."""
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
    """Style attribute with the colour of a tint."""
    return f'style="--c:{_THEMED.get(tint, TINTS[tint])}"'


_HEAD = re.compile(r"\bL(\d+) H(\d+)\b")


def linked(text: str, leads: bool) -> str:
    """Escaped text; with `leads`, names of heads are links to them."""
    return _HEAD.sub(r'<a href="#L\1H\2">\g<0></a>', escape(text)) if leads else escape(text)


def ranking(block: Rows, leads: bool = False) -> str:
    """Markup of a table, with marks for a ranking and lines above it for a curve."""
    columns, more = block.table.headed, ""
    axis = Axis(block) if isinstance(block, Ranking) and block.marks else None
    above = heading = ""
    if isinstance(block, Curve):
        above = _curve(block)
    elif isinstance(block, Ranking) and axis is not None:
        above = key(block, axis)
        heading = f'<th scope="col" class="drawn">{escape(block.measured)}{axis.heading()}</th>'
    if block.hidden:
        more = f'<p class="told">and <a href="#view=numbers">{block.hidden:,} more, among the numbers</a></p>'
    heads = "".join(
        f'<th scope="col"{_words(each)} title="{escape(each.says)}">{escape(each.heading)}</th>'
        for each in columns
    )
    sections = dict(block.sections) if isinstance(block, Ranking) else {}
    wide, lines = len(columns) + 1 + bool(heading), "" if axis is None else axis.lines()
    rows = []
    for row, name in enumerate(block.names):
        look = ' class="faint"' if row in block.faint else ' class="chosen"' if row in block.chosen else ""
        marks = ""
        if isinstance(block, Ranking) and axis is not None:
            marks = f'<td class="drawn">{drawn(block, row, axis, lines)}</td>'
        cells = "".join(_cell(each, row, leads) for each in columns)
        rows.append(_section(sections.get(row, ""), wide))
        rows.append(f'<tr{look}><th scope="row">{linked(name, leads)}</th>{marks}{cells}</tr>')
    head = f'<thead><tr><th scope="col">{escape(block.of)}</th>{heading}{heads}</tr></thead>'
    table = f'<div class="wide"><table class="ranking">{head}<tbody>{"".join(rows)}</tbody></table></div>'
    said = ' class="said"' if block.title.startswith("“") else ""  # words of a text stay as they are written
    title = f"<h2{said}>{escape(block.title)}</h2>" if block.title else ""
    return f"{title}{paragraph(block.says, 'told')}{above}{table}{more}"


def _words(column: Column) -> str:
    return ' class="words"' if column.words else ""


def _section(heading: str, columns: int) -> str:
    if not heading:
        return ""
    return f'<tr><th scope="colgroup" colspan="{columns}"><span>{escape(heading)}</span></th></tr>'


def _cell(column: Column, row: int, leads: bool) -> str:
    value, text, shade = column.values[row], column.text(row), ""
    if column.scale and text and not missing(value):
        shade = f' style="{shaded(column.scale, value)}"'
    exact = "" if missing(value) else f"{value:.7g}" if isinstance(value, float) else str(value)
    kinds = " ".join((["words"] if column.words else []) + (["shade"] if shade else []))
    words = f' class="{kinds}"' if kinds else ""
    return f'<td{words}{shade} title="{escape(exact)}">{linked(text, leads)}</td>'


_HEAP_WIDE, _RADIUS, _HEAP_EDGE = 352, 3.6, 12  # pixels
_BINS = int((_HEAP_WIDE - 2 * _HEAP_EDGE) / (2 * _RADIUS))  # dots that have room beside one another
_MOST = 24  # dots one above the other; where there are more each stands for several
_HEAP_ABOVE, _HEAP_BELOW = 16, 34


def heap(block: Heap) -> str:
    """Markup of a heap: dots over an axis, and the line of the compared number."""
    values = np.array([*block.values, block.own])
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    high = high if high > low else low + 1.0

    def x(value: float) -> float:
        return round(_HEAP_EDGE + (value - low) / (high - low) * (_HEAP_WIDE - 2 * _HEAP_EDGE), 1)

    places = np.minimum(((np.array(block.values) - low) / (high - low) * _BINS).astype(int), _BINS - 1)
    count = np.bincount(places, minlength=_BINS)
    each = -(-int(count.max(initial=1)) // _MOST)
    stacks = -(-count // each)
    base = _HEAP_ABOVE + 2 * _RADIUS * max(int(stacks.max()), 3)
    dots = "".join(
        f'<circle cx="{_HEAP_EDGE + (place + 0.5) * (_HEAP_WIDE - 2 * _HEAP_EDGE) / _BINS:.1f}" '
        f'cy="{base - (2 * i + 1) * _RADIUS:.1f}" r="{_RADIUS - 0.4}"/>'
        for place in range(_BINS)
        for i in range(int(stacks[place]))
    )
    own, named = x(block.own), f"{block.name} {block.form(block.own)}"
    right = own > 0.7 * _HEAP_WIDE
    line = f'<path d="M{own} 2V{base}" class="own"/><text x="{own + (-6 if right else 6)}" y="12" '
    line += f'text-anchor="{"end" if right else "start"}" class="own">{escape(named)}</text>'
    axis = f'<path d="M{_HEAP_EDGE} {base:.1f}H{_HEAP_WIDE - _HEAP_EDGE}" class="rule"/>'
    axis += "".join(
        f'<text x="{x(value)}" y="{base + 13:.1f}" text-anchor="middle" class="small">{escape(text)}</text>'
        for value, text in ticks(low, high)
    )
    below = f'x="{_HEAP_WIDE / 2}" y="{base + 28:.1f}" text-anchor="middle" class="small"'
    axis += f"<text {below}>{escape(block.measured)}</text>"
    ends = f"{block.form(min(block.values))} to {block.form(max(block.values))}"
    told = escape(f"{named}; the dots from {ends}")
    several = f"; a dot is up to {each} of them" if each > 1 else ""
    dot = '<svg width="12" height="12" class="heap" aria-hidden="true"><circle cx="6" cy="7" r="3.2"/></svg>'
    key = f'<p class="marks"><span>{dot} {escape(block.dots + several)}</span></p>'
    sizes = f'width="{_HEAP_WIDE}" height="{base + _HEAP_BELOW:.0f}"'
    drawn = f'<svg {sizes} class="heap" role="img" aria-label="{told}">'
    return f"<h2>{escape(block.title)}</h2>{key}{drawn}{axis}{dots}{line}</svg>"


_WIDE, _HIGH, _LEFT, _BELOW, _EDGE = 350, 190, 40, 36, 8  # pixels
_LETTER = 7.0  # pixels of a letter below the axis


def _curve(block: Curve) -> str:
    shapes = "".join(_line(block, each) for each in block.lines)
    chosen = "".join(
        f'<path d="M{_x(block, row)} 0V{_HIGH}" class="row-chosen"/>' for row in sorted(block.chosen)
    )
    sizes = f'width="{_WIDE + _EDGE}" height="{_HIGH + _BELOW}"'
    told = escape(f"{block.title}: {', '.join(block.key())}")
    picture = f'<svg {sizes} role="img" aria-label="{told}">{_axes(block)}{chosen}{shapes}</svg>'
    return _marks([(_sample(each), each.label) for each in block.lines if each.label], 12) + picture


def _x(block: Curve, row: int) -> float:
    low, high = min(block.places), max(block.places)
    share = (block.places[row] - low) / (high - low) if high > low else 0.5
    return round(_LEFT + _EDGE + share * (_WIDE - _LEFT - 2 * _EDGE), 1)


def _y(block: Curve, value: float) -> float:
    return round((1 - block.share(value)) * _HIGH, 1)


def _axes(block: Curve) -> str:
    shapes = [f'<path d="M{_LEFT} 0V{_HIGH}H{_WIDE}" class="frame"/>']
    for value, text in _ticks(block):
        y = _y(block, value)
        shapes.append(f'<path d="M{_LEFT} {y}H{_WIDE}" class="{"rule" if value == 0 else "frame"}"/>')
        shapes.append(_text(_LEFT - 4, min(max(y + 4, 9), _HIGH), "end", text))
    count, longest = len(block.names), max(map(len, block.names), default=1)
    step = max(1, math.ceil(count * (longest + 1) * _LETTER / (_WIDE - _LEFT)))
    last = count - 1
    named = [row for row in range(0, count, step) if row == last or last - row >= step] + [last][:count]
    for row in dict.fromkeys(named):
        shapes.append(_text(_x(block, row), _HIGH + 14, "middle", block.names[row]))
    measured = f"{block.measured}, by {block.of}{', each step as many times more' if block.log else ''}"
    shapes.append(_text((_LEFT + _WIDE) / 2, _HIGH + 30, "middle", measured))
    return "".join(shapes)


def _ticks(block: Curve) -> list[tuple[float, str]]:
    low, high = block.extent()
    return [(each, parameter(each, 2)) for each in (low, high)] if block.log else ticks(low, high)


def _text(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="small">{escape(text)}</text>'


def _line(block: Curve, line: Line) -> str:
    rows = [row for row, value in enumerate(line.at) if not missing(value)]
    if line.shape == "points":
        places = [(row, value) for row in rows for value in line.at[row] if not missing(value)]
        return "".join(_point(block, line, row, value, 2.5, 'fill-opacity=".5"') for row, value in places)
    if line.shape == "ring":
        return "".join(_point(block, line, row, line.at[row], 6.0, "") for row in rows)
    path = "L".join(f"{_x(block, row)} {_y(block, line.at[row])}" for row in rows)
    if line.shape == "band":
        back = "L".join(f"{_x(block, row)} {_y(block, line.to[row])}" for row in reversed(rows))
        return f'<path d="M{path}L{back}Z" class="fills" {colour(line.tint)} fill-opacity=".18"/>'
    joined = f'<path d="M{path}" class="lines" {colour(line.tint)}{_dashes(line)}/>'
    return joined + "".join(_point(block, line, row, line.at[row], 3.0, "") for row in rows)


def _point(block: Curve, line: Line, row: int, value: float, radius: float, look: str) -> str:
    told = escape(f"{block.names[row]} {line.label} {parameter(value)}")
    fill = f'class="{"lines" if line.shape == "ring" else "fills"}" {colour(line.tint)}'
    place = f'cx="{_x(block, row)}" cy="{_y(block, value)}" r="{radius}"'
    return f"<circle {place} {fill} {look}><title>{told}</title></circle>"


def _dashes(line: Line) -> str:
    return ' stroke-dasharray="5 3"' if line.shape == "dashed" else ""


def _sample(line: Line) -> str:
    tint = colour(line.tint)
    if line.shape == "ring":
        return f'<circle cx="12" cy="6" r="5" class="lines" {tint}/>'
    if line.shape == "points":
        return f'<circle cx="12" cy="6" r="2.5" class="fills" {tint} fill-opacity=".5"/>'
    if line.shape == "band":
        return f'<rect x="1" y="1" width="22" height="10" class="fills" {tint} fill-opacity=".18"/>'
    return f'<path d="M1 6H23" class="lines" {tint}{_dashes(line)}/>'
