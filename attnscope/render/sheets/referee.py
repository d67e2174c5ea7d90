"""Ways to cite side by side: how often each finds the passage that an answer is from."""

import math
from collections.abc import Callable, Iterator

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import cell, likely, percent
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import proof, setting
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.render.sheets.citation import quoted
from attnscope.render.words import Said
from attnscope.results.claims.citation import ATTENTION, CONTROLS, REMOVAL, Method
from attnscope.results.claims.flow import ByGradients
from attnscope.results.claims.referee import Referee

_COLUMNS = "method cases top1 top1_low top1_high reciprocal reciprocal_low reciprocal_high tells"


def sheet(result: Referee, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    ranking, cases = _ranking(result, say), _cases(result, say, focus.verbose)
    return Sheet(
        title=say("title"),
        setting=setting(result),
        origins=(result.provenance,),
        answer=say(result.case),
        blocks=(ranking, *((cases,) if focus.verbose else ())),
        table=lambda: Table.of(_COLUMNS, _rows(result)),
        control=say("control"),
        notes=tuple(say.lines("notes")),
        legend=tuple(say.lines("legend")),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=tuple(proof(result.certified, "head", say("proof"))),
        main=ranking,
        record=(("kind", result.kind.value), ("tower", result.tower), ("file", result.file)),
        more=() if focus.verbose else (cases,),
    )


def _rows(result: Referee) -> Iterator[tuple[object, ...]]:
    for each in result.scores:
        numbers = [exact(getattr(each, name)) for name in _COLUMNS.split()[2:]]
        yield (each.method, each.cases, *numbers)


def said(result: Referee) -> Said:
    """The words of `cite --cases` about this result."""
    methods = [each.method for each in result.scores if each.method not in (REMOVAL, *CONTROLS)]
    removal, by_model = result.score(REMOVAL), [*filter(None, map(result.score, methods))]
    best = max(by_model, key=lambda each: each.top1, default=None)
    facts = {
        "removal": removal,
        "attention": result.score(ATTENTION),
        "best": None if best is None or best.method == ATTENTION else best,
        "cases": removal.cases if removal else 0,
        "sourceless": result.none,
        "judged": len(result.judged),
        "silent": [each.method for each in result.scores if math.isnan(each.top1) and result.sourced],
        "left": _left_out(result),
        "refused": [each.line for each in result.refused],
        "unlikely": sum(each.probability < 0.5 for each in result.judged) if result.how == "given" else 0,
    }
    return Said("referee", result, facts)


def _left_out(result: Referee) -> list[Method]:
    asked = {each.method for each in result.scores}
    return [] if asked & {*ByGradients} else [Method(each) for each in ByGradients]


def _ranking(result: Referee, say: Said) -> Ranking:
    shown = sorted(
        (each for each in result.scores if not math.isnan(each.top1) or not math.isnan(each.tells)),
        key=lambda each: (-1.0 if math.isnan(each.top1) else -each.top1, -each.reciprocal),
    )
    top1 = [each.top1 for each in shown]
    ends = [(each.top1_low, each.top1_high) for each in shown]
    means = [(each.reciprocal_low, each.reciprocal_high) for each in shown]
    return Ranking(
        title=say("ranking_title"),
        of="way to cite",
        names=tuple(each.method for each in shown),
        table=Table(
            Column("cases", [each.cases for each in shown], "cases", "{:,}".format),
            Column("top1", top1, "first", percent),
            Column("interval", [_interval(*each, percent) for each in ends], "95 %", as_written, spared=2),
            Column("reciprocal", [each.reciprocal for each in shown], "1 / rank", cell),
            Column(
                "reciprocal_interval",
                [_interval(*each, cell) for each in means],
                "95 %",
                as_written,
                spared=3,
            ),
            Column("tells", [each.tells for each in shown], "tells none", cell, say("says_tells"), spared=1),
        ),
        measured="share of cases",
        marks=(
            Mark("span", "limit", say("interval"), [low for low, _ in ends], [high for _, high in ends]),
            Mark("dot", "own", say("own"), top1),
            Mark("line", "control", say("by_lot"), [result.chance] * len(shown)),
        ),
        written="top1",
        axis=(0.0, 1.0),
        faint=frozenset(i for i, each in enumerate(shown) if each.method in CONTROLS),
        chosen=frozenset(i for i, each in enumerate(shown) if each.method == REMOVAL),
    )


def _interval(low: float, high: float, form: Callable[[float], str]) -> str:
    return "" if math.isnan(low) else f"{form(low)} to {form(high)}"


def _cases(result: Referee, say: Said, whole: bool) -> Ranking:
    shown = result.judged if whole else tuple(each for each in result.judged if not each.right)
    attention = [score.method for score in result.scores].index(ATTENTION)
    ranks = [each.ranks[attention] for each in shown]
    return Ranking(
        title=say("cases_title", whole),
        of="case",
        names=tuple(say("case", each.line, quoted(each.question)) for each in shown),
        table=Table(
            Column("answer", [quoted(each.answer) for each in shown], "answer"),
            Column("probability", [each.probability for each in shown], "probable", likely),
            Column("source", [_numbers(each.source) for each in shown], "source"),
            Column("named", [_numbers(each.named) for each in shown], "named", says=say("says_named")),
            Column("rank", ranks, "by attention", lambda rank: f"{rank:g}", say("says_rank")),
        ),
    )


def _numbers(passages: tuple[int, ...]) -> str:
    return ", ".join(map(str, passages)) or "none"
