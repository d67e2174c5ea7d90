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
from attnscope.render.words import Said
from attnscope.results import Check, HeadCheck, Verdict


def sheet(result: Check, focus: Focus = WHOLE) -> Sheet:
    """The heads that are not as stored, or where more is asked for every one."""
    say = said(result)
    shown = result.heads if focus.verbose else result.off
    return Sheet(
        title=say("title"),
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=say(result.case),
        blocks=(_heads(shown, say),) if shown else (),
        table=lambda: _table(result),
        notes=tuple(result.changes),
        about_proof=True,
        proof=((result.verdict, " ".join((GLYPHS[result.verdict], say("conclusion")))),),
        summary=(counted(len(result.heads), "head"), say("summary")),
    )


def said(result: Check) -> Said:
    """The words of `check` about this result."""
    return Said("check", _facts(result))


def _facts(result: Check) -> dict[str, object]:
    farthest = max(result.off or result.heads, key=_share, default=None)
    return {
        "file": result.file,
        "heads": len(result.heads),
        "off": len(result.off),
        "farthest": farthest and farthest.name,
        "stage": farthest and farthest.stage,
        "by": None if farthest is None or math.isinf(farthest.off) else farthest.off,
        "allowed": farthest and farthest.allowed,
        "most": max((each.off for each in result.heads), default=None),
        "unproved": "" if result.verdict.proved else result.verdict.value,
    }


def _share(head: HeadCheck) -> tuple[float, float]:
    return head.off / head.allowed if head.allowed else math.inf if head.off else 0.0, head.off


def _heads(heads: tuple[HeadCheck, ...], say: Said) -> Ranking:
    return Ranking(
        title="",
        of="head",
        names=tuple(each.name for each in heads),
        table=Table(
            Column("stage", [each.stage for each in heads], "stage", says=say("stage_says")),
            Column("off", [_off(each, say) for each in heads], "furthest off"),
            Column("allowed", [each.allowed for each in heads], say("rounding_allows"), significant),
            Column("told", ["" if each.as_stored else _why(each, say) for each in heads], "verdict"),
        ),
    )


def _off(head: HeadCheck, say: Said) -> str:
    return say("no_number") if math.isinf(head.off) else significant(head.off)


def _why(head: HeadCheck, say: Said) -> str:
    return verdict_words(head.verdict) if head.verdict is Verdict.FAILED else say("not_as_stored")


def _table(result: Check) -> Table:
    heads = result.heads
    return Table(
        *(Column(name, [getattr(each, name) for each in heads]) for name in ("layer", "head", "stage")),
        *(Column(name, [exact(getattr(each, name)) for each in heads]) for name in ("off", "allowed")),
        Column("as_stored", [each.as_stored for each in heads]),
        Column("verdict", [each.verdict.value for each in heads]),
    )
