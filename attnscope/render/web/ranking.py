"""A ranking or a curve in a page: a row each with its marks, and every exact number.

Nothing of it needs a script; the number of everything is under the pointer. All text is escaped.
"""

from attnscope.render.kit.numbers import parameter
from attnscope.render.kit.palette import TINTS
from attnscope.render.sheet.blocks import Curve, Ranking, Rows
from attnscope.render.sheet.scale import missing
from attnscope.render.sheet.table import Column, Mark
from attnscope.render.web.blocks import escape, shaded
from attnscope.render.web.curve import drawn as curve

_WIDE, _HIGH, _LOW = 300, 20, 5  # pixels of the drawing in a row, and that a low mark is below its middle
_ORDER = {"band": 0, "bar": 1, "line": 2}
_THEMED = {"control": "var(--ink)", "noise": "var(--ink)", "floor": "var(--rule)"}  # by light and dark


def paragraph(text: str, kind: str) -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def ranking(block: Rows) -> str:
    """Its rows under their headings; above those of a curve its lines."""
    columns, more = block.table.headed, ""
    above = drawing = ""
    if isinstance(block, Curve):
        above = curve(block)
    elif isinstance(block, Ranking) and block.marks:
        above, drawing = _key(block), f'<th scope="col">{escape(block.measured)}</th>'
    if block.hidden:
        more = paragraph(f"and {block.hidden:,} more, among the numbers", "told")
    heads = "".join(
        f'<th scope="col" title="{escape(each.says)}">{escape(each.heading)}</th>' for each in columns
    )
    sections = dict(block.sections) if isinstance(block, Ranking) else {}
    wide = len(columns) + 1 + bool(drawing)
    rows = "".join(
        _section(sections.get(row, ""), wide) + _row(block, row, columns) for row in range(len(block.names))
    )
    head = f'<thead><tr><th scope="col">{escape(block.of)}</th>{drawing}{heads}</tr></thead>'
    table = f'<div class="wide"><table class="ranking">{head}<tbody>{rows}</tbody></table></div>'
    title = f"<h2>{escape(block.title)}</h2>" if block.title else ""
    return f"{title}{paragraph(block.says, 'told')}{above}{table}{more}"


def _section(heading: str, columns: int) -> str:
    """What the rows below have in common."""
    return f'<tr><th scope="colgroup" colspan="{columns}">{escape(heading)}</th></tr>' if heading else ""


def _row(block: Rows, row: int, columns: tuple[Column, ...]) -> str:
    cells = "".join(_cell(each, row) for each in columns)
    look = ' class="faint"' if row in block.faint else ' class="chosen"' if row in block.chosen else ""
    drawing = f"<td>{_drawing(block, row)}</td>" if isinstance(block, Ranking) and block.marks else ""
    return f'<tr{look}><th scope="row">{escape(block.names[row])}</th>{drawing}{cells}</tr>'


def _cell(column: Column, row: int) -> str:
    """The text of a value on its shade, exact under the pointer."""
    value, text, shade = column.values[row], column.text(row), ""
    if column.scale and text and not missing(value):
        shade = f' style="{shaded(column.scale, value)}"'
    exact = "" if missing(value) else f"{value:.7g}" if isinstance(value, float) else str(value)
    kinds = " ".join((["words"] if column.words else []) + (["shade"] if shade else []))
    words = f' class="{kinds}"' if kinds else ""
    return f'<td{words}{shade} title="{escape(exact)}">{escape(text)}</td>'


def _drawing(block: Ranking, row: int) -> str:
    """The marks of one row on the axis that all rows have."""
    span, shapes = block.extent(), []
    for mark in sorted(block.marks, key=lambda each: _ORDER.get(each.shape, 3)):
        places = range(len(mark.at)) if mark.shape == "line" else (row,)
        shapes += [_shape(mark, place, span) for place in places if not missing(mark.at[place])]
    zero = _x(0.0, span)
    axis = f'<path d="M{zero} 0V{_HIGH}" stroke="var(--ink)" stroke-width=".8"/>' if span[0] < 0 else ""
    return f'<svg width="{_WIDE}" height="{_HIGH}" aria-hidden="true">{"".join(shapes)}{axis}</svg>'


def _x(value: float, span: tuple[float, float]) -> float:
    return round((value - span[0]) / (span[1] - span[0]) * _WIDE, 1)


def _shape(mark: Mark, row: int, span: tuple[float, float]) -> str:
    """One mark; under the pointer what it is and its number."""
    x, tint = _x(mark.at[row], span), _THEMED.get(mark.tint, TINTS[mark.tint])
    middle = _HIGH // 2 + (_LOW if mark.low else 0)
    end = _x(mark.to[row], span) if mark.to else _x(0.0, span)
    low, wide = min(x, end), round(abs(x - end), 1)
    told = f"<title>{escape(' '.join(filter(None, (mark.label, parameter(mark.at[row])))))}</title>"
    line = f'fill="none" stroke="{tint}" stroke-width="1.3"'
    hollow = f'fill="var(--ground)" stroke="{tint}" stroke-width="1.3"'
    return {
        "bar": f'<rect x="{low}" y="4" width="{wide}" height="{_HIGH - 8}" fill="{tint}">{told}</rect>',
        "band": f'<rect x="{low}" y="0" width="{wide}" height="{_HIGH}" fill="{tint}">{told}</rect>',
        "span": f'<path d="M{x} {middle}H{end}M{x} {middle - 3}v6M{end} {middle - 3}v6" {line}>{told}</path>',
        "dot": f'<circle cx="{x}" cy="{middle}" r="4" fill="{tint}">{told}</circle>',
        "ring": f'<circle cx="{x}" cy="{middle}" r="3" {hollow}>{told}</circle>',
        "diamond": f'<path d="M{x - 4} {middle}l4 -4 4 4 -4 4z" {hollow}>{told}</path>',
        "tick": f'<path d="M{x} {middle - 6}v12" {line}>{told}</path>',
        "line": f'<path d="M{x} 0V{_HIGH}" {line} stroke-dasharray="4 2">{told}</path>',
    }[mark.shape]


def _key(block: Ranking) -> str:
    """What each mark is, beside a sample of it."""
    samples = []
    for mark in (each for each in block.marks if each.label):
        wide = mark.shape in ("bar", "band")
        sample = Mark(mark.shape, mark.tint, "", [2.0 if wide else 12.0], [22.0] if wide else ())
        drawn = f'<svg width="24" height="{_HIGH}" aria-hidden="true">{_shape(sample, 0, (0.0, _WIDE))}</svg>'
        samples.append(f"<span>{drawn} {escape(mark.label)}</span>")
    return f'<p class="marks">{"".join(samples)}</p>' if samples else ""
