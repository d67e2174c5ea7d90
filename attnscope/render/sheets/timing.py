"""When each word is heard: a stretch of time a word, what gold says, and the weights that it rests on."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import chance, counted, percent, weight
from attnscope.render.kit.scale import scale_of
from attnscope.render.sheet.blocks import Matrix, Names, Ranking
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.said import grid_size, setting
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets import alignment as words
from attnscope.results import Timing
from attnscope.results.claims.alignment import TimeScore
from attnscope.vocabulary import Scaling

_COLUMNS = "word begin end strength confidence gold_begin gold_end"


def sheet(result: Timing, focus: Focus = WHOLE) -> Sheet:
    ranking = _ranking(result)
    judged = () if result.judged is None else (words.scores(result.judged),)
    sure = () if result.judged is None else tuple(words.reliability(result.judged, "begin"))
    return Sheet(
        title="when each word is heard",
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(ranking, *judged, *(sure if focus.verbose else ())),
        table=lambda: Table.of(_COLUMNS, _facts(result)),
        texts=(f"{result.sound.described} · “{' '.join(_names(result))}”",),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=tuple(_legend(result)),
        proof=words.proofs(result),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=ranking,
        record=(("weighing", result.weighing.value),),
        next=words.opening(result),
        more=(_matrix(result), words.head_shares(result), *(() if focus.verbose else sure)),
    )


def _names(result: Timing) -> tuple[str, ...]:
    return tuple(settled(each) for each in result.query_tokens.names)


def _answer(result: Timing) -> str:
    if not result.tells and result.judged is None:
        return words.nothing(result, "these times")
    times, names = result.times, _names(result)
    count = counted(len(times), "word")
    pauses = [b.begin - a.end for a, b in pairwise(times)]
    first, last = times[0].begin, times[-1].end
    told = f"{count} from {first:.2f} s to {last:.2f} s: “{names[0]}” begins at {first:.2f} s"
    if pauses and max(pauses) > 0:
        place = int(np.argmax(pauses))
        told += f"; the longest pause, {max(pauses):.2f} s, is before “{names[place + 1]}”"
    return f"{told}. {_trust(result)}"


def _trust(result: Timing) -> str:
    judged = result.judged
    if judged is None:
        return f"How far they lie off is not known; {words.unsure(result)}."
    own: TimeScore = judged.own
    others = ", ".join(f"{each.name} {each.begin_median:.0f}" for each in judged.others)
    told = (
        f"On {words.cases(judged, 'sound')}: half of the begins lie within {own.begin_median:.0f} ms of the "
        f"true ones ({others}), {percent(own.begin_within)} within 100 ms; half of the ends within "
        f"{own.end_median:.0f} ms."
    )
    return f"{told} {words.certain(judged, 'are within 100 ms', 'begins')}".strip()


def _ranking(result: Timing) -> Ranking:
    times = result.times
    begins, ends = [each.begin for each in times], [each.end for each in times]
    gold = [each.gold_begin for each in times], [each.gold_end for each in times]
    known = any(each is not None for each in gold[0])
    sure = [each.confidence for each in times]
    off = [None if a is None else 1000 * (b - a) for a, b in zip(gold[0], begins, strict=True)]
    return Ranking(
        title="words over time",
        of="word",
        names=_names(result),
        table=Table(
            Column("begin", begins, "begins", _seconds),
            Column("end", ends, "ends", _seconds),
            Column("confidence", sure, "sure", chance, "how often such a begin is within 100 ms")
            if result.calibrated else
            Column("strength", [each.strength for each in times], "strength", weight,
                   "the share of the word's weight that lies between"),
            Column("off", off, "off by ms", lambda each: f"{each:+,.0f}", "above 0 its begin is late"),
        ),
        measured="seconds",
        marks=(
            *((Mark("span", "limit", "gold", *gold, low=True),) if known else ()),
            Mark("band", "own", "heard", begins, ends),
        ),
        axis=(0.0, float(np.ceil(100 * result.sound.seconds) / 100)),
        cells=(),
    )  # fmt: skip


def _seconds(value: float) -> str:
    return f"{value:.2f}"


def _matrix(result: Timing) -> Matrix:
    frames = [f"{i * result.seconds:.2f}s" for i in range(result.rows.shape[1])]
    return Matrix(
        title="what the heads give to each frame, mixed",
        words=("word", "frame"),
        rows=Names(_names(result)),
        columns=Names(tuple(frames)),
        values=result.rows,
        scale=scale_of(result.rows, result.rows >= 0, Scaling.SQRT),
        form=weight,
    )


def _legend(result: Timing) -> Iterator[str]:
    yield "a piece of a word is heard by the row before it, which writes it"
    yield (
        f"frames of {1000 * result.seconds:.0f} ms; each head over the deviation of a frame, median over "
        f"{counted(result.width, 'frame')}, dynamic time warping as published for Whisper; a word begins "
        "where its row first has a quarter of its most"
    )
    if result.judged is not None:
        yield "as published: heads alike, a word begins where the one before it ends"
        yield "equal pieces, equal words: the sound, cut into as many"


def _facts(result: Timing) -> Iterator[tuple[object, ...]]:
    for word, each in zip(result.query_tokens.names, result.times, strict=True):
        numbers = each.confidence, each.gold_begin, each.gold_end
        told = ("" if number is None else exact(number) for number in numbers)
        yield word, exact(each.begin), exact(each.end), exact(each.strength), *told
