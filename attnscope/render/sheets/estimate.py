"""What a corpus will cost: what was measured of some of its texts beside what is calculated for all."""

import math
from collections.abc import Iterator
from functools import partial

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, percent, significant
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.render.sheets.outline_words import amount, count_words, time_words
from attnscope.results.claims.estimate import Estimate


def sheet(result: Estimate, focus: Focus = WHOLE) -> Sheet:
    """Term by term, in the order of the work."""
    first, more = result.files[0], len(result.files) - 1
    files = f"{first} and {more} more" if more else first
    return Sheet(
        title=f"what the corpus {files} will cost",
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(_terms(result),),
        table=lambda: _table(result),
        notes=tuple(_notes(result)),
        about_proof=True,
        untouched="an estimate: nothing of it is kept",
        summary=(time_words(result.wall), _of_cores(result)),
    )


def _answer(result: Estimate) -> str:
    where = counted(result.workers, "worker")
    if result.machines > 1:
        where = f"{result.machines} machines of {where} each"
    return (
        f"About {time_words(result.wall)} on {where}, {_of_cores(result)} in all: {_tokens(result)} in "
        f"{count_words(round(result.texts))} texts."
    )


def _of_cores(result: Estimate) -> str:
    hours = result.seconds / 3600
    return f"{significant(hours)} core hours" if hours >= 1 else f"{time_words(result.seconds)} of a core"


def _tokens(result: Estimate) -> str:
    return f"{count_words(round(result.tokens))} tokens"


def _count(value: float) -> str:
    return count_words(round(value)) if value >= 1000 else significant(value, 3)


def _terms(result: Estimate) -> Ranking:
    terms, whole = result.terms, result.seconds
    return Ranking(
        title="seconds of a core: measured for one, calculated for all",
        of="what is done",
        names=tuple(term.name for term in terms),
        table=Table(
            Column("measured", [time_words(term.seconds) for term in terms], "measured", as_written),
            Column("unit", [f"a {term.unit}" for term in terms], "for"),
            Column("count", [_count(term.count) for term in terms], "x how many", as_written),
            Column("whole", [time_words(term.whole) for term in terms], "calculated", as_written),
            Column("share", [percent(term.whole / whole) for term in terms], "share", as_written),
        ),
    )


def _notes(result: Estimate) -> Iterator[str]:
    size, sampled = partial(amount, unit="B"), result.sampled
    texts = f"{counted(sampled.texts, 'text')} of {sampled.tokens:,} tokens in all"
    yield f"measured: {texts}, out of {size(sampled.bytes)} of the files' {size(result.size)}"
    spread = "" if math.isnan(sampled.error) else f", ± {percent(sampled.error)} as their lengths differ"
    yield f"calculated: {_tokens(result)} if all texts are like those{spread}"
    if result.memory is not None:
        yield f"memory, measured: {size(result.memory)} in this process; a worker with texts as long needs it"
    yield f"the run's folder, calculated: about {size(result.kept)}, without --rows"
    yield "a worker has a core or a device for itself: where they share memory and caches they are slower"


def _table(result: Estimate) -> Table:
    return Table.of(
        "term seconds_measured unit count_calculated seconds_calculated driver",
        [
            (each.name, each.seconds, each.unit, float(each.count), each.whole, each.driver)
            for each in result.terms
        ],
    )
