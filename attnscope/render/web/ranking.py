"""A ranking or a curve in a page: a row each with its marks, and every exact number.

Nothing of it needs a script; the number of everything is under the pointer. All text is escaped.
"""

import re

from attnscope.render.sheet.blocks import Curve, Ranking, Rows
from attnscope.render.sheet.scale import missing
from attnscope.render.sheet.table import Column
from attnscope.render.web.blocks import escape, shaded
from attnscope.render.web.curve import drawn as curve
from attnscope.render.web.marks import Axis, drawn, key

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
        above = curve(block)
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
