"""Ways to cite side by side: how often each finds the passage that an answer is from."""

import math
from collections.abc import Callable, Iterator

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import cell, counted, likely, percent
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import begun, proof, setting
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.render.sheets.citation import quoted
from attnscope.results.claims.citation import ATTENTION, CONTROLS, REMOVAL, Method
from attnscope.results.claims.flow import ByGradients
from attnscope.results.claims.referee import Referee, Score

_TELLS = "chance that its first passage gets more in a case with a source than without one; .50 tells nothing"
_COLUMNS = "method cases top1 top1_low top1_high reciprocal reciprocal_low reciprocal_high tells"


def sheet(result: Referee, focus: Focus = WHOLE) -> Sheet:
    ranking, cases = _ranking(result), _cases(result, focus.verbose)
    return Sheet(
        title=f"which way to cite finds the source, over {counted(len(result.judged), 'case')}",
        setting=setting(result),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(ranking, *((cases,) if focus.verbose else ())),
        table=lambda: Table.of(_COLUMNS, _facts(result)),
        control="a passage drawn by lot, the longest, the nearest to the answer, and the one that shares "
        "most words with question and answer",
        notes=tuple(_notes(result)),
        legend=(
            "first: how often a source comes first, alone; 1 / rank: the mean of 1 over its place; each with "
            "its 95 % interval over the cases",
        ),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=tuple(proof(result.certified, "head", ", all cases counted")),
        main=ranking,
        record=(("kind", result.kind.value), ("tower", result.tower), ("file", result.file)),
        more=() if focus.verbose else (cases,),
    )


def _facts(result: Referee) -> Iterator[tuple[object, ...]]:
    for each in result.scores:
        numbers = [exact(getattr(each, name)) for name in _COLUMNS.split()[2:]]
        yield (each.method, each.cases, *numbers)


def _answer(result: Referee) -> str:
    none = _of_none(result)
    removal, attention = result.score(REMOVAL), result.score(ATTENTION)
    if removal is None or attention is None:
        return begun(none)
    best = max((each for each in map(result.score, _by_model(result)) if each), key=lambda each: each.top1)
    least = "removal and gradients" if _left_out(result) else "removal"
    also = (
        "" if best.method == ATTENTION else f", the best way without {least} ({best.method}) {_share(best)}"
    )
    return (
        f"In {counted(removal.cases, 'case')} with a source removal puts it first {_share(removal)}, "
        f"attention {_share(attention)}{also}; a passage drawn by lot {percent(result.chance)}. {begun(none)}"
    )


def _left_out(result: Referee) -> list[Method]:
    asked = {each.method for each in result.scores}
    return [] if asked & {*ByGradients} else [Method(each) for each in ByGradients]


def _by_model(result: Referee) -> list[str]:
    return [each.method for each in result.scores if each.method not in (REMOVAL, *CONTROLS)]


def _share(score: Score) -> str:
    return f"in {percent(score.top1)} of them ({percent(score.top1_low)} to {percent(score.top1_high)})"


def _of_none(result: Referee) -> str:
    if not result.none:
        return "no case is without a source: how often one is wrongly named is not known."
    named = "none" if not result.wrongly_named else f"one in {result.wrongly_named}"
    return (
        f"of {counted(result.none, 'case')} without a source removal names {named}; a ranking always names a "
        "passage."
    )


def _ranking(result: Referee) -> Ranking:
    shown = sorted(
        (each for each in result.scores if not math.isnan(each.top1) or not math.isnan(each.tells)),
        key=lambda each: (-1.0 if math.isnan(each.top1) else -each.top1, -each.reciprocal),
    )
    top1 = [each.top1 for each in shown]
    ends = [(each.top1_low, each.top1_high) for each in shown]
    means = [(each.reciprocal_low, each.reciprocal_high) for each in shown]
    return Ranking(
        title="how often each puts a source first",
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
            Column("tells", [each.tells for each in shown], "tells none", cell, _TELLS, spared=1),
        ),
        measured="share of cases",
        marks=(
            Mark("span", "limit", "95 % interval", [low for low, _ in ends], [high for _, high in ends]),
            Mark("dot", "own", "a source comes first", top1),
            Mark("line", "control", "a passage drawn by lot", [result.chance] * len(shown)),
        ),
        written="top1",
        axis=(0.0, 1.0),
        faint=frozenset(i for i, each in enumerate(shown) if each.method in CONTROLS),
        chosen=frozenset(i for i, each in enumerate(shown) if each.method == REMOVAL),
    )


def _interval(low: float, high: float, form: Callable[[float], str]) -> str:
    return "" if math.isnan(low) else f"{form(low)} to {form(high)}"


def _cases(result: Referee, whole: bool) -> Ranking:
    shown = result.judged if whole else tuple(each for each in result.judged if not each.right)
    attention = [score.method for score in result.scores].index(ATTENTION)
    ranks = [each.ranks[attention] for each in shown]
    return Ranking(
        title="every case" if whole else "cases in which removal is wrong",
        of="case",
        names=tuple(f"line {each.line} {quoted(each.question)}" for each in shown),
        table=Table(
            Column("answer", [quoted(each.answer) for each in shown], "answer"),
            Column("probability", [each.probability for each in shown], "probable", likely),
            Column("source", [_numbers(each.source) for each in shown], "source"),
            Column("named", [_numbers(each.named) for each in shown], "named", says="by removal"),
            Column("rank", ranks, "by attention", lambda rank: f"{rank:g}", "the place of the source"),
        ),
    )


def _numbers(passages: tuple[int, ...]) -> str:
    return ", ".join(map(str, passages)) or "none"


def _notes(result: Referee) -> Iterator[str]:
    silent = [each.method for each in result.scores if math.isnan(each.top1) and result.sourced]
    if silent:
        yield f"nothing to say in any case: {', '.join(silent)}"
    if left := _left_out(result):
        yield f"not asked (--no-gradients): {', '.join(left)}"
    if result.sourced:
        yield (
            f"of {counted(result.sourced, 'case')} with a source removal names none in {result.missed}, a "
            f"passage that is no source in {result.misnamed}"
        )
    if result.refused:
        lines = ", ".join(str(each.line) for each in result.refused[:8])
        yield f"{counted(len(result.refused), 'line')} could not be asked: {lines}"
    unlikely = sum(each.probability < 0.5 for each in result.judged)
    if unlikely and result.how == "given":
        yield (
            f"in {counted(unlikely, 'case')} the model gives the answer less than 50 %: it would have "
            "answered otherwise, so that what it went by is not asked"
        )
