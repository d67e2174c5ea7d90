"""Which word of the source each word of the target stands for, beside what gold or shuffled heads say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from attnscope.analysis.claims.alignment.gold import GoldLinks, read_links
from attnscope.analysis.claims.alignment.judging import (
    Gold,
    forward,
    reliabilities,
    score_diagonal,
    score_even,
    score_links,
)
from attnscope.analysis.claims.alignment.linking import (
    Learnt,
    Pairs,
    WordWeights,
    by_words,
    direction,
    held_out,
    learn,
    strongest,
    sure,
)
from attnscope.analysis.claims.alignment.weighing import agreement, mixed, shuffled
from attnscope.errors import InputError
from attnscope.results.claims.alignment import Alignment, Judged, Reliability, Weighing, WordLink
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.aligning import (
    AlignQuestion,
    Cases,
    Side,
    attended,
    shares_of,
    weighed,
    written_by,
)
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs


@dataclass(frozen=True, eq=False)
class _Pair:
    """One pair of gold as it was read."""

    words: WordWeights
    gold: Gold


def check_gold(asked: AlignQuestion) -> None:
    """Raises `InputError` for files that are no gold, before any model is read."""
    _gold(asked)


def _gold(asked: AlignQuestion) -> tuple[tuple[GoldLinks, ...], tuple[GoldLinks, ...]]:
    gold = () if asked.gold is None else read_links(asked.gold)
    learn_from = () if asked.learn is None else read_links(asked.learn)
    if learn_from and learn_from[0].source is None:
        raise InputError(f"{learn_from[0].place}: heads are learnt on source ||| target ||| links")
    if learn_from and len(learn_from) < 2:
        raise InputError(f"{learn_from[0].place}: one pair is too few to learn from: two at least")
    return gold, learn_from


def align_words(reading: Reading, chosen: Chosen, asked: AlignQuestion) -> Alignment:
    """The links of what was read: learnt on gold where there is some, else by how sharp heads are."""
    gold, learn_from = _gold(asked)
    source, target = _sides(reading, plain=reading.encoded.tokens.words_given)
    if gold and gold[0].source is None:
        gold[0].check(len(source.groups), len(target.groups))
    shown = attended(reading, chosen)
    words = by_words(shown.weights, target.groups, source.groups)
    cases = Cases(reading, chosen)
    learnt_on = _pairs(cases, learn_from)
    learnt = (
        learn([each.words for each in learnt_on], [each.gold.sure for each in learnt_on])
        if learnt_on
        else None
    )
    weighing, shares = shares_of(reading, chosen, words.writes)
    if learnt is not None:
        weighing, shares = Weighing.LEARNT, learnt.shares
    strengths = mixed(words.says, shares) if learnt is None else learnt.chances(words)
    result = Alignment(
        kind=chosen.kind,
        query_tokens=target.words,
        key_tokens=source.words,
        layers=chosen.layers,
        heads=chosen.heads,
        weighing=weighing,
        weighed=weighed(chosen, shares),
        strengths=strengths,
        links=_links(strengths, learnt is not None, gold),
        agreement=agreement(words.says, shares),
        shuffled=shuffled(words.says, shares),
        verdicts=shown.verdicts,
        provenance=shown.attention.provenance,
        learnt_on="" if asked.learn is None else asked.learn.name,
        tower=shown.tower,
        notes=(*reading.notes, *shown.notes),
    )
    judged = _judged(asked, cases, gold, learnt, learnt_on, words, chosen)
    return replace(result, judged=judged, verdicts=cases.worst(shown.verdicts))


def _sides(reading: Reading, *, plain: bool) -> tuple[Side, Side]:
    if reading.target is None:
        raise InputError(f"{reading.model.name} writes no target: align needs a decoder beside an encoder")
    source = Side.of(reading.encoded.tokens, plain=plain)
    target = Side.of(reading.target.tokens, plain=plain)
    if not target.groups:
        raise InputError(f"{reading.model.name} writes no word: --target says what stands for the text")
    if not source.groups:
        raise InputError("the source has no word")
    written_by(target.groups, reading.model.name)
    return source, target


def _links(strengths: Pairs, chances: bool, gold: Sequence[GoldLinks]) -> tuple[WordLink, ...]:
    """The links in the order of the target: the strongest of either side, or those that are likely."""
    forth, back = strongest(strengths)
    linked = sure(strengths) if chances else forth | back
    known = gold[0] if gold and gold[0].source is None else None
    return tuple(
        WordLink(
            query,
            key,
            float(strengths[query, key]),
            float(strengths[query, key]) if chances else None,
            direction(bool(forth[query, key]), bool(back[query, key])),
            None if known is None else _in_gold(known, query, key),
        )
        for query, key in np.argwhere(linked).tolist()
    )


def _in_gold(gold: GoldLinks, query: int, key: int) -> str:
    pair = key, query
    return "sure" if pair in gold.sure else "possible" if pair in gold.possible else "none"


def _pairs(cases: Cases, gold: Sequence[GoldLinks]) -> list[_Pair]:
    """All pairs of gold that the model reads, by words between blanks."""

    def make(pair: GoldLinks, certify: bool) -> _Pair:
        model, shown = cases.reading.model, cases.reading
        encoded = model.encode((pair.source or "",))
        target = model.target(encoded, pair.target)
        asked = Inputs(pair.source, target=pair.target)
        reading = replace(shown, asked=asked, encoded=encoded, target=target)
        sides = _sides(reading, plain=True)
        counts = len((pair.source or "").split()), len((pair.target or "").split())
        if counts != (len(sides[0].groups), len(sides[1].groups)):
            raise InputError(f"{model.name} does not read every word")
        words = by_words(cases.weights(reading, certify=certify), sides[1].groups, sides[0].groups)
        return _Pair(words, Gold(pair.matrix(*counts, sure=True), pair.matrix(*counts, sure=False)))

    made = [each for _, each in cases.read(gold, make)]
    if gold and not made:
        raise InputError(f"{cases.reading.model.name} reads none of the pairs of gold")
    return made


def _judged(
    asked: AlignQuestion,
    cases: Cases,
    gold: Sequence[GoldLinks],
    learnt: Learnt | None,
    learnt_on: Sequence[_Pair],
    words: WordWeights,
    chosen: Chosen,
) -> Judged | None:
    """How the answer's way does on gold: that of `--gold`, or each part of `--learn` by the others."""
    reading = cases.reading
    if not gold and learnt is None:
        return None
    out = not gold
    if out:
        pairs = list(learnt_on)
        chances = held_out([each.words for each in pairs], [each.gold.sure for each in pairs])
    else:
        pairs = _pairs(cases, gold) if gold[0].source is not None else [_own(words, gold[0])]
        chances = [] if learnt is None else [learnt.chances(each.words) for each in pairs]
    true = [each.gold for each in pairs]
    if chances:
        links = [sure(each) for each in chances]
    else:
        chances = [mixed(p.words.says, shares_of(reading, chosen, p.words.writes)[1]) for p in pairs]
        links = [np.logical_or(*strongest(each)) for each in chances]
    means = [each.words.writes.mean(axis=0) for each in pairs]
    file = asked.learn if out else asked.gold
    return Judged(
        name="" if file is None else file.name,
        cases=len(pairs),
        words=sum(len(each.sure) for each in true),
        held_out=out,
        scores=(
            score_links("these links", chances, links, true),
            score_links("mean of heads", means, list(map(forward, means)), true),
            score_diagonal(true),
            score_even(true),
        ),
        reliability=_reliability(chances, links, true) if learnt is not None else (),
        skipped=cases.skipped,
        certified=len(cases.verdicts),
    )


def _own(words: WordWeights, gold: GoldLinks) -> _Pair:
    targets, sources = words.writes.shape[1:]
    return _Pair(
        words,
        Gold(gold.matrix(sources, targets, sure=True), gold.matrix(sources, targets, sure=False)),
    )


def _reliability(
    chances: Sequence[np.ndarray], links: Sequence[np.ndarray], gold: Sequence[Gold]
) -> tuple[Reliability, ...]:
    said = chain.from_iterable(each[linked].tolist() for each, linked in zip(chances, links, strict=True))
    right = chain.from_iterable(
        each.possible[linked].tolist() for each, linked in zip(gold, links, strict=True)
    )
    return reliabilities(said, right)
