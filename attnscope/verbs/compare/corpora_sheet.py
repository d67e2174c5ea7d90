"""The sheet of two compared corpora: each head's difference, in standard errors."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.kit.numbers import alike, give_or_take, number, signed, signed_cell
from attnscope.render.kit.words import model_words, verdict_words
from attnscope.render.sheet.blocks import Block, Curve, Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import Place, attention, named
from attnscope.render.sheet.sheet import Sheet, saying
from attnscope.render.sheet.table import Column, Line, Mark, Scale, Table, Tint, both_ways
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.sheets.overview import form_of_tokens
from attnscope.render.words import Said
from attnscope.results.claims.ranking import Z
from attnscope.results.scores import ordered
from attnscope.verbs.compare.corpora_result import CorpusDifference, ScoresApart
from attnscope.verbs.corpus.result import FEWEST
from attnscope.verbs.corpus.sheet import record, usual
from attnscope.verbs.corpus.words_sheet import FLOOR, known, length

_LISTED = 10
_SIDES: tuple[tuple[str, Tint], ...] = (("A", "own"), ("B", "other"))
_FACTS = "measure layer head first second difference error errors limit as_read length_alone"
_tenth, _bare_tenth = partial(signed, decimals=1), partial(number, decimals=1)
_change, _error = partial(signed, decimals=None), partial(give_or_take, decimals=None)


def sheet(result: CorpusDifference, focus: Focus = WHOLE) -> Sheet:
    say, models = said(result, focus.in_nats), dict.fromkeys(map(model_words, result.provenances))
    others = [each for each in result.measures.values() if each is not result.main]
    main, both = _grid(result, result.main, say), zip("AB", result.verdict_of_each, strict=True)
    ranking, measures = _ranking(result, say), _measures(result, focus.verbose, say)
    shown: tuple[Block, ...] = (ranking, main, measures, *_by_length(result, say))
    nothing = result.nothing and not focus.verbose  # zeros are no evidence: one line says it
    return saying(
        say,
        setting=f"{attention(result.kind, result.tower)} · {' and '.join(models)}",
        origins=result.provenances,
        blocks=() if nothing else shown,
        more=(*(shown if nothing else ()), *(_grid(result, each, say) for each in others)),
        table=lambda: Table.of(_FACTS, _rows(result)),
        proof=tuple((each, f"{side} {verdict_words(each)}") for side, each in both),
        main=main,
        record=(*record(result.reads[0], "A "), *record(result.reads[1], "B ")),
    )


def _grid(result: CorpusDifference, scores: ScoresApart, say: Said) -> HeadGrid:
    return HeadGrid(
        title=say("grid_title", scores.scores.description.title),
        layers=result.layers,
        heads=result.heads,
        values=scores.difference,
        scale=Scale.around(scores.difference, ("more in A", "more in B")),
        form=alike(scores.difference, 2, signed_cell),
        companion=Companion.numbers(say("in_errors"), scores.reached, partial(signed_cell, decimals=1)),
        beyond=(say("beyond_chance"), scores.beyond),
        absent="-",
    )


def _ranking(result: CorpusDifference, say: Said) -> Ranking:
    scores, in_nats, listed = result.main, say("in_nats"), ranked(result.main)
    places = listed[:_LISTED]
    first, second, differences, error, reached, limits = (
        each_of(values, places)
        for values in (
            *(scores.first, scores.second, scores.difference),
            *(scores.error, scores.reached, scores.limit),
        )
    )
    both, around = "tokens" if in_nats else "", Scale.around(scores.difference)
    write = partial(written, tokens=bool(in_nats))
    columns = [
        Column("first", first, "A", write, under=both),
        Column("second", second, "B", write, under=both),
        Column("difference", differences, "B minus A", _change, scale=around, under=in_nats),
        Column("error", error, "± standard error", _error, say("says_error"), under=in_nats),
        Column("errors", reached, say("in_errors"), _tenth, say("says_errors"), under=in_nats),
        Column("limit", limits, "needed", _bare_tenth, say("says_limit"), under=in_nats),
    ]
    if result.equal:
        under = say("not_equal")
        alone, as_read = (each_of(values, places) for values in (scores.length_alone, scores.as_read))
        columns += [
            Column("length_alone", alone, "by length alone", _change, say("says_alone"), under=under),
            Column("as_read", as_read, "as read", _change, say("says_as_read"), spared=1, under=under),
        ]
    return Ranking(
        title=say("ranking_title"),
        of="head",
        names=tuple(named(result, place) for place in places),
        table=Table(*columns),
        measured="standard errors",
        marks=(
            *both_ways(reached, "more in A", "more in B"),
            Mark("tick", "limit", say("limit_mark"), [-each for each in limits]),
            Mark("tick", "limit", "", limits),
        ),
        hidden=len(listed) - len(places),
    )


def _measures(result: CorpusDifference, whole: bool, say: Said) -> Ranking:
    listed = {measure: (each, ranked(each)) for measure, each in result.measures.items()}
    every = {measure: (each, places[0]) for measure, (each, places) in listed.items() if places}
    wanted = usual(result.measures, result.main.scores.measure, whole)
    best = {measure: found for measure, found in every.items() if measure in wanted}
    hidden = len(every) - len(best)
    differences = [float(each.difference[place]) for each, place in best.values()]
    reached = [float(each.reached[place]) for each, place in best.values()]
    return Ranking(
        title=say("by_measure"),
        of="measure",
        names=tuple(best),
        table=Table(
            Column("head", [named(result, place) for _, place in best.values()], "head"),
            Column("difference", differences, "B minus A", _change),
            Column("errors", reached, say("in_errors"), _tenth),
        ),
        hidden=hidden,
        unshown=say("more_measures", hidden),
    )


def _rows(result: CorpusDifference) -> Iterator[tuple[object, ...]]:
    names = ["first", "second", "difference", "error", "reached", "limit", "as_read", "length_alone"]
    for measure, each in result.measures.items():
        for i, j in np.ndindex(each.difference.shape):
            values = (float(getattr(each, name)[i, j]) for name in names)
            yield measure, result.layers[i], result.heads[j], *values


def _by_length(result: CorpusDifference, say: Said) -> Iterator[Curve]:
    scores, classes = result.main, result.lengths
    if len(classes) < 2 or not (listed := ranked(scores)):
        return
    best, in_nats = listed[0], say("in_nats")
    turned = np.exp if in_nats else np.asarray
    write = partial(written, tokens=bool(in_nats))
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
    yield Curve(
        title=say("length_title"),
        of="tokens",
        names=tuple(map(length, classes)),
        table=Table(
            *own,
            Column("difference", known(second - first), "B minus A", _change, under=in_nats),
            Column("error", known(np.hypot(off, beyond)), "± standard error", _error, under=in_nats),
        ),
        places=tuple(sum(each.tokens) / sum(each.texts) for each in classes),
        measured=say("what"),
        lines=(*bands, *lines),
    )


_LONGER = 1.1  # times the length of the other's texts: what is said of two corpora
_MANY = 0.5  # of the texts: where fewer are compared the answer says so


def ranked(scores: ScoresApart) -> list[Place]:
    """Indices of the heads that have a difference, by errors over the errors needed, largest first."""
    return ordered(np.abs(scores.reached) / np.where(np.isnan(scores.limit), 1.0, scores.limit))


def written(value: float, tokens: bool) -> str:
    """A mean as a table cell; an entropy as a number of `tokens`."""
    return form_of_tokens(float(np.exp(value))) if tokens else number(value, 3)


def said(result: CorpusDifference, in_nats: bool = False) -> Said:
    """A `Said` for two corpora: sentence templates and facts; entropy counts tokens unless `in_nats`."""
    tokens = result.main.scores.measure == "entropy" and not in_nats
    scores, described, order = result.main, result.main.scores.description, ranked(result.main)
    best = order[0] if order else None
    a, b = result.tokens
    compared = [each for each in result.lengths if each.shared or not result.equal]
    texts = [[sum(each.texts[i] for each in of) for of in (compared, result.lengths)] for i in (0, 1)]
    shares = [(side, some / max(every, 1)) for side, (some, every) in zip("AB", texts, strict=True)]
    models = [each.model for each in result.provenances]
    facts = {
        # what was compared
        "tokens": tokens,
        "measure": described,
        "sides": [
            {
                "side": side,
                "read": read,
                "model": model,
                "compared": round(share * read.texts),
                "share": share,
                "mean": read.tokens / max(read.texts, 1),
            }
            for (side, share), read, model in zip(shares, result.reads, models, strict=True)
        ],
        "models": len({*models}),
        "floor": FLOOR,
        # what came out
        "heads": len(order),
        "best": best and named(result, best),
        "first": best and written(float(scores.first[best]), tokens),
        "second": best and written(float(scores.second[best]), tokens),
        "errors": best and float(scores.reached[best]),
        "differing": bool(np.nan_to_num(scores.difference).any()),
        # how long the texts are
        "shared": [each for each in result.lengths if each.shared],
        "fewest": FEWEST,
        "few_shared": [each for each in shares if result.equal and each[1] < _MANY],
        "longer": not result.equal and max(a, b) >= _LONGER * min(a, b),
        "tokens_a": a,
        "tokens_b": b,
    }
    return Said("corpora", result, facts)
