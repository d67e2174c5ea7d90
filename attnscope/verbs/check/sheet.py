"""The sheet of `check`: heads and parts that are not as stored, and what else has changed."""

import math
from collections.abc import Sequence

from attnscope.render.kit.numbers import counted, exact, significant
from attnscope.render.kit.words import GLYPHS, model_words, verdict_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Verdict
from attnscope.verbs.check.result import Check, HeadCheck, PartCheck

Checked = HeadCheck | PartCheck


def sheet(result: Check, focus: Focus = WHOLE) -> Sheet:
    """The sheet, with the heads and parts that are not as stored, or with all of them if verbose."""
    say = said(result)
    shown = result.every if focus.verbose else result.off
    return Sheet(
        title=say("title"),
        setting=model_words(result.provenance) if result.provenance else "",
        origins=(result.provenance,) if result.provenance else (),
        answer=say(result.case),
        blocks=(_ranking(shown, say),) if shown else (),
        table=lambda: _table(result),
        notes=tuple(result.changes),
        about_proof=True,
        proof=((result.verdict, " ".join((GLYPHS[result.verdict], say("conclusion")))),),
        summary=(counted(len(result.every), _of(result.every)), say("summary")),
    )


def said(result: Check) -> Said:
    """A `Said` that fills the sentence templates of `check` with the facts of this result."""
    farthest = max(result.off or result.every, key=_share, default=None)
    facts = {
        "checked": len(result.every),
        "of": _of(result.every),
        "off": len(result.off),
        "farthest": farthest and farthest.name,
        "stage": getattr(farthest, "stage", ""),
        "by": None if farthest is None or math.isinf(farthest.off) else farthest.off,
        "allowed": farthest and farthest.allowed,
        "most": max((each.off for each in result.every), default=None),
        "of_model": result.provenance is not None,
        "unproved": "" if result.verdict.proved else result.verdict.value,
    }
    return Said("check", result, facts)


def _of(checked: Sequence[Checked]) -> str:
    """The noun for what is checked: head, or part of an answer."""
    return "part" if any(isinstance(each, PartCheck) for each in checked) else "head"


def _share(head: Checked) -> tuple[float, float]:
    return head.off / head.allowed if head.allowed else math.inf if head.off else 0.0, head.off


def _ranking(shown: Sequence[Checked], say: Said) -> Ranking:
    stages = [getattr(each, "stage", "") for each in shown]
    return Ranking(
        title="",
        of=_of(shown),
        names=tuple(each.name for each in shown),
        table=Table(
            *([Column("stage", stages, "stage", says=say("stage_says"))] if any(stages) else []),
            Column("off", [_off(each, say) for each in shown], "furthest off"),
            Column("allowed", [each.allowed for each in shown], say("rounding_allows"), significant),
            Column("told", ["" if each.as_stored else _why(each, say) for each in shown], "verdict"),
        ),
    )


def _off(checked: Checked, say: Said) -> str:
    if not math.isinf(checked.off):
        return significant(checked.off)
    return say("no_number" if isinstance(checked, HeadCheck) else "other_words")


def _why(checked: Checked, say: Said) -> str:
    failed = isinstance(checked, HeadCheck) and checked.verdict is Verdict.FAILED
    return verdict_words(Verdict.FAILED) if failed else say("not_as_stored")


def _table(result: Check) -> Table:
    every, of_heads = result.every, ("layer", "head", "stage")
    names = ("name",) if result.parts else of_heads
    return Table(
        *(Column(name, [getattr(each, name) for each in every]) for name in names),
        *(Column(name, [exact(getattr(each, name)) for each in every]) for name in ("off", "allowed")),
        Column("as_stored", [each.as_stored for each in every]),
        *([Column("verdict", [each.verdict.value for each in result.heads])] if result.heads else []),
    )
