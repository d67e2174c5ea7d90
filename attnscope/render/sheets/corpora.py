"""Two corpora held against each other: what every head gives more in the second, in how many errors."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import (
    alike,
    counted,
    give_or_take,
    number,
    signed,
    signed_cell,
)
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.command import showing_second
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Block, Curve, Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import Place, attention, named
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Line, Mark, Table, Tint, both_ways
from attnscope.render.sheets import corpora_words as words
from attnscope.render.sheets.corpus import record, usual
from attnscope.render.sheets.corpus_texts import known, length
from attnscope.results import CorpusDifference
from attnscope.results.claims.corpora import ScoresApart
from attnscope.results.claims.relations import Z

_LISTED = 10
_SIDES: tuple[tuple[str, Tint], ...] = (("A", "own"), ("B", "other"))
_FACTS = "measure layer head first second difference error errors limit as_read length_alone"
_tenth, _thousandth = partial(signed, decimals=1), partial(number, decimals=3)
_bare_tenth = partial(number, decimals=1)
_change, _error = partial(signed, decimals=None), partial(give_or_take, decimals=None)
_IN_ERRORS = "in standard errors"


def sheet(result: CorpusDifference, focus: Focus = WHOLE) -> Sheet:
    models = dict.fromkeys(map(model_words, result.provenances))
    a, b = (each.name for each in result.reads)
    others = [each for each in result.measures.values() if each is not result.main]
    in_tokens = result.main.scores.measure == "entropy" and not focus.in_nats
    main, both = _grid(result, result.main), zip("AB", result.verdict_of_each, strict=True)
    shown: tuple[Block, ...] = (
        _ranking(result, result.main, in_tokens),
        main,
        *_measures(result, focus.verbose),
        *_by_length(result, in_tokens),
    )
    nothing = result.nothing and not focus.verbose  # zeros are no evidence: one line says it
    return Sheet(
        title=f"corpora: B minus A, A {a}, B {b}",
        setting=f"{attention(result.kind, result.tower)} · {' and '.join(models)}",
        origins=result.provenances,
        answer=words.answer(result, in_tokens),
        blocks=() if nothing else shown,
        more=(*(shown if nothing else ()), *(_grid(result, each) for each in others)),
        table=lambda: Table.of(_FACTS, _facts(result)),
        control=words.control(result),
        notes=(words.read(result), *words.equal_length(result), *result.notes),
        proof=tuple((each, f"{side} {verdict_words(each)}") for side, each in both),
        main=main,
        next=Next("what do the heads do over B alone?", asked) if (asked := showing_second()) else None,
        record=(*record(result.reads[0], "A "), *record(result.reads[1], "B ")),
    )


def _title(result: CorpusDifference, scores: ScoresApart) -> str:
    equal = " at equal length" if result.equal else ""
    return f"{scores.scores.description.title}: mean over texts{equal}, B minus A"


def _grid(result: CorpusDifference, scores: ScoresApart) -> HeadGrid:
    return HeadGrid(
        title=_title(result, scores),
        layers=result.layers,
        heads=result.heads,
        values=scores.difference,
        scale=Scale.around(scores.difference, ("more in A", "more in B")),
        form=alike(scores.difference, 2, signed_cell),
        companion=Companion.numbers(_IN_ERRORS, scores.reached, partial(signed_cell, decimals=1)),
        beyond=("beyond what chance can explain", scores.beyond),
        absent="-",
    )


def _ranking(result: CorpusDifference, scores: ScoresApart, in_tokens: bool) -> Ranking:
    listed, around = words.ranked(scores), Scale.around(scores.difference)
    places = listed[:_LISTED]
    differences, reached, limits = (
        each_of(values, places) for values in (scores.difference, scores.reached, scores.limit)
    )
    written = words.in_tokens_of if in_tokens else words.thousandth
    both, apart = ("tokens", "entropy in nats") if in_tokens else ("", "")
    equal, title = " at equal length" if result.equal else "", _title(result, scores)
    return Ranking(
        title=f"heads that differ most{equal}" if in_tokens else f"heads that differ most: {title}",
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
            Column(
                "limit",
                limits,
                "needed",
                _bare_tenth,
                "in 1 of 20 comparisons of two samples of one source some head has so many",
                under=apart,
            ),
            *_besides(result, scores, places),
        ),
        measured="standard errors",
        marks=(
            *both_ways(reached, "more in A", "more in B"),
            Mark("tick", "limit", "what chance can explain", [-each for each in limits]),
            Mark("tick", "limit", "", limits),
        ),
        hidden=len(listed) - len(places),
    )


def _besides(result: CorpusDifference, scores: ScoresApart, places: list[Place]) -> Iterator[Column]:
    if result.equal:
        under = "not at equal length"
        alone, as_read = (each_of(values, places) for values in (scores.length_alone, scores.as_read))
        says = "what lengths alone make, over the lengths that both have"
        yield Column("length_alone", alone, "by length alone", _change, says, under=under)
        says = "the difference of the means over all texts, whatever their lengths"
        yield Column("as_read", as_read, "as read", _change, says, spared=1, under=under)


def _measures(result: CorpusDifference, whole: bool) -> Iterator[Ranking]:
    listed = {measure: (each, words.ranked(each)) for measure, each in result.measures.items()}
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


def _facts(result: CorpusDifference) -> Iterator[tuple[object, ...]]:
    for measure, each in result.measures.items():
        for i, j in np.ndindex(each.difference.shape):
            values = (
                *(each.first, each.second, each.difference, each.error, each.reached),
                *(each.limit, each.as_read, each.length_alone),
            )
            yield measure, result.layers[i], result.heads[j], *(float(value[i, j]) for value in values)


def _by_length(result: CorpusDifference, in_tokens: bool) -> Iterator[Curve]:
    scores, classes = result.main, result.lengths
    if len(classes) < 2 or not (listed := words.ranked(scores)):
        return
    best, turned = listed[0], np.exp if in_tokens else np.asarray
    write = words.in_tokens_of if in_tokens else words.thousandth
    own: list[Column] = []
    bands, lines = [], []
    for i, (side, tint) in enumerate(_SIDES):
        mean, error = scores.of_lengths[(i, ..., *best)]
        low, high = (known(turned(mean + sign * Z * error)) for sign in (-1, 1))
        bands.append(Line("band", tint, f"95 % of {side}", low, high))
        lines.append(Line("line", tint, side, known(turned(mean))))
        texts = [each.texts[i] for each in classes]
        own.append(Column(f"{side}_texts", texts, "texts", "{:,}".format, under=side))
        own.append(Column(side, known(mean), "mean", write, under=side))
    (first, off), (second, beyond) = scores.of_lengths[(..., *best)]
    under = "entropy in nats" if in_tokens else ""
    what = "tokens looked at" if in_tokens else scores.scores.description.title
    yield Curve(
        title=f"{named(result, best)} in A and B by the length of texts: {what}",
        of="tokens",
        names=tuple(map(length, classes)),
        table=Table(
            *own,
            Column("difference", known(second - first), "B minus A", _change, under=under),
            Column("error", known(np.hypot(off, beyond)), "± standard error", _error, under=under),
        ),
        places=tuple(sum(each.tokens) / sum(each.texts) for each in classes),
        measured=what,
        lines=(*bands, *lines),
    )
