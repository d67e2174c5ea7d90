"""A curve in a page: its lines over the numbers of its rows, what each of them is, and where it lies.

Nothing of it needs a script; the numbers stand in the table below it.
"""

from attnscope.render.kit.numbers import parameter
from attnscope.render.kit.palette import TINTS
from attnscope.render.sheet.blocks import Curve
from attnscope.render.sheet.scale import missing
from attnscope.render.sheet.table import Line
from attnscope.render.web.blocks import escape

_WIDE, _HIGH, _LEFT, _BELOW, _EDGE = 460, 200, 46, 34, 10  # pixels
_THEMED = {"control": "var(--ink)", "noise": "var(--ink)"}  # by light and dark


def drawn(block: Curve) -> str:
    """The lines with their ends on both axes, and what each of them is."""
    low, high = block.extent()
    shapes = "".join(_line(block, each) for each in block.lines)
    chosen = "".join(f'<path d="M{_x(block, row)} 0V{_HIGH}" class="rule"/>' for row in sorted(block.chosen))
    zero = f'<path d="M{_LEFT} {_y(block, 0.0)}H{_WIDE}" class="rule"/>' if low < 0 < high else ""
    sizes = f'width="{_WIDE + _EDGE}" height="{_HIGH + _BELOW}"'
    told = escape(f"{block.title}: {', '.join(block.key())}")
    picture = f'<svg {sizes} role="img" aria-label="{told}">{chosen}{zero}{shapes}{_axes(block)}</svg>'
    return f'{_key(block)}<div class="wide">{picture}</div>'


def _x(block: Curve, row: int) -> float:
    low, high = min(block.places), max(block.places)
    share = (block.places[row] - low) / (high - low) if high > low else 0.5
    return round(_LEFT + _EDGE + share * (_WIDE - _LEFT - 2 * _EDGE), 1)


def _y(block: Curve, value: float) -> float:
    return round((1 - block.share(value)) * _HIGH, 1)


def _axes(block: Curve) -> str:
    """Both axes, the ends of what is measured, and the names of the first and the last row."""
    low, high = block.extent()
    frame = f'<path d="M{_LEFT} 0V{_HIGH}H{_WIDE}" class="frame"/>'
    ends = (
        (_LEFT - 4, 10, "end", parameter(high, 2)),
        (_LEFT - 4, _HIGH, "end", parameter(low, 2)),
        (_x(block, 0), _HIGH + 14, "middle", block.names[0]),
        (_x(block, len(block.names) - 1), _HIGH + 14, "middle", block.names[-1]),
        ((_LEFT + _WIDE) / 2, _HIGH + 28, "middle", f"{block.measured}, by {block.of}"),
    )
    texts = (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="small">{escape(text)}</text>'
        for x, y, anchor, text in ends
    )
    return frame + "".join(texts)


def _line(block: Curve, line: Line) -> str:
    """One line; what it is and its number under the pointer."""
    rows = [row for row, value in enumerate(line.at) if not missing(value)]
    if line.shape == "points":
        places = [(row, value) for row in rows for value in line.at[row] if not missing(value)]
        return "".join(_point(block, line, row, value, 2.5, 'fill-opacity=".4"') for row, value in places)
    if line.shape == "ring":
        return "".join(_point(block, line, row, line.at[row], 6.0, "") for row in rows)
    path = "L".join(f"{_x(block, row)} {_y(block, line.at[row])}" for row in rows)
    if line.shape == "band":
        back = "L".join(f"{_x(block, row)} {_y(block, line.to[row])}" for row in reversed(rows))
        return f'<path d="M{path}L{back}Z" fill="{_tint(line)}" fill-opacity=".15"/>'
    joined = f'<path d="M{path}" fill="none" stroke="{_tint(line)}" stroke-width="1.6"{_dashes(line)}/>'
    return joined + "".join(_point(block, line, row, line.at[row], 3.0, "") for row in rows)


def _point(block: Curve, line: Line, row: int, value: float, radius: float, look: str) -> str:
    told = escape(f"{block.names[row]} {line.label} {parameter(value)}")
    fill = f'fill="none" stroke="{_tint(line)}"' if line.shape == "ring" else f'fill="{_tint(line)}"'
    place = f'cx="{_x(block, row)}" cy="{_y(block, value)}" r="{radius}"'
    return f"<circle {place} {fill} {look}><title>{told}</title></circle>"


def _dashes(line: Line) -> str:
    return ' stroke-dasharray="5 3"' if line.shape == "dashed" else ""


def _tint(line: Line) -> str:
    return _THEMED.get(line.tint, TINTS[line.tint])


def _key(block: Curve) -> str:
    """What each line is, beside a sample of it."""
    sized = '<svg width="24" height="12" aria-hidden="true">'
    named = (each for each in block.lines if each.label)
    samples = "".join(f"<span>{sized}{_sample(each)}</svg> {escape(each.label)}</span>" for each in named)
    return f'<p class="marks">{samples}</p>' if samples else ""


def _sample(line: Line) -> str:
    """A piece of a line, or one of its points."""
    tint = _tint(line)
    if line.shape in ("points", "ring"):
        look = f'fill="none" stroke="{tint}"' if line.shape == "ring" else f'fill="{tint}" fill-opacity=".4"'
        return f'<circle cx="12" cy="6" r="{5 if line.shape == "ring" else 2.5}" {look}/>'
    look = 'stroke-width="8" stroke-opacity=".15"' if line.shape == "band" else 'stroke-width="2"'
    return f'<path d="M1 6H23" stroke="{tint}" {look}{_dashes(line)}/>'
