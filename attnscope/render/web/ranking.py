"""A ranking or a curve in a page: a row each with its marks, and every exact number; a heap of dots.

Above the rows of a curve stand its lines, and what each of them is. Nothing of it needs a script; the number
of everything is under the pointer. All text is escaped.
"""

import math
import re

import numpy as np

from attnscope.render.kit.numbers import parameter
from attnscope.render.sheet.blocks import Curve, Ranking, Rows
from attnscope.render.sheet.drawings import Heap
from attnscope.render.sheet.scale import missing
from attnscope.render.sheet.table import Column, Line
from attnscope.render.web.blocks import escape, shaded
from attnscope.render.web.marks import Axis, colour, drawn, key, ticks

_HEAD = re.compile(r"\bL(\d+) H(\d+)\b")


def paragraph(text: str, kind: str) -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def linked(text: str, leads: bool) -> str:
    """Its text; where the page `leads` to heads each that it names is a link, which opens that head."""
    return _HEAD.sub(r'<a href="#L\1H\2">\g<0></a>', escape(text)) if leads else escape(text)


def ranking(block: Rows, leads: bool = False) -> str:
    """Its rows under their headings; above those of a curve its lines. Heads are links where it `leads`."""
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
    """The dots, the line of the one that is meant, and the numbers of the axis."""
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
    """The lines with their ends on both axes, and what each of them is."""
    shapes = "".join(_line(block, each) for each in block.lines)
    chosen = "".join(
        f'<path d="M{_x(block, row)} 0V{_HIGH}" class="row-chosen"/>' for row in sorted(block.chosen)
    )
    sizes = f'width="{_WIDE + _EDGE}" height="{_HIGH + _BELOW}"'
    told = escape(f"{block.title}: {', '.join(block.key())}")
    picture = f'<svg {sizes} role="img" aria-label="{told}">{_axes(block)}{chosen}{shapes}</svg>'
    return f"{_key(block)}{picture}"


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


def _key(block: Curve) -> str:
    sized = '<svg width="24" height="12" aria-hidden="true">'
    named = (each for each in block.lines if each.label)
    samples = "".join(f"<span>{sized}{_sample(each)}</svg> {escape(each.label)}</span>" for each in named)
    return f'<p class="marks">{samples}</p>' if samples else ""


def _sample(line: Line) -> str:
    tint = colour(line.tint)
    if line.shape == "ring":
        return f'<circle cx="12" cy="6" r="5" class="lines" {tint}/>'
    if line.shape == "points":
        return f'<circle cx="12" cy="6" r="2.5" class="fills" {tint} fill-opacity=".5"/>'
    if line.shape == "band":
        return f'<rect x="1" y="1" width="22" height="10" class="fills" {tint} fill-opacity=".18"/>'
    return f'<path d="M1 6H23" class="lines" {tint}{_dashes(line)}/>'
