"""The sheet of `align`: word links or word times, scores against gold, and export formats."""

from collections.abc import Iterator
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

from attnscope.printable import printable
from attnscope.render.kit.cells import settled
from attnscope.render.kit.command import opening_head
from attnscope.render.kit.numbers import chance, exact, number, percent, weight
from attnscope.render.kit.palette import scale_of
from attnscope.render.sheet.blocks import Linked, Matrix, Named, Names, Ranking, Tie
from attnscope.render.sheet.said import grid_size, in_sentence, proof, read, setting
from attnscope.render.sheet.sheet import Next, Sheet, by_head, saying
from attnscope.render.sheet.table import Column, Form, Mark, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.verbs.align.result import Alignment, Direction, Judged, Timing, WordLink
from attnscope.vocabulary import Scaling

_COLUMNS = "source target source_word target_word strength confidence direction gold"
_SIDES = {Direction.BOTH: "both", Direction.TARGET: "target only", Direction.SOURCE: "source only"}
_IN_GOLD = {"sure": "yes", "possible": "possible", "none": "no", None: ""}
_Aligned = Alignment | Timing
_SURE = 0.9  # from which confidence on it is told how much is right
_LEAST, _MOST = 1e-3, 12  # share of a head that is shown, and so many heads
_SHARES = Scale(0.0, 1.0)
_OF_LINKS = {"precision": "right", "recall": "found", "error": "error", "found": "first", "links": "links"}
_OF_TIMES = {
    f"{end}_{name}": f"{end} {heading}"
    for end in ("begin", "end")
    for name, heading in (("median", "off"), ("most", "9 in 10"), ("within", "≤100"))
}
_FORMS: dict[str, Form] = {
    "median": "{:,.0f}".format,
    "most": "{:,.0f}".format,
    "links": partial(number, decimals=1),
}


def sheet(result: _Aligned, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    if isinstance(result, Timing):
        return _times(result, say, focus)
    drawing = Linked(
        title=say("links_title"),
        sides=("target", "source"),
        left=tuple(map(settled, result.query_tokens.names)),
        right=tuple(map(settled, result.key_tokens.names)),
        ties=tuple(
            Tie(
                each.query,
                each.key,
                each.strength,
                each.direction is not Direction.BOTH,
                say(
                    "tie",
                    *_pair(result, each),
                    weight(each.strength) if each.confidence is None else chance(each.confidence),
                ),
            )
            for each in result.links
        ),
        says=say("links_says"),
    )
    return aligned(
        result,
        say,
        focus,
        blocks=(drawing, _ranking(result, say)),
        matrix=mixed(result, say, ("target", "source"), (result.query_tokens, result.key_tokens)),
        table=lambda: Table.of(_COLUMNS, _rows(result)),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        record=(("pharaoh", result.pharaoh),),
    )


def aligned(
    result: _Aligned, say: Said, focus: Focus, *, blocks: Any, matrix: Matrix, record: Any = (), **own: Any
) -> Sheet:
    """The parts of a sheet that links and times share; the first of `blocks` is the main one."""
    judged, most = result.judged, result.weighed[0]
    beside = () if judged is None else (_scores(result, judged, say),)
    sure = () if judged is None or not judged.reliability else (_reliability(judged, say),)
    opened = opening_head(result, most.layer, most.head)
    return saying(
        say,
        setting=setting(result, grid_size(result.layers, result.heads)),
        blocks=(*blocks, *beside, *(sure if focus.verbose else ())),
        proof=proof((each for row in result.verdicts for each in row), "head", say("certified")),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=blocks[0],
        record=(*record, ("weighing", result.weighing.value)),
        next=Next(say("next"), opened) if isinstance(result, Timing) or result.links else None,
        more=(matrix, _head_shares(result, say), *(() if focus.verbose else sure)),
        **own,
    )


def _pair(result: Alignment, link: WordLink) -> tuple[str, str]:
    return in_sentence(result.query_tokens, link.query), in_sentence(result.key_tokens, link.key)


def _ranking(result: Alignment, say: Said) -> Ranking:
    links, left = result.links, [in_sentence(result.query_tokens, i) for i in result.without_link]
    strengths, sure = [each.strength for each in links], [each.confidence for each in links]
    return Ranking(
        title=say("ranking"),
        of="link",
        names=tuple(" ← ".join(_pair(result, each)) for each in links),
        table=Table(
            Column("confidence", sure, "sure", chance, say("says", "confidence"))
            if result.calibrated else
            Column("strength", strengths, "strength", weight, say("says", "strength")),
            Column("direction", [_SIDES[each.direction] for each in links], "strongest from",
                   says=say("says", "direction"), spared=1),
            Column("gold", [_IN_GOLD[each.gold] for each in links], "in gold"),
        ),
        measured="how sure" if result.calibrated else "strength",
        marks=(Mark("bar", "own", "", strengths),),
        axis=(0.0, 1.0),
        repeats=True,
        unshown=say("without", ", ".join(left)) if left else "",
    )  # fmt: skip


def mixed(result: _Aligned, say: Said, words: tuple[str, str], sides: tuple[Named, Named]) -> Matrix:
    """Matrix of the strengths of all word pairs, or of the words' weights over frames."""
    values = result.strengths if isinstance(result, Alignment) else result.rows
    return Matrix(
        title=say("matrix"),
        words=words,
        rows=sides[0],
        columns=sides[1],
        values=values,
        scale=scale_of(values, values >= 0, Scaling.SQRT),
        form=weight,
        says=say("matrix_says"),
        marked=tuple((each.query, each.key) for each in getattr(result, "links", ())),
    )


def _rows(result: Alignment) -> Iterator[tuple[object, ...]]:
    for each in result.links:
        names = result.key_tokens.names[each.key], result.query_tokens.names[each.query]
        sure = "" if each.confidence is None else exact(each.confidence)
        yield each.key, each.query, *names, exact(each.strength), sure, each.direction.value, each.gold or ""


def _scores(result: _Aligned, judged: Judged, say: Said) -> Ranking:
    """Ranking of the answer's way and its baselines by their scores against gold."""
    timed = isinstance(result, Timing)
    main, most = ("begin_median", "begin_most") if timed else ("error", "")

    def of(name: str) -> list[float]:
        return [getattr(each, name) for each in judged.scores]

    def column(name: str, heading: str) -> Column:
        what = name.rpartition("_")[2]
        scale = None if what in _FORMS or what == "error" else _SHARES
        spared = int(name in ("links", "end_most"))
        return Column(name, of(name), heading, _FORMS.get(what, weight), say("says", what), scale, spared)

    span = (Mark("span", "own", say("says", "most"), of(main), of(most)),) if timed else ()
    return Ranking(
        title=say("scores"),
        of="way",
        names=tuple(each.name for each in judged.scores),
        table=Table(*starmap(column, (_OF_TIMES if timed else _OF_LINKS).items())),
        measured=say("measured"),
        marks=(*span, Mark("dot" if timed else "bar", "own", "the middle one" if timed else "", of(main))),
        written=main,
        axis=None if timed else (0.0, 1.0),
    )


def _reliability(judged: Judged, say: Said) -> Ranking:
    """Calibration chart: the share that is right beside the confidence, by bin."""
    parts = judged.reliability
    said, right = [each.said for each in parts], [each.right for each in parts]
    low, high = [each.right_low for each in parts], [each.right_high for each in parts]
    interval = say("says", "interval")
    return Ranking(
        title=say("reliability"),
        of="confidence",
        names=tuple(f"{percent(each.low)} to {percent(each.high)}" for each in parts),
        table=Table(
            Column("count", [each.count for each in parts], say("several"), "{:,}".format),
            Column("said", said, "said", chance, say("says", "said"), _SHARES),
            Column("right", right, "right", chance, say("says", "right"), _SHARES),
            Column("right_low", low, "from", chance, interval, _SHARES, spared=1),
            Column("right_high", high, "to", chance, interval, _SHARES, spared=1),
        ),
        measured="share that is right",
        marks=(
            Mark("span", "own", interval, low, high),
            Mark("dot", "own", "right", right),
            Mark("tick", "control", "said", said),
        ),
        axis=(0.0, 1.0),
    )


def _head_shares(result: _Aligned, say: Said) -> Ranking:
    shown = [each for each in result.weighed if each.share >= _LEAST][:_MOST]
    shares = [each.share for each in shown]
    return Ranking(
        title=say("heads"),
        of="head",
        names=tuple(each.name for each in shown),
        table=Table(Column("share", shares, "share", percent, say("says", "share"))),
        measured="share",
        marks=(Mark("bar", "own", "", shares),),
        hidden=len(result.weighed) - len(shown),
    )


def said(result: _Aligned) -> Said:
    """A `Said` that fills the sentence templates of `align` with the facts of this result."""
    judged, timed = result.judged, isinstance(result, Timing)
    sure = [(each.count, each.right) for each in judged.reliability if each.low >= _SURE] if judged else []
    counts, right = np.array(sure).reshape(-1, 2).T
    facts = {
        "timed": timed,
        "words": len(result.query_tokens),
        "shuffled": float(result.shuffled.mean()),
        "draws": len(result.shuffled),
        "as_much": int((result.shuffled >= result.agreement).sum()),
        "head": result.weighed[0].name,
        "leads": result.weighed[0].share - result.weighed[-1].share >= _LEAST,
        "counting": len(result.weighed),
        "of": len(result.layers) * len(result.heads),
        "gold": judged,
        "lot": judged.others[-1] if judged is not None and judged.others else None,
        # of what is said to be 90 % sure or more how much is right
        "right": float((counts * right).sum() / counts.sum()) if counts.sum() else None,
        **dict.fromkeys(("linked_words", "best", "sure", "even", "first", "last", "seconds", "width")),
        **(_of_times(result) if isinstance(result, Timing) else _of_links(result)),
    }
    return Said("align", result, facts)


def _of_links(result: Alignment) -> dict[str, object]:
    best = max(result.links, key=lambda each: each.strength, default=None)
    return {
        "linked_words": len(result.query_tokens) - len(result.without_link),
        "best": best and _pair(result, best),
        "sure": best and best.confidence,
        "own_gold": any(each.gold is not None for each in result.links),
        "even": result.even,
    }


def _of_times(result: Timing) -> dict[str, object]:
    names, times = result.query_tokens.names, result.times
    return {
        "first": (f"“{settled(names[0])}”", times[0].begin),
        "last": (f"“{settled(names[-1])}”", times[-1].end),
        "own_gold": any(each.gold_begin is not None for each in times),
        "seconds": result.seconds,
        "width": result.width,
    }


_OF_WORDS = "word begin end strength confidence gold_begin gold_end"


def _times(result: Timing, say: Said, focus: Focus) -> Sheet:
    """The sheet of word times: when each word is heard, what gold says, and the weights over frames."""
    names = tuple(map(settled, result.query_tokens.names))
    sides = Names(names), Names(result.key_tokens.names)
    return aligned(
        result,
        say,
        focus,
        blocks=(_times_ranking(result, say, names),),
        matrix=mixed(result, say, ("word", "frame"), sides),
        table=lambda: Table.of(_OF_WORDS, _times_rows(result)),
        texts=(f"{result.sound.described} · “{' '.join(names)}”",),
    )


def _times_ranking(result: Timing, say: Said, names: tuple[str, ...]) -> Ranking:
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


def _times_rows(result: Timing) -> Iterator[tuple[object, ...]]:
    for word, each in zip(result.query_tokens.names, result.times, strict=True):
        numbers = each.confidence, each.gold_begin, each.gold_end
        told = ("" if number is None else exact(number) for number in numbers)
        yield word, exact(each.begin), exact(each.end), exact(each.strength), *told


def as_pharaoh(result: Alignment) -> str:
    return f"{result.pharaoh}\n"


def links_as_tsv(result: Alignment) -> str:
    """Tab-separated links: word numbers, words, strength, and the confidence where there is one."""
    lines = ["source\ttarget\tsource_word\ttarget_word\tstrength\tconfidence"]
    for link in result.links:
        said = "" if link.confidence is None else f"{link.confidence:.6g}"
        pair = _field(result.key_tokens.names[link.key]), _field(result.query_tokens.names[link.query])
        lines.append("\t".join((str(link.key), str(link.query), *pair, f"{link.strength:.6g}", said)))
    return "\n".join(lines) + "\n"


def times_as_tsv(result: Timing) -> str:
    """Tab-separated word times: word, begin and end in seconds, as in files of gold."""
    return "".join(
        f"{_field(word)}\t{each.begin:.3f}\t{each.end:.3f}\n"
        for word, each in zip(result.query_tokens.names, result.times, strict=True)
    )


def as_srt(result: Timing) -> str:
    """The times as SubRip: numbered cues, a comma before the milliseconds."""
    cues = enumerate(_cues(result, ","), start=1)
    return "\n".join(f"{number}\n{times}\n{word}\n" for number, (times, word) in cues)


def as_vtt(result: Timing) -> str:
    """The times as WebVTT, in which & and < are markup."""
    return "WEBVTT\n\n" + "\n".join(
        f"{times}\n{word.replace('&', '&amp;').replace('<', '&lt;')}\n" for times, word in _cues(result, ".")
    )


def _cues(result: Timing, mark: str) -> Iterator[tuple[str, str]]:
    for word, each in zip(result.query_tokens.names, result.times, strict=True):
        yield f"{_clock(each.begin, mark)} --> {_clock(each.end, mark)}", _field(word)


def _clock(seconds: float, mark: str) -> str:
    whole = round(1000 * seconds)
    minutes, rest = divmod(whole, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{mark}{rest % 1000:03}"


def _field(word: str) -> str:
    return " ".join(printable(word).split())
