"""Two corpora held against each other: what every head gives more in the second, in how many errors."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import alike, counted, give_or_take, number, signed, signed_cell, with_error
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of, ordered
from attnscope.render.sheet.said import Place, attention, named
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.render.sheets.corpus import record
from attnscope.results import CorpusDifference
from attnscope.results.claims.corpus import ScoresApart

_LISTED = 10
_LONGER = 1.1  # times the length of the other's texts: what is told of two corpora
_FACTS = "measure layer head first second difference error errors"
_tenth, _thousandth = partial(signed, decimals=1), partial(number, decimals=3)
_change, _error = partial(signed, decimals=None), partial(give_or_take, decimals=None)


def sheet(result: CorpusDifference, focus: Focus = WHOLE) -> Sheet:
    models = dict.fromkeys(map(model_words, result.provenances))
    a, b = (each.name for each in result.reads)
    others = [each for each in result.measures.values() if each is not result.main]
    main, both = _grid(result, result.main), zip("AB", result.verdict_of_each, strict=True)
    return Sheet(
        title=f"corpora: B less A, A {a}, B {b}",
        setting=f"{attention(result.kind, result.tower)} · {' and '.join(models)}",
        origins=result.provenances,
        answer=_answer(result, result.main),
        blocks=(_ranking(result, result.main), main, _measures(result)),
        more=tuple(_grid(result, each) for each in others),
        table=lambda: Table.of(_FACTS, _facts(result)),
        control=_control(result),
        notes=(_read(result), *result.notes),
        proof=tuple((each, f"{side} {verdict_words(each)}") for side, each in both),
        main=main,
        record=(*record(result.reads[0], "A "), *record(result.reads[1], "B ")),
    )


def ranked(scores: ScoresApart) -> list[Place]:
    """Every head that has a difference, those that differ by most errors first."""
    return ordered(np.abs(scores.reached))


def _beyond(scores: ScoresApart) -> frozenset[Place]:
    """The heads that differ by more than chance makes one of them differ."""
    return frozenset(place for place in ranked(scores) if abs(scores.reached[place]) > scores.chance)


def _title(scores: ScoresApart) -> str:
    return f"{scores.scores.description.title}: mean over texts, B less A"


def _grid(result: CorpusDifference, scores: ScoresApart) -> HeadGrid:
    return HeadGrid(
        title=_title(scores),
        layers=result.layers,
        heads=result.heads,
        values=scores.difference,
        scale=Scale.around(scores.difference, ("more in A", "more in B")),
        form=alike(scores.difference, 2, signed_cell),
        companion=Companion.numbers("so many standard errors of the difference", scores.reached, _errors),
        beyond=(f"more than {number(scores.chance, 1)} errors", _beyond(scores)),
        absent="-",
    )


def _errors(reached: float) -> str:
    return f"{_tenth(reached)} se"


def _ranking(result: CorpusDifference, scores: ScoresApart) -> Ranking:
    """The heads that differ by most errors, with what chance alone would make of one of them."""
    listed, around = ranked(scores), Scale.around(scores.difference)
    places = listed[:_LISTED]
    differences, reached = (each_of(values, places) for values in (scores.difference, scores.reached))
    return Ranking(
        title=f"heads that differ most: {_title(scores)}",
        of="head",
        names=tuple(named(result, place) for place in places),
        table=Table(
            Column("first", each_of(scores.first, places), "A", _thousandth),
            Column("second", each_of(scores.second, places), "B", _thousandth),
            Column("difference", differences, "B less A", _change, scale=around),
            Column(
                "error", each_of(scores.error, places), "error", _error, "of the difference, texts as trials"
            ),
            Column("errors", reached, "errors", _tenth, "how many of them it is"),
        ),
        measured="standard errors",
        marks=(
            *both_ways(reached, "more in A", "more in B"),
            Mark("line", "limit", "by chance, the largest of so many", [-scores.chance, scores.chance]),
        ),
        hidden=len(listed) - len(places),
    )


def _measures(result: CorpusDifference) -> Ranking:
    """By each measure the head that differs by most errors."""
    listed = {measure: (each, ranked(each)) for measure, each in result.measures.items()}
    best = {measure: (each, places[0]) for measure, (each, places) in listed.items() if places}
    differences = [float(each.difference[place]) for each, place in best.values()]
    reached = [float(each.reached[place]) for each, place in best.values()]
    return Ranking(
        title="the head that differs most by each measure",
        of="measure",
        names=tuple(best),
        table=Table(
            Column("head", [named(result, place) for _, place in best.values()], "head"),
            Column("difference", differences, "B less A", _change),
            Column("errors", reached, "errors", _tenth),
        ),
    )


def _answer(result: CorpusDifference, scores: ScoresApart) -> str:
    """The head that differs by most errors, and how many do by more than chance makes one of them differ."""
    if not (listed := ranked(scores)):
        return "No head has a difference."
    best = listed[0]
    first, second = (_thousandth(float(each[best])) for each in (scores.first, scores.second))
    change = with_error(float(scores.difference[best]), float(scores.error[best]))
    title, beyond = scores.scores.description.title, len(_beyond(scores))
    most = (
        f"{named(result, best)} most: {first} over A and {second} over B ({change}, "
        f"{_tenth(float(scores.reached[best]))} errors)"
    )
    if np.isnan(scores.chance):
        told = f"One head is compared in {title}: {most.replace(' most', '', 1)}."
    elif beyond <= 1:
        told = (
            f"The corpora do not differ in {title}: {beyond} of {len(listed)} heads by more than "
            f"{number(scores.chance, 1)} standard errors, where luck alone gives 1. {most}."
        )
    else:
        told = (
            f"{beyond} of {len(listed)} heads differ in {title} by more than {number(scores.chance, 1)} "
            f"standard errors, where luck alone gives 1: {most}."
        )
    return " ".join(each for each in (told, _lengths(result)) if each)


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
    return "how texts scatter within each corpus, and the largest of so many heads by luck"


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
