"""Measures of heads over a corpus: of each head the mean over texts, how sure it is, and how texts differ."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, give_or_take, percent, signed, weight, with_error
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import Place, grid_size, in_sample, named, proof, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.results import Corpus
from attnscope.results.claims.corpus import LEVELS, CorpusRead, CorpusScores

LINK, PLACE, GAIN = "link", "link-place", "link-gain"
_LISTED, _REASONS = 10, 3
_FLOOR = 10  # texts: of fewer the answer says how few
_SURE = 2.0  # standard errors that a gain on texts held out takes
_ERROR = "standard error over texts; of a class the share of texts that are of it"
_change, _error = partial(signed, decimals=None), partial(give_or_take, decimals=None)
_MOST = 1.05  # of the largest number, where the shades end
_QUANTILES = " ".join(f"q{round(100 * level):02d}" for level in LEVELS)
_FACTS = (
    f"measure layer head mean class_name error texts least {_QUANTILES} largest even_texts odd_texts "
    "agreement"
)


def sheet(result: Corpus, focus: Focus = WHOLE) -> Sheet:
    there = [each for each in result.measures.values() if not each.absent and each is not result.main]
    main = _grid(result, result.main)
    sample = f"{result.sampled} of {counted(result.read.texts, 'text')}"
    return Sheet(
        title=_subject(result),
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=_linked_answer(result) if result.linked else _answer(result, result.main),
        blocks=(*_links(result), main, _measures(result)),
        more=tuple(_grid(result, each) for each in there),
        table=lambda: Table.of(_FACTS, _facts(result)),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=tuple(measured.absent({key: each.scores for key, each in result.measures.items()})),
        proof=proof(result.certified, "head", f" in {sample}; {in_sample(result.unlike)}"),
        main=main,
        summary=(counted(result.read.texts, "text"), grid_size(result.layers, result.heads)),
        record=record(result.read),
    )


def record(read: CorpusRead, side: str = "") -> tuple[tuple[str, object], ...]:
    """The files by their hashes, as they stand at the top of a file."""
    files = zip(read.files, read.digests, strict=True)
    return tuple(("file", f"{side}{each} {digest}") for each, digest in files)


def _subject(result: Corpus) -> str:
    """`corpus dev.conllu`, or `VERB→NOUN in dev.conllu`."""
    named = result.read.name
    return f"{_link(result)} in {named}" if result.linked else f"corpus {named}"


def _link(result: Corpus) -> str:
    return "→".join(result.linked or ())


def _grid(result: Corpus, scores: CorpusScores) -> HeadGrid:
    """The mean of every head with its error, or the commonest class with its share of the texts."""
    described, limits = scores.scores.description, None
    what = "commonest class" if described.classes else "mean"
    largest = float(np.nanmax(np.abs(scores.values), initial=0.0))
    if described.signed:
        limits = -(largest or 1.0), largest or 1.0
    elif not described.classes and _MOST * largest < scores.scores.limits[1]:
        limits = scores.scores.limits[0], _MOST * largest
    return HeadGrid(
        title=f"{described.title}: {what} over texts",
        layers=result.layers,
        heads=result.heads,
        values=scores.values,
        scale=measured.scale(scores.scores, result.read.longest, limits),
        form=measured.form(scores.scores),
        says=measured.classes(scores.scores),
        companion=_spread(scores),
        absent="-",
    )


def _spread(scores: CorpusScores) -> Companion:
    if scores.agreement is not None:
        return Companion.numbers("share of texts that are of the class", scores.agreement, percent)
    return Companion.numbers("standard error over texts", scores.error, _error)


def _measures(result: Corpus) -> Ranking:
    """The strongest head by every measure: its mean, its error, how texts scatter."""
    every = [each for each in result.measures.values() if not each.absent and measured.ranked(each.scores)]
    strongest = [measured.ranked(each.scores)[0] for each in every]
    both = list(zip(every, strongest, strict=True))
    means = [measured.written(each.scores, float(each.values[place])) for each, place in both]
    spreads = [_spread(each).short(*place) for each, place in both]
    columns = [
        Column("head", [named(result, place) for place in strongest], "head"),
        Column("mean", means, "mean", as_written),
        Column("error", spreads, "error", as_written, _ERROR),
    ]
    for i, level in enumerate(LEVELS):
        texts = [_quantile(each, i, place) for each, place in both]
        says = "so many texts are not above it" if level == LEVELS[-1] else ""
        columns.append(Column(f"q{level}", texts, percent(level), as_written, says, spared=i % 2))
    return Ranking(
        title="the strongest head by each measure, texts counting alike",
        of="measure",
        names=tuple(each.scores.measure for each in every),
        table=Table(*columns),
    )


def _quantile(scores: CorpusScores, level: int, place: Place) -> str:
    """Of a class there is none."""
    if scores.agreement is not None:
        return ""
    return measured.written(scores.scores, float(scores.quantiles[level][place]))


def _links(result: Corpus) -> Iterator[Ranking]:
    """The heads that gain most over what distance explains."""
    if result.linked is None or not (listed := measured.ranked(result.measure(GAIN).scores)):
        return
    link, beside, gain = (result.measure(each) for each in (LINK, PLACE, GAIN))
    places = listed[:_LISTED]
    source, target = result.linked
    texts = counted(int(gain.count[listed[0]]), "text")

    own, alone = each_of(link.values, places), each_of(beside.values, places)
    yield Ranking(
        title=f"heads that link {_link(result)} most, in {texts} that have it",
        of="head",
        names=tuple(named(result, place) for place in places),
        table=Table(
            Column("link", own, "link", weight,
                   f"mean weight of a {source} word on all {target} words of its text, by words"),
            Column("place", alone, "place", weight,
                   f"what any word of the text gives at the distances of {source} and {target}"),
            Column("gain", each_of(gain.values, places), "gain", _change, "link less place",
                   Scale.around(gain.values)),
            Column("error", each_of(gain.error, places), "error", _error, _ERROR),
),
        measured="weight",
        marks=(
            Mark("bar", "own", "link", own),
            Mark("ring", "control", "any word at the same distances", alone),
        ),
        says="the best of many heads is so partly by luck: texts held out have none",
        hidden=len(listed) - len(places),
    )  # fmt: skip


def _answer(result: Corpus, scores: CorpusScores) -> str:
    """The strongest head by the measure that is looked at, beside the head in the middle."""
    if not (order := measured.ranked(scores.scores)):
        return f"No head has a number: {scores.absent}." if scores.absent else ""
    best, described = order[0], scores.scores.description
    count, of = counted(int(scores.count[best]), "text"), f"of {len(order)} heads"
    if described.classes and scores.agreement is not None:
        best = max(order, key=lambda place: float(scores.agreement[place]))  # type: ignore[index]
        commonest = scores.scores.class_of(*best)
        share = percent(float(scores.agreement[best]))
        own = f"{named(result, best)} of its {described.name}"
        return f"Surest {of} is {own}: {commonest} in {share} of {count}."
    written = partial(measured.written, scores.scores)
    low, high = (written(float(scores.quantiles[i][best])) for i in (0, len(LEVELS) - 1))
    end = "least" if described.strong == "low" else "most"
    return (
        f"{named(result, best)} has the {end} {described.scale} {of}, {written(float(scores.values[best]))} "
        f"{_error(float(scores.error[best]))} over {count}, nine tenths of which lie from {low} to {high}; "
        f"the head in the middle has {written(float(np.nanmedian(scores.values)))}.{_few(result)}"
    )


def _linked_answer(result: Corpus) -> str:
    """Whether a head links the two beyond what distance explains, on texts that it was not chosen on."""
    link, beside, gain = (result.measure(each) for each in (LINK, PLACE, GAIN))
    if not (order := measured.ranked(gain.scores)):
        return f"No text has {_link(result)}."
    best, (source, target) = order[0], result.linked or ("", "")
    own, others = (weight(float(each.values[best])) for each in (link, beside))
    more = with_error(float(gain.values[best]), float(gain.error[best]))
    held, few = held_out(result), _few(result)
    if held is None or not held[0] > _SURE * held[1]:
        told = (
            f"This corpus cannot tell whether a head links {source} to {target} beyond what distance explains"
        )
        if held is None:
            return f"{told}: no text is left to judge it by.{few}"
        return (
            f"{told}: the heads chosen on one half of the texts give {with_error(*held)} on the other.{few}"
        )
    positive = int((gain.values > 0).sum())
    told = (
        f"{source} words look at {target} words more than distance alone explains: {own} against {others} in "
        f"{named(result, best)} ({more}; on texts held out {with_error(*held)})"
    )
    if 2 * positive >= len(order):
        return (
            f"{told}. {positive} of {len(order)} heads do, so it may be the {target} words: the control "
            f"knows distances only, not how much any word looks at them.{few}"
        )
    return f"{told}; {positive} of {len(order)} heads do.{few}"


def _control(result: Corpus) -> str:
    """What is held against what: distances of a link, else how texts scatter."""
    if result.linked is None:
        return f"none but luck: the best of {counted(result.main.values.size, 'head')} is so partly by it"
    source, target = result.linked
    return f"what any word of the text gives at the distances of {source} and {target}"


def _few(result: Corpus) -> str:
    """How few texts there are, where they are few."""
    return f" Only {counted(result.read.texts, 'text')}." if result.read.texts < _FLOOR else ""


def held_out(result: Corpus) -> tuple[float, float] | None:
    """How much the best head of every other text gains on those between, both ways, and its standard error.

    None where one of the halves has no number.
    """
    gain = result.measure(GAIN)
    if np.isnan(gain.halves).all(axis=(1, 2)).any():
        return None
    first, second = (np.unravel_index(int(np.nanargmax(half)), half.shape) for half in gain.halves)
    value = float(np.mean([gain.halves[1][first], gain.halves[0][second]]))
    return value, float(np.mean([gain.error[first], gain.error[second]]))


def _notes(result: Corpus) -> Iterator[str]:
    yield read_words(result.read)
    if told := _left_out(result.read):
        yield told
    yield from result.notes


def read_words(read: CorpusRead) -> str:
    """How much was read."""
    told = f"{counted(read.texts, 'text')}, {counted(read.tokens, 'token')} (longest {read.longest:,})"
    return f"{told} · {read.padded:,} read beside longer ones, filled up" if read.padded else told


def _left_out(read: CorpusRead) -> str:
    """What was set aside and why, cut and blank; "" where nothing was."""
    parts = []
    if read.left_out:
        listed = list(read.set_aside.items())
        reasons = [f"{count:,} {_reason(read, why)}" for why, count in listed[:_REASONS]]
        if more := sum(count for _, count in listed[_REASONS:]):
            reasons.append(f"{more:,} for other reasons")
        parts.append(f"set aside {read.left_out:,}: {'; '.join(reasons)}")
    if read.cut:
        parts.append(f"{counted(read.cut, 'text')} cut to {read.limit:,} tokens")
    if read.blanks:
        parts.append(f"{counted(read.blanks, 'blank line')} passed over")
    return " · ".join(parts)


def _reason(read: CorpusRead, why: str) -> str:
    told = f"{'since ' if why.startswith('it') else ''}{why}"
    return told.replace("the tokens that are read", f"{read.limit:,} tokens") if read.limit else told


def _facts(result: Corpus) -> Iterator[tuple[object, ...]]:
    """A row for each measure and head, with its error, its quantiles and its two halves."""
    for measure, each in result.measures.items():
        for i, j in np.ndindex(each.values.shape):
            numbers = each.values, each.error, each.least, *each.quantiles, each.largest, *each.halves
            mean, spread, least, *rest = (float(values[i, j]) for values in numbers)
            agreement = None if each.agreement is None else float(each.agreement[i, j])
            head = measure, result.layers[i], result.heads[j]
            named, texts = each.scores.class_of(i, j), int(each.count[i, j])
            yield *head, mean, named, spread, texts, least, *rest, agreement
