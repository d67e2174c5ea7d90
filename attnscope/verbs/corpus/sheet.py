"""The sheet of `corpus`: each head's mean over texts, its error, and how texts differ."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from attnscope.render.kit.numbers import counted, percent, signed, weight
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import grid_size, named, proof_in, setting
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, as_written
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.sheets.overview import form_of_tokens
from attnscope.render.words import Said
from attnscope.results.claims.ranking import Z
from attnscope.verbs.corpus import words_sheet as words
from attnscope.verbs.corpus.result import GAIN, LEVELS, LINKS, Corpus, CorpusRead, CorpusScores
from attnscope.verbs.corpus.words_sheet import looked_at, opening, scattered, texts_and_lengths, written

_LISTED = 10
_USUAL = ("entropy", "previous", "next", "first", "special-tokens", "fixed")  # of all measures
_change = partial(signed, decimals=None)
_MOST = 1.05  # of the largest number, where the shades end
_QUANTILES = " ".join(f"q{round(100 * level):02d}" for level in LEVELS)
_FACTS = (
    f"measure layer head mean class_name error texts least {_QUANTILES} largest even_texts odd_texts "
    "agreement"
)


def sheet(result: Corpus, focus: Focus = WHOLE) -> Sheet:
    say = words.said(result, focus.in_nats)
    there = [each for each in result.measures.values() if not each.absent and each is not result.main]
    main = _tokens(result, say) if say.facts["tokens"] else _grid(result, result.main, say)
    texts = counted(result.read.texts, "text")
    more = len(result.failed) - 1
    failed = f"{result.failed[0]}{f'; and {more} more' if more else ''}" if result.failed else ""
    return saying(
        say,
        setting=setting(result, grid_size(result.layers, result.heads)),
        blocks=(
            *_links(result, say),
            main,
            *_measures(result, say, focus.verbose),
            *texts_and_lengths(result, say),
        ),
        more=(*scattered(result, say), *(_grid(result, each, say) for each in there)),
        table=lambda: Table.of(_FACTS, _facts(result)),
        legend=(
            *say.lines("legend"),
            *measured.absent({key: each.scores for key, each in result.measures.items()}),
        ),
        proof=proof_in(result.sampled, texts, result.certified, failed or say("proof")),
        failed=failed,
        main=main,
        summary=(texts, grid_size(result.layers, result.heads)),
        record=record(result.read),
        next=_following(result, say),
    )


def _following(result: Corpus, say: Said) -> Next | None:
    leads = words.following(result, say)
    tagged = result.linked is not None or result.read.tagged
    asked = "" if tagged or looked_at(result) is None else opening(result)
    return Next(say("unlike_text"), asked) if asked else leads


def record(read: CorpusRead, side: str = "") -> tuple[tuple[str, object], ...]:
    """Record entries of the files with their hashes."""
    files = zip(read.files, read.digests, strict=True)
    return tuple(("file", f"{side}{each} {digest}") for each, digest in files)


def _tokens(result: Corpus, say: Said) -> HeadGrid:
    entropy = result.main
    tokens = np.exp(entropy.values)
    largest = float(np.nanmax(tokens, initial=1.0))
    return HeadGrid(
        title=say("in_tokens"),
        layers=result.layers,
        heads=result.heads,
        values=tokens,
        scale=Scale(1.0, max(_MOST * largest, 2.0), "falling"),
        form=form_of_tokens,
        companion=Companion.numbers(f"± {say('error')}", tokens * entropy.error, words.error_of),
        absent="-",
    )


def _grid(result: Corpus, scores: CorpusScores, say: Said) -> HeadGrid:
    described, limits = scores.scores.description, None
    largest = float(np.nanmax(np.abs(scores.values), initial=0.0))
    if described.signed:
        limits = -(largest or 1.0), largest or 1.0
    elif not described.classes and _MOST * largest < scores.scores.limits[1]:
        limits = scores.scores.limits[0], _MOST * largest
    return HeadGrid(
        title=say("grid_title", described.title, described.name == GAIN, bool(described.classes)),
        layers=result.layers,
        heads=result.heads,
        values=scores.values,
        scale=measured.scale(scores.scores, result.read.longest, limits),
        form=measured.form(scores.scores),
        says=measured.classes(scores.scores),
        companion=_spread(scores, say),
        absent="-",
    )


def _spread(scores: CorpusScores, say: Said) -> Companion:
    if scores.agreement is not None:
        return Companion.numbers(say("agreement_of"), scores.agreement, percent)
    return Companion.numbers(say("error"), scores.error, words.error_of)


def _measures(result: Corpus, say: Said, whole: bool) -> Iterator[Ranking]:
    every = [each for each in result.measures.values() if measured.ranked(each.scores)]
    wanted = usual(result.measures, result.main.scores.measure, whole)
    listed = [each for each in every if each.scores.measure in wanted]
    if not listed or (result.linked and not whole):
        return
    in_tokens = bool(say.facts["tokens"])
    rows = [_row(result, each, in_tokens and each is result.main, say) for each in listed]
    names, heads, means, spreads, *texts = zip(*rows, strict=True)
    quantiles = [
        Column(f"q{level}", own, f"{100 * level:.0f} %", as_written, spared=i % 2, under="of the texts")
        for i, (level, own) in enumerate(zip(LEVELS, texts, strict=True))
    ]
    quantiles[-1] = replace(quantiles[-1], says=say("says_quantile"))
    hidden = len(every) - len(listed)
    yield Ranking(
        title=say("by_measure"),
        of="measure",
        names=names,
        table=Table(
            Column("head", heads, "head"),
            Column("mean", means, "mean", as_written),
            Column("error", spreads, "± standard error", as_written, say("says_error")),
            *quantiles,
        ),
        hidden=hidden,
        unshown=say("more_measures", hidden) if hidden else "",
    )


def usual(measures: Iterable[str], main: str, whole: bool) -> list[str]:
    """Names of the measures to list: the usual ones, or all of them if `whole`."""
    told = list(measures)
    if whole or not set(_USUAL) <= set(told):
        return told
    return [each for each in told if each == main or each in _USUAL]


def _row(result: Corpus, scores: CorpusScores, in_tokens: bool, say: Said) -> tuple[str, ...]:
    place = measured.ranked(scores.scores)[0]
    form, mean = written(scores, in_tokens), float(scores.values[place])
    spread = _spread(scores, say).short(*place)
    if in_tokens:
        spread = words.error_of(float(np.exp(mean) * scores.error[place]))
    of_class = scores.agreement is not None  # which has no quantiles
    quantiles = ["" if of_class else form(float(each[place])) for each in scores.quantiles]
    name = say("what") if in_tokens else scores.scores.measure
    return name, named(result, place), form(mean), spread, *quantiles


def _links(result: Corpus, say: Said) -> Iterator[Ranking]:
    if result.linked is None or not (listed := measured.ranked(result.measure(GAIN).scores)):
        return
    link, beside, gain = (result.measure(each) for each in LINKS)
    places = listed[:_LISTED]
    own, alone = each_of(link.values, places), each_of(beside.values, places)
    reach = [Z * each for each in each_of(gain.error, places)]
    low, high = ([value + sign * each for value, each in zip(own, reach, strict=True)] for sign in (-1, 1))
    yield Ranking(
        title=say("link_title", int(gain.count[listed[0]])),
        of="head",
        names=tuple(named(result, place) for place in places),
        table=Table(
            Column("weight", own, "weight", weight, say("says_link")),
            Column("control_mean", alone, "distance alone", weight, say("says_alone")),
            Column("above_control", each_of(gain.values, places), "above control", _change, say("says_gain"),
                   Scale.around(gain.values)),
            Column("error", each_of(gain.error, places), "± standard error", words.error_of, "over texts"),
),
        measured="weight",
        marks=(
            Mark("span", "own", "", low, high),
            Mark("dot", "own", say("link_mark"), own),
            Mark("ring", "control", say("alone_mark"), alone),
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
