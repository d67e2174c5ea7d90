"""The sheets of `cite`: passages ranked for each sentence, and methods compared over cases."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.numbers import cell, counted, exact, likely, number, percent, signed_cell
from attnscope.render.sheet.blocks import Matrix, Names, Passage, Ranking
from attnscope.render.sheet.said import name, proof, text
from attnscope.render.sheet.sheet import Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, as_written, both_ways
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results.claims.attributed import ByGradients
from attnscope.results.claims.ranking import AHEAD, LEVEL, times
from attnscope.verbs.cite.result import (
    ATTENTION,
    BY_NORM,
    CONTROLS,
    COPYING,
    GRADIENT,
    INTEGRATED,
    LEAST,
    REMOVAL,
    WEIGHED,
    Case,
    Citation,
    Method,
    Referee,
    floor_of,
)

_SHOWN = 8  # passages of a sentence
_SENTENCES = 3  # that have a ranking of their own where there are more
_SPARED = dict(zip((COPYING, WEIGHED, BY_NORM, INTEGRATED, GRADIENT), range(1, 6), strict=True))
_LONGEST, _IN_SENTENCE = 44, 32  # characters of a passage or a sentence in a heading, and in a sentence
_FOLLOWS = 0.5  # R² of a fit below which it foretells little
_RARE = 0.001  # probability below which it is told how many times it falls
_UNLIKELY = 0.05  # probability of a token, on average, below which a model would hardly write a sentence


def sheet(result: Citation | Referee, focus: Focus = WHOLE) -> Sheet:
    if isinstance(result, Referee):
        return _referee(result, focus)
    say, several, whole = said(result), len(result.statements) > 1, focus.verbose
    first = range(len(result.statements) if whole else min(len(result.statements), _SENTENCES))
    rankings = tuple(_ranking(result, say, i, whole) for i in first)
    matrix, keys = _matrix(result, say), tuple(each.replace(" ", "_") for each in result.methods)
    answer = () if result.answer_tokens is None else text(result.answer_tokens)
    return saying(
        say,
        blocks=(*((matrix,) if several else ()), *rankings, _found(result, say)),
        table=lambda: Table.of(("sentence", "passage", "said", "text", *keys), _rows(result)),
        texts=(*text(result.tokens), *answer),
        notes=(*result.notes, *say.lines("notes")),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=tuple(proof(result.certified, "head")),
        main=matrix if several else rankings[0],
        record=(("kind", result.kind.value), ("tower", result.tower), ("answer", result.answer)),
        more=tuple(_passage(result, say, i) for i in first),
    )


def _rows(result: Citation) -> Iterator[tuple[object, ...]]:
    for i, statement in enumerate(result.statements):
        for j, passage in enumerate(result.passages):
            numbers = (exact(float(each[i, j])) for each in result.methods.values())
            yield (i, j, statement.text, passage.text, *numbers)


def _ranking(result: Citation, say: Said, i: int, whole: bool) -> Ranking:
    order = result.order(i)
    shown = order if whole or len(order) <= _SHOWN + 1 else order[:_SHOWN]
    own, hidden = result.statements[i], len(order) - len(shown)
    lost = [float(result.lost[i, each]) for each in shown]
    columns = [
        _column(say, method, [float(values[i, each]) for each in shown])
        for method, values in result.methods.items()
    ]
    then = [None if math.isnan(each) else math.exp(min(own.log_probability - each, 0.0)) for each in lost]
    columns.append(Column("probability", then, say("then"), likely, say("says_then")))
    ends = [-result.floor_of(i)] * len(shown), [result.floor_of(i)] * len(shown)
    return Ranking(
        title=say("ranking_title", quoted(own.text), own.probability),
        of="passage",
        names=tuple(f"{each} {quoted(result.passages[each].text)}" for each in shown),
        table=Table(*columns),
        measured="nats lost",
        marks=(
            *both_ways(lost, say("won_mark") if min(lost) < 0 else "", say("lost_mark"), costs=True),
            Mark("span", "control", say("floor_mark"), *ends, low=True),
        ),
        written=REMOVAL,
        chosen=frozenset((at for at, each in enumerate(shown) if each in result.sources[i])),
        hidden=hidden,
        unshown=f"{counted(hidden, 'more passage')}{('' if whole else ' (-v)')}",
    )


def _column(say: Said, method: Method, values: list[float]) -> Column:
    form = signed_cell if any(value < 0 for value in values) or method == REMOVAL else number
    heading, says, under = say("heading", method), say("says", method), say("given_by") * (method != REMOVAL)
    return Column(method, values, heading, form, says, spared=_SPARED.get(method, 0), under=under)


def _found(result: Citation, say: Said) -> Ranking:
    known = [i for i, named in enumerate(result.sources) if named]
    methods = [each for each in result.methods if each != REMOVAL]
    firsts = {each: [result.order(i, each)[0] for i in range(len(result.statements))] for each in methods}
    told = {
        each: f"{sum(firsts[each][i] in result.sources[i] for i in known)} of {len(known)}"
        if len(result.statements) > 1
        else ("yes" if firsts[each][0] in result.sources[0] else "no")
        for each in methods
    }
    return Ranking(
        title=say("methods_title"),
        of="method",
        names=tuple(methods),
        table=Table(
            Column("first", [", ".join(map(str, firsts[each])) for each in methods], "passage"),
            Column(
                "found", [told[each] if known else "" for each in methods], "source?", says=say("says_source")
            ),
        ),
    )


def _matrix(result: Citation, say: Said) -> Matrix:
    return Matrix(
        title=say("matrix_title"),
        words=("sentence", "passage"),
        rows=Names(
            tuple(quoted(each.text) for each in result.statements), tuple(range(len(result.statements)))
        ),
        columns=Names(
            tuple(quoted(each.text) for each in result.passages), tuple(range(len(result.passages)))
        ),
        values=result.lost,
        scale=Scale.around(result.lost, costs=True),
        form=signed_cell,
        measured="nats lost",
        marked=tuple((i, each) for i, named in enumerate(result.sources) for each in named),
        blank=say("blank"),
    )


def _passage(result: Citation, say: Said, i: int) -> Passage:
    values = np.full(len(result.tokens), np.nan)
    for passage, lost in zip(result.passages, result.lost[i], strict=True):
        values[list(passage.positions)] = lost
    chosen = {place for each in result.sources[i] for place in result.passages[each].positions}
    title, scale = say("passage_title", quoted(result.statements[i].text)), Scale.around(values, costs=True)
    return Passage(title, result.tokens, values, scale, signed_cell, frozenset(chosen))


def quoted(text: str, longest: int = _LONGEST) -> str:
    """The beginning of a text of a sentence or a passage, in quotes."""
    return f"“{settled(fit(' '.join(text.split()), longest))}”"


def said(result: Citation) -> Said:
    """A `Said` that fills the sentence templates of `cite` with the facts of this result."""
    i, cases = result.shown, result.cases
    own, sources, lost = result.statements[i], result.sources[i], result.lost[i]
    given = result.methods[ATTENTION][i]
    first = result.order(i, ATTENTION)
    most, others = int(np.nanargmax(lost)), int((~np.isnan(result.lost[0])).sum()) - 1
    candidates = sources or (own.candidates if result.case is Case.NONE else (most,))
    floor = floor_of(lost, candidates, own.controls)
    largest, needed = float(lost[most]), times(1, others)
    usual = [math.exp(each.log_probability / max(len(each.positions), 1)) for each in result.statements]
    absent = dict[str, list[str]]()
    for column in result.columns:
        if column.values is None:
            absent.setdefault(column.absent, []).append(column.method)

    def falls(by: float) -> dict[str, object]:
        after = math.exp(min(own.log_probability - by, 0.0))
        rare = own.probability < _RARE
        return {"lost": by, "after": after, "factor": math.exp(min(abs(by), 500.0)), "rare": rare}

    facts = {
        "answer": quoted(result.answer),
        "said": quoted(own.text, _IN_SENTENCE),
        "before": own.probability,
        "sentences": len(cases),
        "counts": [(case, cases.count(case)) for case in Case if case in cases] if cases[1:] else [],
        # the passages
        "passage_count": len(result.passages),
        "others": others,
        "sources": sources,
        "source": quoted(result.passages[sources[0]].text, _IN_SENTENCE) if len(sources) == 1 else "",
        "least": falls(min((float(lost[one]) for one in sources), default=0.0)),
        "all": falls(own.without_all),
        "most": most,
        "alone": falls(largest),
        "floor": math.exp(min(floor, 500.0)),
        "ahead": largest / floor if floor and largest >= max(LEAST, AHEAD * floor) else None,
        "luck": needed,
        # what attention says
        "first": first[0],
        "given": float(given[first[0]]),
        "given_source": float(given[sources[0]]) if sources else None,
        "same": set(first[: len(sources)]) == set(sources),
        # how it was found out
        "halves": max((len(each.controls) for each in result.statements), default=0),
        "kept": quoted(result.kept) if result.kept else "",
        "fit": None if result.weights is None else _fit([each.r2 for each in result.statements]),
        "unlikely": [(number, each) for number, each in enumerate(usual) if each < _UNLIKELY],
        "absent": [(methods, why) for why, methods in absent.items()],
        "copying": [name(*each) for each in result.copying],
        "half": math.exp(LEAST),
        "level": f"{1 / LEVEL:.0f}",
    }
    return Said("cite", result, facts)


def _fit(every: Sequence[float]) -> dict[str, object]:
    """Range of the fits' R² on held-out subsets; `least` and `most` are None where none is known."""
    r2 = [each for each in every if not math.isnan(each)]
    return {
        "least": f"{min(r2):.2f}" if r2 else None,
        "most": f"{max(r2):.2f}" if r2 else None,
        "several": len(r2) > 1,
        "poor": bool(r2) and min(r2) < _FOLLOWS,
    }


_WAY_COLUMNS = "method cases top1 top1_low top1_high reciprocal reciprocal_low reciprocal_high tells"


def _referee(result: Referee, focus: Focus) -> Sheet:
    """The sheet of methods side by side: how often each ranks a source first."""
    say = referee_said(result)
    ranking, cases = _ways(result, say), _cases(result, say, focus.verbose)
    return saying(
        say,
        blocks=(ranking, *((cases,) if focus.verbose else ())),
        table=lambda: Table.of(
            _WAY_COLUMNS,
            (
                (each.method, each.cases, *(exact(getattr(each, name)) for name in _WAY_COLUMNS.split()[2:]))
                for each in result.scores
            ),
        ),
        notes=tuple(say.lines("notes")),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=tuple(proof(result.certified, "head", say("proof"))),
        main=ranking,
        record=(("kind", result.kind.value), ("tower", result.tower), ("file", result.file)),
        more=() if focus.verbose else (cases,),
    )


def referee_said(result: Referee) -> Said:
    """A `Said` that fills the sentence templates of `cite --cases` with the facts of this result."""
    asked = [each.method for each in result.scores]
    methods = [each for each in asked if each not in (REMOVAL, *CONTROLS)]
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
        "left": [] if {*ByGradients} & {*asked} else [Method(each) for each in ByGradients],
        "refused": [each.line for each in result.refused],
        "unlikely": sum(each.probability < 0.5 for each in result.judged) if result.how == "given" else 0,
    }
    return Said("referee", result, facts)


def _ways(result: Referee, say: Said) -> Ranking:
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
