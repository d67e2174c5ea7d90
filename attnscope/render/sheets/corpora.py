"""Two corpora held against each other: what every head gives more in the second, in how many errors."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import alike, counted, give_or_take, number, signed, signed_cell, with_error
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.command import showing_second
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of, ordered
from attnscope.render.sheet.said import Place, attention, named
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.render.sheets.corpus import record, usual
from attnscope.render.sheets.corpus_words import FLOOR
from attnscope.render.sheets.overview_words import form_of_tokens
from attnscope.results import CorpusDifference
from attnscope.results.claims.corpora import ScoresApart
from attnscope.results.claims.corpus import Case

_LISTED = 10
_LONGER = 1.1  # times the length of the other's texts: what is told of two corpora
_FACTS = "measure layer head first second difference error errors"
_tenth, _thousandth = partial(signed, decimals=1), partial(number, decimals=3)
_change, _error = partial(signed, decimals=None), partial(give_or_take, decimals=None)
_IN_ERRORS = "in standard errors"


def sheet(result: CorpusDifference, focus: Focus = WHOLE) -> Sheet:
    models = dict.fromkeys(map(model_words, result.provenances))
    a, b = (each.name for each in result.reads)
    others = [each for each in result.measures.values() if each is not result.main]
    in_tokens = result.main.scores.measure == "entropy" and not focus.in_nats
    main, both = _grid(result, result.main), zip("AB", result.verdict_of_each, strict=True)
    return Sheet(
        title=f"corpora: B minus A, A {a}, B {b}",
        setting=f"{attention(result.kind, result.tower)} · {' and '.join(models)}",
        origins=result.provenances,
        answer=_answer(result, in_tokens),
        blocks=(_ranking(result, result.main, in_tokens), main, *_measures(result, focus.verbose)),
        more=tuple(_grid(result, each) for each in others),
        table=lambda: Table.of(_FACTS, _facts(result)),
        control=_control(result),
        notes=(_read(result), *result.notes),
        proof=tuple((each, f"{side} {verdict_words(each)}") for side, each in both),
        main=main,
        next=Next("what do the heads do over B alone?", asked) if (asked := showing_second()) else None,
        record=(*record(result.reads[0], "A "), *record(result.reads[1], "B ")),
    )


def ranked(scores: ScoresApart) -> list[Place]:
    """Every head that has a difference, those that differ by most errors first."""
    return ordered(np.abs(scores.reached))


def _title(scores: ScoresApart) -> str:
    return f"{scores.scores.description.title}: mean over texts, B minus A"


def _grid(result: CorpusDifference, scores: ScoresApart) -> HeadGrid:
    return HeadGrid(
        title=_title(scores),
        layers=result.layers,
        heads=result.heads,
        values=scores.difference,
        scale=Scale.around(scores.difference, ("more in A", "more in B")),
        form=alike(scores.difference, 2, signed_cell),
        companion=Companion.numbers(_IN_ERRORS, scores.reached, partial(signed_cell, decimals=1)),
        beyond=(f"more than {number(scores.chance, 1)} standard errors", scores.beyond),
        absent="-",
    )


def _ranking(result: CorpusDifference, scores: ScoresApart, in_tokens: bool) -> Ranking:
    """The heads that differ by most errors, with what chance alone would make of one of them."""
    listed, around = ranked(scores), Scale.around(scores.difference)
    places = listed[:_LISTED]
    differences, reached = (each_of(values, places) for values in (scores.difference, scores.reached))
    written = _in_tokens if in_tokens else _thousandth
    both, apart = ("tokens", "entropy in nats") if in_tokens else ("", "")
    return Ranking(
        title="heads that differ most" if in_tokens else f"heads that differ most: {_title(scores)}",
        of="head",
        names=tuple(named(result, place) for place in places),
        table=Table(
            Column("first", each_of(scores.first, places), "A", written, under=both),
            Column("second", each_of(scores.second, places), "B", written, under=both),
            Column("difference", differences, "B minus A", _change, scale=around, under=apart),
            Column(
                "error",
                each_of(scores.error, places),
                "± standard error",
                _error,
                "of the difference, texts as trials",
                under=apart,
            ),
            Column("errors", reached, _IN_ERRORS, _tenth, "how many of them the difference is", under=apart),
        ),
        measured="standard errors",
        marks=(
            *both_ways(reached, "more in A", "more in B"),
            Mark("line", "limit", "by chance, the largest of so many", [-scores.chance, scores.chance]),
        ),
        hidden=len(listed) - len(places),
    )


def _measures(result: CorpusDifference, whole: bool) -> Iterator[Ranking]:
    """By each measure the head that differs by most errors; of all measures by the usual ones."""
    listed = {measure: (each, ranked(each)) for measure, each in result.measures.items()}
    every = {measure: (each, places[0]) for measure, (each, places) in listed.items() if places}
    wanted = usual(result.measures, result.main.scores.measure, whole)
    best = {measure: found for measure, found in every.items() if measure in wanted}
    differences = [float(each.difference[place]) for each, place in best.values()]
    reached = [float(each.reached[place]) for each, place in best.values()]
    hidden = len(every) - len(best)
    yield Ranking(
        title="the head that differs most by each measure",
        of="measure",
        names=tuple(best),
        table=Table(
            Column("head", [named(result, place) for _, place in best.values()], "head"),
            Column("difference", differences, "B minus A", _change),
            Column("errors", reached, _IN_ERRORS, _tenth),
        ),
        hidden=hidden,
        unshown=f"and {counted(hidden, 'measure')} more (-v)",
    )


def _answer(result: CorpusDifference, in_tokens: bool) -> str:
    """How many heads differ by more than chance makes one of them differ, and the one that does most."""
    scores, case = result.main, result.case
    if case is Case.UNRANKED:
        return "No head has a difference."
    heads, what = counted(len(ranked(scores)), "head"), scores.scores.description.title
    if in_tokens:
        what = "how many tokens they look at"
    if not np.nan_to_num(scores.difference).any():
        return f"The corpora are the same in {what}: no head differs at all."
    most = _most(result, ranked(scores)[0], in_tokens)
    by = f"{number(scores.chance, 1)} standard errors"
    if case is Case.ONE_HEAD:
        told = f"{most}. One head alone is compared, so nothing is chosen by luck."
    elif case is Case.ALIKE:
        told = (
            f"The corpora do not differ in {what}: {len(scores.beyond)} of {heads} by more than {by}, where "
            f"luck alone gives 1. {most}."
        )
    else:
        told = (
            f"{len(scores.beyond)} of {heads} differ in {what} by more than {by}, where luck alone gives 1. "
            f"{most}."
        )
    return " ".join(each for each in (told, _lengths(result), _few(result)) if each)


def _most(result: CorpusDifference, best: Place, in_tokens: bool) -> str:
    """`L1 H8 differs most: 8.2 over A, 9.4 over B (entropy +.146 ±.038 nats, 3.9 standard errors)`."""
    scores = result.main
    write = _in_tokens if in_tokens else _thousandth
    first, second = (write(float(each[best])) for each in (scores.first, scores.second))
    change = with_error(float(scores.difference[best]), float(scores.error[best]))
    change = f"entropy {change} nats" if in_tokens else change
    alone = "differs" if result.case is Case.ONE_HEAD else "differs most"
    errors = number(abs(float(scores.reached[best])), 1)
    return (
        f"{named(result, best)} {alone}: {first} over A, {second} over B ({change}, {errors} standard errors)"
    )


def _in_tokens(entropy: float) -> str:
    return form_of_tokens(float(np.exp(entropy)))


def _few(result: CorpusDifference) -> str:
    """How few texts one of them has."""
    few = [
        f"{side} has only {counted(read.texts, 'text')}"
        for side, read in zip("AB", result.reads, strict=True)
        if read.texts < FLOOR
    ]
    return f"{' and '.join(few)}." if few else ""


def _lengths(result: CorpusDifference) -> str:
    """That the texts of one are longer, which changes what heads do by itself; empty where they are not."""
    a, b = (read.tokens / max(read.texts, 1) for read in result.reads)
    if max(a, b) < _LONGER * min(a, b):
        return ""
    return (
        f"Texts of A have {number(a, 1)} tokens in the mean, those of B {number(b, 1)}: that alone may do it."
    )


def _control(result: CorpusDifference) -> str:
    """What is held against what: the scatter over texts, the largest of so many heads."""
    return "how far the texts of one corpus scatter, and how far the luckiest of so many heads would get"


def _read(result: CorpusDifference) -> str:
    """How much each of them is."""
    lengths = [read.tokens / max(read.texts, 1) for read in result.reads]
    texts = [counted(read.texts, "text") for read in result.reads]
    both = zip("AB", texts, lengths, strict=True)
    return " · ".join(f"{side} {count} of {number(mean, 1)} tokens in the mean" for side, count, mean in both)


def _facts(result: CorpusDifference) -> Iterator[tuple[object, ...]]:
    """A row for each measure and head."""
    for measure, each in result.measures.items():
        for i, j in np.ndindex(each.difference.shape):
            values = (each.first, each.second, each.difference, each.error, each.reached)
            yield measure, result.layers[i], result.heads[j], *(float(value[i, j]) for value in values)
