"""A stored run held against the same run made anew: what has changed, and the heads not as stored."""

import math
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, line
from attnscope.render.kit.csv import Row, exact, rows
from attnscope.render.kit.labels import left
from attnscope.render.kit.numbers import counted, short
from attnscope.render.kit.words.certificate import GLYPHS, STYLES, verdict_words
from attnscope.render.kit.words.header import model_words, reading
from attnscope.results import Check, HeadCheck, Verdict
from attnscope.tokens import printable


def check(result: Check, every: bool = False) -> RenderableType:
    """Header, changes, the heads that are not as stored (or every one), and the conclusion."""
    shown = result.heads if every else result.off
    wide = max((len(each.name) for each in shown), default=0)
    return Group(
        Text.assemble((printable(result.file), "bold"), f" made anew · {model_words(result.provenance)}"),
        Text(reading(result.provenance).plain, style=DIM),
        *(Text(printable(each), style="bold yellow") for each in result.changes),
        *(_line(each, wide) for each in shown),
        Text(conclusion(result), style=STYLES[result.verdict]),
    )


def _line(head: HeadCheck, wide: int) -> Text:
    return line(
        left(head.name, wide),
        f"  {head.stage} {_off(head)}",
        ("" if head.as_stored else f" · {told(head)}", STYLES[Verdict.FAILED]),
    )


def _off(head: HeadCheck) -> str:
    if math.isinf(head.off):
        return "not of the same shape, mask or missing numbers"
    return f"off by {short(head.off)}, allowed {short(head.allowed)}"


def told(head: HeadCheck) -> str:
    """Why a head is not as stored."""
    if head.verdict is Verdict.FAILED:
        return verdict_words(head.verdict)
    return "not as stored"


def conclusion(result: Check) -> str:
    """How many heads are as stored."""
    off, total = len(result.off), counted(len(result.heads), "head")
    if off:
        return f"{GLYPHS[Verdict.FAILED]} {off} of {len(result.heads)} heads are not as stored"
    worst = max(result.heads, key=lambda each: each.off)
    told = f"{GLYPHS[result.verdict]} {total} as stored, off by {short(worst.off)} at most"
    return told if result.verdict is Verdict.CERTIFIED else f"{told} · {result.verdict.value} now"


@rows.register
def _(result: Check) -> Iterator[Row]:
    yield "layer", "head", "stage", "off", "allowed", "as_stored", "verdict"
    for each in result.heads:
        numbers = exact(each.off), exact(each.allowed), each.as_stored
        yield each.layer, each.head, each.stage, *numbers, each.verdict.value
