"""A curve in a page: its lines over the numbers of its rows, what each of them is, and where it lies.

Nothing of it needs a script; the numbers stand in the table below it.
"""

import math

from attnscope.render.kit.numbers import parameter
from attnscope.render.sheet.blocks import Curve
from attnscope.render.sheet.scale import missing
from attnscope.render.sheet.table import Line
from attnscope.render.web.blocks import escape
from attnscope.render.web.marks import colour, ticks

_WIDE, _HIGH, _LEFT, _BELOW, _EDGE = 350, 190, 40, 36, 8  # pixels
_LETTER = 7.0  # pixels of a letter below the axis


def drawn(block: Curve) -> str:
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
