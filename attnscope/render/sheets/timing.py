"""When each word is heard: a stretch of time a word, what gold says, and the weights that it rests on."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import chance, weight
from attnscope.render.sheet.blocks import Names, Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets.alignment import aligned, mixed, said
from attnscope.render.words import Said
from attnscope.results import Timing

_COLUMNS = "word begin end strength confidence gold_begin gold_end"


def sheet(result: Timing, focus: Focus = WHOLE) -> Sheet:
    say, names = said(result), tuple(map(settled, result.query_tokens.names))
    sides = Names(names), Names(result.key_tokens.names)
    return aligned(
        result,
        say,
        focus,
        blocks=(_ranking(result, say, names),),
        matrix=mixed(result, say, ("word", "frame"), sides),
        table=lambda: Table.of(_COLUMNS, _rows(result)),
        texts=(f"{result.sound.described} · “{' '.join(names)}”",),
    )


def _ranking(result: Timing, say: Said, names: tuple[str, ...]) -> Ranking:
    times = result.times
    begins, ends = [each.begin for each in times], [each.end for each in times]
    gold = [each.gold_begin for each in times], [each.gold_end for each in times]
    known = any(each is not None for each in gold[0])
    off = [None if a is None else 1000 * (b - a) for a, b in zip(gold[0], begins, strict=True)]
    return Ranking(
        title=say("ranking"),
        of="word",
        names=names,
        table=Table(
            Column("begin", begins, "begins", "{:.2f}".format),
            Column("end", ends, "ends", "{:.2f}".format),
            Column("confidence", [each.confidence for each in times], "sure", chance,
                   say("says", "confidence"))
            if result.calibrated else
            Column("strength", [each.strength for each in times], "strength", weight,
                   say("says", "strength")),
            Column("off", off, "off by ms", "{:+,.0f}".format, say("says", "off")),
        ),
        measured="seconds",
        marks=(
            *((Mark("span", "limit", "gold", *gold, low=True),) if known else ()),
            Mark("band", "own", "heard", begins, ends),
        ),
        axis=(0.0, float(np.ceil(100 * result.sound.seconds) / 100)),
        cells=(),
    )  # fmt: skip


def _rows(result: Timing) -> Iterator[tuple[object, ...]]:
    for word, each in zip(result.query_tokens.names, result.times, strict=True):
        numbers = each.confidence, each.gold_begin, each.gold_end
        told = ("" if number is None else exact(number) for number in numbers)
        yield word, exact(each.begin), exact(each.end), exact(each.strength), *told
