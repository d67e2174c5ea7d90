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
        title=f"{result.file} computed again",
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
    total, file = counted(len(result.heads), "head"), result.file
    if result.off:
        return _differs(result)
    if not result.heads:
        return f"{file} has no head that could be run again."
    worst = max(result.heads, key=_share)
    if worst.off == 0:
        return f"Computed again here, {file} is the same to the last bit ({total})."
    allowed = f"off by {significant(worst.off)} at most, {significant(worst.allowed)} allowed"
    return f"Computed again here, {file} is the same up to rounding ({total}, {allowed})."


def _differs(result: Check) -> str:
    farthest, several = max(result.off, key=_share), len(result.off) > 1
    if math.isinf(farthest.off):
        by = f"{farthest.stage} of another shape, with another mask, or with numbers missing"
    elif farthest.off > farthest.allowed:
        of = f" in its {farthest.stage}"
        by = f"differs by {significant(farthest.off)}{of}, rounding explains {significant(farthest.allowed)}"
    else:
        by = "no longer certified when it is run"
    heads = f"{len(result.off)} of {counted(len(result.heads), 'head')} differ, farthest " if several else ""
    told = f"✗ {result.file} is not what this model gives here: {heads}{farthest.name}"
    told += f" {by}" if by.startswith("differs") and not several else f": {by.removeprefix('differs ')}"
    return f"{told}. Was it edited, or made with other weights or another version?"


def _share(head: HeadCheck) -> tuple[float, float]:
    return head.off / head.allowed if head.allowed else math.inf if head.off else 0.0, head.off


def _heads(heads: tuple[HeadCheck, ...]) -> Ranking:
    return Ranking(
        title="",
        of="head",
        names=tuple(each.name for each in heads),
        table=Table(
            Column("stage", [each.stage for each in heads], "stage", says="where a number is furthest off"),
            Column("off", list(map(_off, heads)), "furthest off"),
            Column("allowed", [each.allowed for each in heads], "rounding allows", significant),
            Column("told", ["" if each.as_stored else _why(each) for each in heads], "verdict"),
        ),
    )


def _off(head: HeadCheck) -> str:
    return "another shape, mask or missing numbers" if math.isinf(head.off) else significant(head.off)


def _why(head: HeadCheck) -> str:
    return verdict_words(head.verdict) if head.verdict is Verdict.FAILED else "not as stored"


def _conclusion(result: Check) -> str:
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
