"""Which passage each sentence of an answer came from: what it loses without them, and what attention says."""

import math
from collections.abc import Iterator

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import counted, likely, number, signed_cell
from attnscope.render.sheet.blocks import Matrix, Names, Ranking
from attnscope.render.sheet.drawings import Passage
from attnscope.render.sheet.said import proof, setting, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.render.sheets import citation_words as words
from attnscope.results.claims.citation import (
    BY_NORM,
    COPYING,
    GRADIENT,
    INTEGRATED,
    REMOVAL,
    WEIGHED,
    Citation,
    Method,
)

_SHOWN = 8  # passages of a sentence
_SENTENCES = 3  # that have a ranking of their own where there are more
_SPARED = dict(zip((COPYING, WEIGHED, BY_NORM, INTEGRATED, GRADIENT), range(1, 6), strict=True))


def sheet(result: Citation, focus: Focus = WHOLE) -> Sheet:
    several, whole = len(result.statements) > 1, focus.verbose
    first = range(len(result.statements) if whole else min(len(result.statements), _SENTENCES))
    rankings = tuple(_ranking(result, i, whole) for i in first)
    matrix = _matrix(result)
    answer = () if result.answer_tokens is None else text(result.answer_tokens)
    return Sheet(
        title=f"which passage {words.quoted(result.answer)} came from",
        setting=setting(result),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=(*((matrix,) if several else ()), *rankings, _found(result)),
        table=lambda: Table.of(("sentence", "passage", "said", "text", *_keys(result)), _facts(result)),
        texts=(*text(result.tokens), *answer),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=tuple(words.legend(result)),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=tuple(proof(result.certified, "head")),
        main=matrix if several else rankings[0],
        record=(("kind", result.kind.value), ("tower", result.tower), ("answer", result.answer)),
        more=tuple(_passage(result, i) for i in first),
    )


def _keys(result: Citation) -> tuple[str, ...]:
    return tuple(each.replace(" ", "_") for each in result.methods)


def _facts(result: Citation) -> Iterator[tuple[object, ...]]:
    """A row for every sentence with every passage."""
    for i, statement in enumerate(result.statements):
        for j, passage in enumerate(result.passages):
            numbers = (exact(float(each[i, j])) for each in result.methods.values())
            yield (i, j, statement.text, passage.text, *numbers)


def _named(result: Citation, passage: int) -> str:
    return f"{passage} {words.quoted(result.passages[passage].text)}"


def _ranking(result: Citation, i: int, whole: bool) -> Ranking:
    """The passages of a sentence: largest losses first, beside what every method gives them."""
    order = result.order(i)
    shown = order if whole or len(order) <= _SHOWN + 1 else order[:_SHOWN]
    own, hidden = result.statements[i], len(order) - len(shown)
    lost = [float(result.lost[i, each]) for each in shown]
    columns = [
        _column(method, [float(values[i, each]) for each in shown])
        for method, values in result.methods.items()
    ]
    then = [None if math.isnan(each) else math.exp(min(own.log_probability - each, 0.0)) for each in lost]
    columns.append(Column("probability", then, "answer then", likely, "how probable the sentence then is"))
    floor = result.floor_of(i)
    return Ranking(
        title=f"{words.quoted(own.text)} ({likely(own.probability)}): what it loses without each passage",
        of="passage",
        names=tuple(_named(result, each) for each in shown),
        table=Table(*columns),
        measured="nats lost",
        marks=(
            *both_ways(
                lost, "more probable without it" if min(lost) < 0 else "", "lost without it", costs=True
            ),
            Mark(
                "span",
                "control",
                "lost or won without anything else, at most",
                [-floor] * len(shown),
                [floor] * len(shown),
                low=True,
            ),
        ),
        written=REMOVAL,
        chosen=frozenset(at for at, each in enumerate(shown) if each in result.sources[i]),
        hidden=hidden,
        unshown=f"{counted(hidden, 'more passage')}{'' if whole else ' (-v)'}",
    )


def _column(method: Method, values: list[float]) -> Column:
    """What a method gives to the passages that are shown."""
    form = signed_cell if any(value < 0 for value in values) or method == REMOVAL else number
    under = "" if method == REMOVAL else "what is given by"
    heading = words.HEADINGS.get(method, method)
    return Column(
        method, values, heading, form, words.SAYS[method], spared=_SPARED.get(method, 0), under=under
    )


def _found(result: Citation) -> Ranking:
    """What each method names, beside what removing does."""
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
        title="what each would name alone",
        of="method",
        names=tuple(methods),
        table=Table(
            Column("first", [", ".join(map(str, firsts[each])) for each in methods], "passage"),
            Column(
                "found",
                [told[each] if known else "" for each in methods],
                "source?",
                says="whether that is a passage that the sentence comes from, by removal",
            ),
        ),
    )


def _matrix(result: Citation) -> Matrix:
    """Sentences by passages: what each loses without each."""
    return Matrix(
        title="what each sentence loses without each passage, in nats",
        words=("sentence", "passage"),
        rows=Names(
            tuple(words.quoted(each.text) for each in result.statements), tuple(range(len(result.statements)))
        ),
        columns=Names(
            tuple(words.quoted(each.text) for each in result.passages), tuple(range(len(result.passages)))
        ),
        values=result.lost,
        scale=Scale.around(result.lost, costs=True),
        form=signed_cell,
        measured="nats lost",
        marked=tuple((i, each) for i, named in enumerate(result.sources) for each in named),
        blank="not taken away alone",
    )


def _passage(result: Citation, i: int) -> Passage:
    """The text, each passage on the shade of what the sentence loses without it."""
    values = np.full(len(result.tokens), np.nan)
    for passage, lost in zip(result.passages, result.lost[i], strict=True):
        values[list(passage.positions)] = lost
    chosen = {place for each in result.sources[i] for place in result.passages[each].positions}
    title = f"what {words.quoted(result.statements[i].text)} loses without each passage, in nats"
    return Passage(
        title, result.tokens, values, Scale.around(values, costs=True), signed_cell, frozenset(chosen)
    )
