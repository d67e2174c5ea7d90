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
    by_norm = [each for each in listed if _is_by_norm(each, listed)]
    others = [each for each in listed if each not in by_norm]
    columns = [(each.name, each.unit, each.range) for each in others]
    widths = [max(map(len, column)) + _GAP for column in zip(_HEADINGS, *columns, strict=True)]
    beside = width - sum(widths) >= _LEAST
    margin = sum(widths) if beside else _GAP
    heading = "".join(map(left, _HEADINGS, widths)) + ("meaning" if beside else "")
    lines = [line((heading, DIM))]
    for each, (name, *further) in zip(others, columns, strict=True):
        bold = left(name, widths[0]), HEADING
        rest = "".join(left(text, cells) for text, cells in zip(further, widths[1:], strict=True))
        meaning, paper = (wrap(text, width - margin) for text in (_meaning(each), each.paper))
        lines.append(line(bold, rest, meaning.pop(0) if beside and meaning else ""))
        lines += [line(" " * margin + text) for text in meaning]
        lines += [line(" " * margin, (text, DIM)) for text in paper]
    apart = ", ".join(each.name for each in listed if each.apart)
    told = f"all is every measure of the text that is read; by name alone: {apart}" if apart else ""
    small = wrap(_by_norm_words(by_norm), width, break_on_hyphens=False) if by_norm else []
    lines += [
        Text(),
        *(line(text) for text in small),
        *(Text(text, DIM) for text in ("", *wrap(told, width, break_on_hyphens=False))),
    ]
    hint = Text('attnscope heads "..." --measure NAME,NAME or all shows them by layer and head', DIM)
    return Group(*lines, Text(), hint)


def _is_by_norm(each: MeasureDescription, listed: Sequence[MeasureDescription]) -> bool:
    return each.name.removesuffix("-norm") in {one.name for one in listed if one is not each}


def _meaning(each: MeasureDescription) -> str:
    return f"{each.meaning} Taken of {each.apart}." if each.apart else each.meaning


def _by_norm_words(by_norm: Sequence[MeasureDescription]) -> str:
    """The measures by norm in one paragraph: they differ from the others in nothing else."""
    papers = "; ".join(dict.fromkeys(each.paper.rpartition("; ")[2] for each in by_norm))
    return (
        "By the share of weight x ||f(x)|| in place of the weight, f(x) being what arrives of a key's value "
        f"through the output projection ({papers}): {', '.join(each.name for each in by_norm)}."
    )


def measures_json(listed: Sequence[MeasureDescription]) -> str:
    """A document of one list, one measure a line."""
    rows = [json.dumps(asdict(each) | {"range": each.range}, ensure_ascii=False) for each in listed]
    body = ",\n    ".join(rows)
    return f'{{\n  "schema": "attnscope.measures/1",\n  "measures": [\n    {body}\n  ]\n}}\n'
