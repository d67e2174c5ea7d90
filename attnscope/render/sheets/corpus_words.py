"""The words of a corpus: which head is sharpest, what position alone can do, whether other texts say so."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from attnscope.printable import word
from attnscope.render.kit.numbers import counted, give_or_take, percent, weight, with_error
from attnscope.render.kit.words.command import asking_of_file
from attnscope.render.sheet import measured
from attnscope.render.sheet.said import Place, begun, named
from attnscope.render.sheet.sheet import Next
from attnscope.render.sheets.looking import many
from attnscope.results import Corpus
from attnscope.results.claims.corpus import DISTANCE_ALONE, GAIN, LEVELS, LINK, Case, CorpusRead, CorpusScores

FLOOR = 10  # texts: of fewer the answer says how few
_HALF = 0.5  # of a query's weight: a head that gives so much to one position is told
_POSITIONS = {"previous": "the token before", "next": "the token after", "self": "the token itself"}
_REASONS = 3
error = partial(give_or_take, decimals=None)


def answer(result: Corpus, in_tokens: bool) -> str:
    """What the case of the corpus allows to say, and how few texts it rests on."""
    said = _OF_LINKS if result.linked else _IN_TOKENS if in_tokens else _MEASURED
    told = said[result.case](result)
    few = 1 < result.read.texts < FLOOR and result.case is not Case.UNRANKED
    return f"{told} Only {counted(result.read.texts, 'text')}." if few else told


def _unranked(result: Corpus) -> str:
    absent = result.main.absent
    return f"No head has a number: {absent}." if absent else "No head has a number."


def _sharpest(result: Corpus) -> str:
    entropy = result.main
    best = _best(entropy)
    told = (
        f"Over {_texts(entropy, best)}, {named(result, best)} is the sharpest of {_heads(entropy)}: it looks "
        f"at about {_tokens(entropy.values[best])} of up to {counted(result.read.longest, 'token')}."
    )
    given = [
        f"{'it' if place == best else named(result, place)} gives {where} {share}"
        for where, share, place in _positions(result)
    ]
    if given:
        told += f" {begun(' and '.join(given[:2]))}: position alone can do this."
    return f"{told} Either half of the texts names the same sharpest head."


def _sharpest_of_none(result: Corpus) -> str:
    return _cannot_tell(result, "is sharpest", lambda value: f"about {_tokens(value)} tokens")


def _cannot_tell(result: Corpus, what: str, written: Callable[[float], str]) -> str:
    scores, heads = result.main, _heads(result.main)
    first, second = scores.strongest_of_halves
    if first is None or second is None:
        best = _best(scores)
        only = f"in it that is {named(result, best)} ({written(float(scores.values[best]))})"
        return f"One text cannot tell which of {heads} {what}: {only}, with no other to hold it against."
    a, b = (
        f"{named(result, place)} over {where} ({written(float(half[place]))})"
        for place, half, where in zip(
            (first, second), scores.halves, ("one half of them", "the other"), strict=True
        )
    )
    return f"These {counted(result.read.texts, 'text')} cannot tell which of {heads} {what}: {a}, {b}."


def _positions(result: Corpus) -> Iterator[tuple[str, str, Place]]:
    for measure, where in _POSITIONS.items():
        scores = result.measures.get(measure)
        best = None if scores is None else scores.strongest
        if scores is not None and best is not None and scores.values[best] >= _HALF:
            own, spread = float(scores.values[best]), float(scores.error[best])
            yield where, f"{weight(own)} {error(spread)}".strip(), best


def _strongest(result: Corpus) -> str:
    scores = result.main
    best, described = _best(scores), scores.scores.description
    written = partial(measured.written, scores.scores)
    low, high = (written(float(scores.quantiles[i][best])) for i in (0, len(LEVELS) - 1))
    middle = written(float(np.nanmedian(scores.values)))
    return (
        f"{named(result, best)} has the {_end(scores)} {described.amount} of {_heads(scores)}, "
        f"{written(float(scores.values[best]))} {error(float(scores.error[best]))} over "
        f"{_texts(scores, best)}, nine tenths of which lie from {low} to {high}; the median head has "
        f"{middle}. Either half of the texts names the same head."
    )


def _strongest_of_none(result: Corpus) -> str:
    scores = result.main
    what = f"has the {_end(scores)} {scores.scores.description.amount.removesuffix(',')}"
    return _cannot_tell(result, what, partial(measured.written, scores.scores))


def _of_classes(result: Corpus) -> str:
    scores = result.main
    assert scores.agreement is not None, "classes have a share of the texts"
    order = measured.ranked(scores.scores)
    best = max(order, key=lambda place: float(scores.agreement[place]))  # type: ignore[index]
    commonest, share = scores.scores.class_of(*best), percent(float(scores.agreement[best]))
    own = f"{named(result, best)} of its {scores.scores.description.name}"
    return f"Surest of {len(order)} heads is {own}: {commonest} in {share} of {_texts(scores, best)}."


def _end(scores: CorpusScores) -> str:
    return "least" if scores.scores.description.strong == "low" else "most"


def _best(scores: CorpusScores) -> Place:
    assert scores.strongest is not None, "there is one in every case that tells of one"
    return scores.strongest


def _heads(scores: CorpusScores) -> str:
    return counted(int((~np.isnan(scores.values)).sum()), "head")


def _texts(scores: CorpusScores, place: Place) -> str:
    return counted(int(scores.count[place]), "text")


def _tokens(entropy: float) -> str:
    return many(float(np.exp(entropy)))


def _linked(result: Corpus) -> str:
    link, alone, gain = (result.measure(each) for each in (LINK, DISTANCE_ALONE, GAIN))
    best, (source, target), held = _best(gain), result.linked or ("", ""), result.held_out
    assert held is not None, "it is what makes it one"
    own, others = (weight(float(each.values[best])) for each in (link, alone))
    more = with_error(float(gain.values[best]), float(gain.error[best]))
    told = (
        f"{source} words look at {target} words more than distance alone explains: {own} against {others} in "
        f"{named(result, best)} ({more}; on texts held out {with_error(*held)})"
    )
    count, of = int((gain.values > 0).sum()), _heads(gain)
    if result.case is Case.ALL_LINK:
        return (
            f"{told}. {count} of {of} do, so it may be the {target} words: the control knows distances only, "
            "not how much any word looks at them."
        )
    return f"{told}; {count} of {of} do."


def _linked_cannot_tell(result: Corpus) -> str:
    source, target = result.linked or ("", "")
    told = f"This corpus cannot tell whether a head links {source} to {target} beyond what distance explains"
    if result.held_out is None:
        return f"{told}: no text is left to judge it by."
    held = with_error(*result.held_out)
    return f"{told}: the heads chosen on one half of the texts give {held} on the other."


_MEASURED: dict[Case, Callable[[Corpus], str]] = {
    Case.UNRANKED: _unranked,
    Case.CLASSES: _of_classes,
    Case.CANNOT_TELL: _strongest_of_none,
    Case.STRONGEST: _strongest,
}
_IN_TOKENS = _MEASURED | {Case.CANNOT_TELL: _sharpest_of_none, Case.STRONGEST: _sharpest}
_OF_LINKS: dict[Case, Callable[[Corpus], str]] = {
    Case.UNRANKED: lambda result: f"No text has {link(result)}.",
    Case.CANNOT_TELL: _linked_cannot_tell,
    Case.LINKED: _linked,
    Case.ALL_LINK: _linked,
}


def link(result: Corpus) -> str:
    """`VERB→NOUN`."""
    return "→".join(result.linked or ())


def control(result: Corpus) -> str:
    """What is held against what: distances of a link, else the texts against one another."""
    if result.case is Case.CLASSES:
        return ""
    if result.linked is None:
        return "the texts cut into two halves: whether both name the same heads"
    source, target = result.linked
    return f"what any word gives at the distances at which {source} and {target} stand"


def notes(result: Corpus) -> Iterator[str]:
    yield read_words(result.read)
    if told := _left_out(result.read):
        yield told
    yield from result.notes


def read_words(read: CorpusRead) -> str:
    """How much was read."""
    told = f"{counted(read.texts, 'text')}, {counted(read.tokens, 'token')} (longest {read.longest:,})"
    return f"{told} · {read.padded:,} read beside longer ones, filled up" if read.padded else told


def _left_out(read: CorpusRead) -> str:
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


def following(result: Corpus) -> Next | None:
    """The other way round of a link; of a corpus with parts of speech a link; else how much is a sink."""
    run = result.provenance, result.kind, result.tower
    if len(result.read.files) > 1 or result.case is Case.UNRANKED:
        return None
    if result.linked is not None:
        pair = tuple(map(word, result.linked))
        asked = asking_of_file("corpus", *run, "--from-pos", pair[1], "--to-pos", pair[0])
        return Next("and the other way round?", asked)
    if result.read.tagged:
        asked = asking_of_file("corpus", *run, "--from-pos", "VERB", "--to-pos", "NOUN")
        return Next("does a head link parts of speech?", asked)
    if len(result.measures) > 1:
        return Next("how much of it is a sink?", asking_of_file("corpus", *run, "--measure", "sink"))
    return Next("and by all measures?", asking_of_file("corpus", *run))
