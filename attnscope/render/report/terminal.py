"""A report in a terminal: what each key adds to the query's output, and the head in numbers."""

from dataclasses import replace
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, bar, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.palette import BAR, BAR_BACK
from attnscope.render.kit.words.weights import special_words, view_words
from attnscope.render.report.words import Fact, Share, facts, percent, query_name, shares, shares_remark
from attnscope.render.sheets.map import DISCLAIMER
from attnscope.results import Report

MOST_KEYS = 25
_LONGEST_BAR = 40


def report_lines(result: Report, width: int) -> RenderableType:
    """The query's keys by what they add to its output, then the head's statistics, in `width` cells."""
    title = line(("query ", DIM), (query_name(result), HEADING))
    listed, remark = shares(result, MOST_KEYS), shares_remark(result)
    rows = _shares(listed, width) if listed else []
    told = " · ".join(view_words(result.weights))
    remarks = [Text(text, DIM) for text in (remark, told) if text]
    special = special_words(result.head.special_mass)
    numbers = [line(("the head in numbers", HEADING)), *_facts(facts(result), width)]
    return Group(
        title,
        *rows,
        *remarks,
        "",
        *numbers,
        *([Text(special, DIM)] if special else []),
        Text(DISCLAIMER, DIM),
    )


def _shares(listed: list[Share], width: int) -> list[Text]:
    """One line per key; a full bar is the largest share, whichever way it points."""
    listed = [replace(each, name=name) for each, name in zip(listed, _aligned(listed), strict=True)]
    label = max(cell_len("key"), *(cell_len(each.name) for each in listed))
    largest = max(abs(each.share) for each in listed)
    cells = max(6, *(cell_len(percent(each.share)) for each in listed))  # a share may exceed 100 %
    room = min(max(width - label - cells - 13, 8), _LONGEST_BAR)
    heading = line((f"{left('key', label)}  weight   share of the output", DIM))
    return [heading, *(_row(each, label, cells, bar(abs(each.share) / largest, room)) for each in listed)]


def _aligned(listed: list[Share]) -> list[str]:
    """The names with the last digits of their positions below each other."""
    digits = max((cell_len(each.name.split(" ")[0]) for each in listed if each.key is not None), default=0)
    missing = (digits - cell_len(each.name.split(" ")[0]) for each in listed)
    return [
        each.name if each.key is None else " " * more + each.name
        for each, more in zip(listed, missing, strict=True)
    ]


def _row(each: Share, label: int, cells: int, drawn: str) -> Text:
    numbers = f"  {weight_text(each.weight, 3):>6}  {right(percent(each.share), cells)}  "
    return line(left(each.name, label), numbers, (drawn, BAR if each.share >= 0 else BAR_BACK))


def _facts(listed: list[Fact], width: int) -> list[Text]:
    """One line per fact; a meaning that has no room goes on below its beginning."""
    name = max(cell_len(each.name) for each in listed)
    value = max(cell_len(each.value) for each in listed)
    margin = name + value + 4
    lines = []
    for each in listed:
        first, *further = wrap(each.meaning, max(width - margin, 20)) or [""]
        lines.append(line(f"{left(each.name, name)}  {right(each.value, value)}  {first}"))
        lines += [line(" " * margin + more) for more in further]
    return lines
