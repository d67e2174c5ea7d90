"""The measures that there are, as a table for the terminal and as JSON, made from what is said of each."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left
from attnscope.results import MeasureDescription

_HEADINGS = ("name", "unit", "range")
_GAP, _LEAST = 2, 40  # cells between columns, and of the meaning at least


def measures_table(listed: Sequence[MeasureDescription], width: int) -> RenderableType:
    """Name, unit and range of each measure, beside them its meaning and its paper, or below where narrow."""
    columns = [(each.name, each.unit, each.range) for each in listed]
    widths = [max(map(len, column)) + _GAP for column in zip(_HEADINGS, *columns, strict=True)]
    beside = width - sum(widths) >= _LEAST
    margin = sum(widths) if beside else _GAP
    heading = "".join(map(left, _HEADINGS, widths)) + ("meaning" if beside else "")
    lines = [line((heading, DIM))]
    for each, (name, *others) in zip(listed, columns, strict=True):
        bold = left(name, widths[0]), HEADING
        further = "".join(left(text, cells) for text, cells in zip(others, widths[1:], strict=True))
        meaning, paper = (wrap(text, width - margin) for text in (each.meaning, each.paper))
        lines.append(line(bold, further, meaning.pop(0) if beside and meaning else ""))
        lines += [line(" " * margin + text) for text in meaning]
        lines += [line(" " * margin, (text, DIM)) for text in paper]
    hint = Text('attnscope heads "..." --measure NAME,NAME or all shows them by layer and head', DIM)
    return Group(*lines, Text(), hint)


def measures_json(listed: Sequence[MeasureDescription]) -> str:
    """A document of one list, one measure a line."""
    rows = [json.dumps(asdict(each) | {"range": each.range}, ensure_ascii=False) for each in listed]
    body = ",\n    ".join(rows)
    return f'{{\n  "schema": "attnscope.measures/1",\n  "measures": [\n    {body}\n  ]\n}}\n'
