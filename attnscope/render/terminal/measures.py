"""Screens of `attnscope measures`: five to begin with, one explained, or all in a table."""

from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.printable import word
from attnscope.render.kit.cells import DIM, HEADING, left, line
from attnscope.render.kit.command import Command, continued
from attnscope.results import MeasureDescription
from attnscope.results.stored.document import MeasureListed
from attnscope.vocabulary import MASKED_SENTENCE

BEGIN = {  # five measures to begin with, a line each
    "entropy": "how many tokens a query spreads over; the grid shows e^entropy",
    "previous": "weight on the token before",
    "special-tokens": "weight on [CLS], [SEP], [BOS] and their like",
    "fixed": "share of queries whose strongest key is at one distance",
    "importance": "how much the answer hangs on the head, by gradient",
}
_HEADINGS = ("name", "unit", "range")
_GAP, _LEAST = 2, 40  # cells between columns, and of the meaning at least


def measures_begun(listed: Sequence[MeasureDescription], width: int) -> RenderableType:
    """Screen with the number of measures, and five to begin with."""
    chosen = [each for each in listed if each.name in BEGIN]
    columns = [(each.name, each.range) for each in chosen]
    widths = [max(map(len, column)) + _GAP for column in zip(*columns, strict=True)]
    return Group(
        Text(f"{answer(listed)} Five to begin with:", "bold"),
        Text(),
        *(
            each
            for (name, span), one in zip(columns, chosen, strict=True)
            for each in _beside([left(name, widths[0]), left(span, widths[1])], BEGIN[one.name], width)
        ),
        Text(),
        Text("attnscope measures --all lists every one, attnscope measures NAME explains one", DIM),
        Command("\n".join(["Next: look at one", *continued(_look("previous"))])),
    )


def answer(listed: Sequence[MeasureDescription]) -> str:
    return f"{len(listed)} measures of a head." if len(listed) > 1 else listed[0].meaning


def measure_explained(one: MeasureListed, width: int, others: Iterable[str] = ()) -> RenderableType:
    """Screen of one measure: its formula, unit, range and paper; `others` are related measures."""
    each = one.described
    ends = f"{one.range} ({each.low} … {each.high})"
    told = {
        "formula": one.formula,
        "unit": each.unit,
        "range": ends,
        "classes": ", ".join(f"{number} {name}" for number, name in enumerate(each.classes)),
        "taken of": each.apart,
        "paper": each.paper,
        "see also": ", ".join(others),
    }
    widest = max(map(len, told)) + _GAP
    rows = [row for name, text in told.items() if text for row in _beside([left(name, widest)], text, width)]
    below = "a is the weight of query q on key k, mean the mean over queries"
    below += ", f(x_k) the value of k through the output projection" if "f(x" in one.formula else ""
    return Group(
        *(Text(text, "bold") for text in wrap(f"{each.name}: {each.meaning}", width)),
        Text(),
        *rows,
        *(Text(text, DIM) for text in wrap(below, width)),
        Text(),
        Command("\n".join(["Next: see it in every head", *continued(_look(each.name))])),
    )


def _look(measure: str) -> str:
    return f"attnscope heads {word(MASKED_SENTENCE)} -m demo --measure {measure}"


def _beside(before: Sequence[str], text: str, width: int) -> list[Text]:
    margin = sum(map(len, before))
    first, *more = wrap(text, max(width - margin, 20), break_on_hyphens=False)
    return [line((before[0], HEADING), *before[1:], first), *(line(" " * margin + rest) for rest in more)]


def measures_table(listed: Sequence[MeasureDescription], width: int) -> RenderableType:
    """Screen of all measures: name, unit and range, with meaning and paper beside or below."""
    names = {each.name for each in listed}
    by_norm = [each for each in listed if each.name.removesuffix("-norm") in names - {each.name}]
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
        told = f"{each.meaning} Taken of {each.apart}." if each.apart else each.meaning
        meaning, paper = (wrap(text, width - margin) for text in (told, each.paper))
        lines.append(line(bold, rest, meaning.pop(0) if beside and meaning else ""))
        lines += [line(" " * margin + text) for text in meaning]
        lines += [line(" " * margin, (text, DIM)) for text in paper]
    apart = ", ".join(each.name for each in listed if each.apart)
    told = f"all is every measure of the text that is read; by name alone: {apart}" if apart else ""
    papers = "; ".join(dict.fromkeys(each.paper.rpartition("; ")[2] for each in by_norm))
    norms = (
        "By the share of weight x ||f(x)|| in place of the weight, f(x) being what arrives of a key's value "
        f"through the output projection ({papers}): {', '.join(each.name for each in by_norm)}."
    )
    small = wrap(norms, width, break_on_hyphens=False) if by_norm else []
    aside = wrap(told, width, break_on_hyphens=False)
    lines += [Text(), *(line(text) for text in small)] if small else []
    lines += [Text(), *(Text(text, DIM) for text in aside)] if aside else []
    hint = Text('attnscope heads "..." --measure NAME,NAME or all shows them by layer and head', DIM)
    return Group(*lines, Text(), hint)
