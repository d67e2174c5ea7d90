"""A stored run held against the same run made anew: what has changed, and the heads not as stored."""

import math

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import counted, significant
from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table
from attnscope.results import Check, HeadCheck, Verdict


def sheet(result: Check, focus: Focus = WHOLE) -> Sheet:
    """The heads that are not as stored, or where more is asked for every one."""
    shown = result.heads if focus.verbose else result.off
    return Sheet(
        title=f"{result.file} made anew",
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(_heads(shown),) if shown else (),
        table=lambda: _table(result),
        notes=tuple(result.changes),
        about_proof=True,
        proof=((result.verdict, _conclusion(result)),),
        summary=(counted(len(result.heads), "head"), f"{len(result.off)} not as stored"),
    )


def _answer(result: Check) -> str:
    """Whether the numbers come out as they were stored, and which head lies farthest off."""
    total = counted(len(result.heads), "head")
    if not result.off:
        return f"The numbers of {total} come out as they were stored, within what rounding does."
    farthest = max(result.off, key=lambda each: each.off / each.allowed if each.allowed else math.inf)
    return f"{len(result.off)} of {total} do not come out as they were stored, {farthest.name} farthest off."


def _heads(heads: tuple[HeadCheck, ...]) -> Ranking:
    return Ranking(
        title="",
        of="head",
        names=tuple(each.name for each in heads),
        table=Table(
            Column("stage", [each.stage for each in heads], "stage", says="where a number is farthest off"),
            Column("off", list(map(_off, heads)), "off"),
            Column("allowed", [significant(each.allowed) for each in heads], "allowed"),
            Column("told", ["" if each.as_stored else _why(each) for each in heads], "verdict"),
        ),
    )


def _off(head: HeadCheck) -> str:
    return "another shape, mask or missing numbers" if math.isinf(head.off) else significant(head.off)


def _why(head: HeadCheck) -> str:
    """Why a head is not as stored."""
    return verdict_words(head.verdict) if head.verdict is Verdict.FAILED else "not as stored"


def _conclusion(result: Check) -> str:
    """How many heads are as stored."""
    off, total = len(result.off), counted(len(result.heads), "head")
    if off:
        return f"{GLYPHS[Verdict.FAILED]} {off} of {len(result.heads)} heads are not as stored"
    worst = max(result.heads, key=lambda each: each.off)
    told = f"{GLYPHS[result.verdict]} {total} as stored, off by {significant(worst.off)} at most"
    return told if result.verdict.proved else f"{told} · {result.verdict.value} now"


def _table(result: Check) -> Table:
    heads = result.heads
    return Table(
        *(Column(name, [getattr(each, name) for each in heads]) for name in ("layer", "head", "stage")),
        *(Column(name, [exact(getattr(each, name)) for each in heads]) for name in ("off", "allowed")),
        Column("as_stored", [each.as_stored for each in heads]),
        Column("verdict", [each.verdict.value for each in heads]),
    )
