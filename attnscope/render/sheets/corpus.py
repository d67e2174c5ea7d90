"""Measures of heads over a corpus: of each head the mean over texts, how sure it is, and how texts differ."""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, percent, signed, weight
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import grid_size, in_sample, named, proof_in, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written
from attnscope.render.sheets import corpus_words as words
from attnscope.render.sheets.corpus_texts import looked_at, opening, scattered, texts_and_lengths
from attnscope.render.sheets.overview import form_of_tokens
from attnscope.results import Corpus
from attnscope.results.claims.corpus import GAIN, LEVELS, LINKS, CorpusRead, CorpusScores
from attnscope.results.claims.relations import Z

_LISTED = 10
_USUAL = ("entropy", "previous", "next", "first", "special-tokens", "fixed")  # of all measures
_ERROR = "standard error over texts; of a class the share of texts that are of it"
_change = partial(signed, decimals=None)
_MOST = 1.05  # of the largest number, where the shades end
_QUANTILES = " ".join(f"q{round(100 * level):02d}" for level in LEVELS)
_ACTS = "whether their answers act was tried on one sentence"
_FACTS = (
    f"measure layer head mean class_name error texts least {_QUANTILES} largest even_texts odd_texts "
    "agreement"
)


def sheet(result: Corpus, focus: Focus = WHOLE) -> Sheet:
    there = [each for each in result.measures.values() if not each.absent and each is not result.main]
    in_tokens = result.main.scores.measure == "entropy" and not focus.in_nats
    main = _tokens(result) if in_tokens else _grid(result, result.main)
    texts = counted(result.read.texts, "text")
    failed = _failed(result)
    return Sheet(
        title=_subject(result),
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=words.answer(result, in_tokens),
        blocks=(
            *_links(result),
            main,
            *_measures(result, in_tokens, focus.verbose),
            *texts_and_lengths(result, in_tokens),
        ),
        more=(*scattered(result, in_tokens), *(_grid(result, each) for each in there)),
        table=lambda: Table.of(_FACTS, _facts(result)),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=tuple(_legend(result, in_tokens)),
        proof=proof_in(result.sampled, texts, result.certified, failed or _alike(result)),
        failed=failed,
        main=main,
        summary=(texts, grid_size(result.layers, result.heads)),
        record=record(result.read),
        next=_following(result),
    )


def _following(result: Corpus) -> Next | None:
    leads = words.following(result)
    tagged = result.linked is not None or result.read.tagged
    best, asked = looked_at(result), "" if tagged else opening(result)
    if best is None or not asked:
        return leads
    return Next(f"what does {named(result, best)} do in a text that is unlike the others?", asked)


def _failed(result: Corpus) -> str:
    more = len(result.failed) - 1
    return f"{result.failed[0]}{f'; and {more} more' if more else ''}" if result.failed else ""


def _alike(result: Corpus) -> str:
    if not result.held:
        return f"measured alone, not among others; {_acts(result)}"
    some = f" in {result.held:,} of their {result.queries:,} queries" if result.held < result.queries else ""
    return f"{in_sample(result.unlike)}{some}; {_acts(result)}"


def _acts(result: Corpus) -> str:
    among = len(result.layers) * len(result.heads)
    return _ACTS + (f", and not told of {result.untried:,} of {among:,} heads" if result.untried else "")


def _legend(result: Corpus, in_tokens: bool) -> Iterator[str]:
    if in_tokens:
        yield "tokens looked at: e to the mean entropy of a head over its queries and texts"
    if result.linked is not None:
        yield "the best of many heads is so partly by luck: texts held out have none"
    yield from measured.absent({key: each.scores for key, each in result.measures.items()})


def record(read: CorpusRead, side: str = "") -> tuple[tuple[str, object], ...]:
    """The files by their hashes, as they stand at the top of a file."""
    files = zip(read.files, read.digests, strict=True)
    return tuple(("file", f"{side}{each} {digest}") for each, digest in files)


def _subject(result: Corpus) -> str:
    named = result.read.name
    return f"{words.link(result)} in {named}" if result.linked else f"corpus {named}"


def _tokens(result: Corpus) -> HeadGrid:
    entropy = result.main
    tokens = np.exp(entropy.values)
    largest = float(np.nanmax(tokens, initial=1.0))
    return HeadGrid(
        title=f"tokens each head looks at, over texts of up to {result.read.longest:,} (1 = one token)",
        layers=result.layers,
        heads=result.heads,
        values=tokens,
        scale=Scale(1.0, max(_MOST * largest, 2.0), "falling"),
        form=form_of_tokens,
        companion=Companion.numbers("± standard error over texts", tokens * entropy.error, words.error),
        absent="-",
    )


def _grid(result: Corpus, scores: CorpusScores) -> HeadGrid:
    described, limits = scores.scores.description, None
    what = "commonest class" if described.classes else "mean"
    title = described.title if described.name != GAIN else f"{words.link(result)} above distance alone"
    largest = float(np.nanmax(np.abs(scores.values), initial=0.0))
    if described.signed:
        limits = -(largest or 1.0), largest or 1.0
    elif not described.classes and _MOST * largest < scores.scores.limits[1]:
        limits = scores.scores.limits[0], _MOST * largest
    return HeadGrid(
        title=f"{title}: {what} over texts",
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
    return Companion.numbers("standard error over texts", scores.error, words.error)


def _measures(result: Corpus, in_tokens: bool, whole: bool) -> Iterator[Ranking]:
    every = [each for each in result.measures.values() if measured.ranked(each.scores)]
    wanted = usual(result.measures, result.main.scores.measure, whole)
    listed = [each for each in every if each.scores.measure in wanted]
    if not listed or (result.linked and not whole):
        return
    shown = in_tokens and result.main in listed
    rows = [_row(result, each, shown and each is result.main) for each in listed]
    names, heads, means, spreads, *texts = zip(*rows, strict=True)
    columns = [
        Column("head", heads, "head"),
        Column("mean", means, "mean", as_written),
        Column("error", spreads, "± standard error", as_written, _ERROR),
    ]
    for i, level in enumerate(LEVELS):
        says = "so many texts are not above it" if level == LEVELS[-1] else ""
        columns.append(
            Column(
                f"q{level}",
                texts[i],
                f"{100 * level:.0f} %",
                as_written,
                says,
                spared=i % 2,
                under="of the texts",
            )
        )
    hidden = len(every) - len(listed)
    yield Ranking(
        title="the strongest head by each measure, texts counting alike",
        of="measure",
        names=names,
        table=Table(*columns),
        hidden=hidden,
        unshown=f"and {counted(hidden, 'measure')} more (-v)" if hidden else "",
    )


def usual(measures: Iterable[str], main: str, whole: bool) -> list[str]:
    """The measures that are told of all: the usual ones, where the `whole` of them was not asked for."""
    told = list(measures)
    if whole or not set(_USUAL) <= set(told):
        return told
    return [each for each in told if each == main or each in _USUAL]


def _row(result: Corpus, scores: CorpusScores, in_tokens: bool) -> tuple[str, ...]:
    place = measured.ranked(scores.scores)[0]
    head, mean = named(result, place), float(scores.values[place])
    levels = [float(each[place]) for each in scores.quantiles]
    if in_tokens:
        spread = words.error(float(np.exp(mean) * scores.error[place]))
        return (
            "tokens looked at",
            head,
            *map(form_of_tokens, [np.exp(mean)]),
            spread,
            *map(form_of_tokens, np.exp(levels)),
        )
    quantiles = [""] * len(levels)  # of a class there is none
    if scores.agreement is None:
        quantiles = [measured.written(scores.scores, each) for each in levels]
    written = measured.written(scores.scores, mean)
    return scores.scores.measure, head, written, _spread(scores).short(*place), *quantiles


def _links(result: Corpus) -> Iterator[Ranking]:
    if result.linked is None or not (listed := measured.ranked(result.measure(GAIN).scores)):
        return
    link, beside, gain = (result.measure(each) for each in LINKS)
    places = listed[:_LISTED]
    source, target = result.linked
    texts = counted(int(gain.count[listed[0]]), "text")

    own, alone = each_of(link.values, places), each_of(beside.values, places)
    reach = [Z * each for each in each_of(gain.error, places)]
    low, high = ([value + sign * each for value, each in zip(own, reach, strict=True)] for sign in (-1, 1))
    yield Ranking(
        title=f"heads that link {words.link(result)} most, in {texts} that have it",
        of="head",
        names=tuple(named(result, place) for place in places),
        table=Table(
            Column("weight", own, "weight", weight,
                   f"mean weight of a {source} word on all {target} words of its text, by words"),
            Column("control_mean", alone, "distance alone", weight,
                   f"what any word of the text gives at the distances of {source} and {target}"),
            Column("above_control", each_of(gain.values, places), "above control", _change,
                   "weight less that of distance alone", Scale.around(gain.values)),
            Column("error", each_of(gain.error, places), "± standard error", words.error, "over texts"),
),
        measured="weight",
        marks=(
            Mark("span", "own", "", low, high),
            Mark("dot", "own", f"{words.link(result)}, 95 % of how far it is above the control", own),
            Mark("ring", "control", "any word at the same distances", alone),
        ),
        hidden=len(listed) - len(places),
    )  # fmt: skip


def _facts(result: Corpus) -> Iterator[tuple[object, ...]]:
    for measure, each in result.measures.items():
        for i, j in np.ndindex(each.values.shape):
            numbers = each.values, each.error, each.least, *each.quantiles, each.largest, *each.halves
            mean, spread, least, *rest = (float(values[i, j]) for values in numbers)
            agreement = None if each.agreement is None else float(each.agreement[i, j])
            head = measure, result.layers[i], result.heads[j]
            named, texts = each.scores.class_of(i, j), int(each.count[i, j])
            yield *head, mean, named, spread, texts, least, *rest, agreement
