"""Which word of the source each word of the target stands for, beside what gold or shuffled heads say.

The words of a text that is read or written stand here too, of whatever pieces the tokenizer makes them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from attnscope.errors import InputError
from attnscope.results.base.groups import Groups, joined, sets_no_blanks, words_of
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs
from attnscope.tokens import Tokens
from attnscope.verbs.align.answer import Aligning, Attended, Cases, Scored, Told
from attnscope.verbs.align.gold import GoldLinks, read_links
from attnscope.verbs.align.judging import (
    Gold,
    Learnt,
    Pairs,
    Rows,
    Shares,
    WordWeights,
    by_words,
    direction,
    forward,
    learn,
    mixed,
    score_diagonal,
    score_even,
    score_links,
    strongest,
    sure,
)
from attnscope.verbs.align.result import Alignment, WordLink


@dataclass(frozen=True, eq=False)
class Side:
    """The words of one text: the tokens of each, and what they are called."""

    groups: Groups
    words: Tokens

    @classmethod
    def of(cls, tokens: Tokens, *, plain: bool = False) -> "Side":
        """Words between blanks, marks at their ends apart unless these are `plain`; special tokens are none.

        Of scripts that set no blanks words are the tokenizer's.
        """
        own = replace(tokens, words_given=False) if not plain else tokens
        special = {i for i, token in enumerate(tokens.items) if token.special}
        groups = list[list[int]]()
        for group in words_of(own):
            if not special & {*group}:
                if groups and goes_on(own, groups[-1], group, plain=plain):
                    groups[-1].extend(group)
                else:
                    groups.append([*group])
        found = tuple(map(tuple, groups))
        return cls(found, joined(tokens, found))


def goes_on(tokens: Tokens, before: Sequence[int], group: Sequence[int], *, plain: bool) -> bool:
    """Whether a word of the tokenizer belongs to the one before: no blank between, no mark at an end."""
    last, first = tokens.items[before[-1]], tokens.items[group[0]]
    if last.span is None or first.span is None or last.part != first.part or first.part >= len(tokens.texts):
        return False
    text, (_, end), (start, _) = tokens.texts[first.part], last.span, first.span
    between = text[end : start + 1] if start >= end else ""
    if any(each.isspace() for each in between) or text[end - 1 : end].isspace():
        return False
    if plain:
        return True
    if sets_no_blanks(text[end - 1 : end]) or sets_no_blanks(text[start : start + 1]):
        return False
    left, right = text[:end].split()[-1], text[start:].split()[0]
    return any(map(str.isalnum, left)) and any(map(str.isalnum, right))


def written_by(groups: Groups, name: str) -> None:
    """Raises `InputError` where a word has no row before it, which writes it."""
    if any(word[0] == 0 for word in groups):
        raise InputError(
            f"{name}: the first token of the target is a word: nothing writes it, begin with a start"
        )


@dataclass(frozen=True, eq=False)
class _Pair:
    words: WordWeights
    gold: Gold


_Sides = tuple[Side, Side]


class AligningWords(Aligning[GoldLinks, _Sides, WordWeights, _Pair, Learnt, Alignment]):
    """The links of what is read: the likely ones by what gold teaches, else the strongest of either side."""

    def read(self, file: Path) -> tuple[GoldLinks, ...]:
        return read_links(file)

    def check(self) -> None:
        if self.learn and self.learn[0].source is None:
            raise InputError(f"{self.learn[0].place}: heads are learnt on source ||| target ||| links")
        if len(self.learn) == 1:
            raise InputError(f"{self.learn[0].place}: one pair is too few to learn from: two at least")

    def sides(self, reading: Reading) -> _Sides:
        source, target = sides_of(reading, plain=reading.encoded.tokens.words_given)
        if self.gold and self.gold[0].of_what_is_shown:
            self.gold[0].check(len(source.groups), len(target.groups))
        return source, target

    def told(self, reading: Reading, shown: Attended, sides: _Sides) -> Told[WordWeights]:
        source, target = sides
        words = by_words(shown.weights, target.groups, source.groups)
        return Told(words, words.writes, words.says)

    def case(self, cases: Cases, gold: GoldLinks, certify: bool) -> _Pair:
        model, shown = cases.reading.model, cases.reading
        encoded = model.encode((gold.source or "",))
        target = model.target(encoded, gold.target)
        asked = Inputs(gold.source, target=gold.target)
        reading = replace(shown, asked=asked, encoded=encoded, target=target)
        source, said = sides_of(reading, plain=True)
        if (len(source.groups), len(said.groups)) != gold.counts:
            raise InputError(f"{model.name} does not read every word")
        words = by_words(cases.weights(reading, certify=certify), said.groups, source.groups)
        return self.own_case(Told(words, words.writes, words.says), gold)

    def own_case(self, told: Told[WordWeights], gold: GoldLinks) -> _Pair:
        targets, sources = told.own.writes.shape[1:]
        matrices = (gold.matrix(sources, targets, sure=only) for only in (True, False))
        return _Pair(told.own, Gold(*matrices))

    def learnt(self, cases: Sequence[_Pair]) -> Learnt:
        return learn([each.words for each in cases], [each.gold.sure for each in cases])

    def answered(
        self,
        told: Told[WordWeights],
        shares: Shares,
        learnt: Learnt | None,
        gold: GoldLinks | None,
        sides: _Sides,
        **parts: Any,
    ) -> Alignment:
        source, target = sides
        strengths = mixed(told.says, shares) if learnt is None else learnt.chances(told.own)
        return Alignment(
            query_tokens=target.words,
            key_tokens=source.words,
            strengths=strengths,
            links=_links(strengths, learnt is not None, gold),
            **parts,
        )

    def scored(
        self, cases: Sequence[_Pair], learnt: Sequence[Learnt] | None, weigh: Callable[[Rows], Shares]
    ) -> Scored:
        true = [each.gold for each in cases]
        if learnt is not None:
            chances = [way.chances(each.words) for way, each in zip(learnt, cases, strict=True)]
            links = [sure(each) for each in chances]
        else:
            chances = [mixed(each.words.says, weigh(each.words.writes)) for each in cases]
            links = [np.logical_or(*strongest(each)) for each in chances]
        means = [each.words.writes.mean(axis=0) for each in cases]
        scores = (
            score_links("these links", chances, links, true),
            score_links("mean of heads", means, list(map(forward, means)), true),
            score_diagonal(true),
            score_even(true),
        )
        said = chain.from_iterable(c[own].tolist() for c, own in zip(chances, links, strict=True))
        right = chain.from_iterable(g.possible[own].tolist() for g, own in zip(true, links, strict=True))
        return Scored(sum(len(each.sure) for each in true), scores, said, right)


def sides_of(reading: Reading, *, plain: bool) -> _Sides:
    """The words of the source and of the target; `InputError` where one has none."""
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


def _links(strengths: Pairs, chances: bool, known: GoldLinks | None) -> tuple[WordLink, ...]:
    forth, back = strongest(strengths)
    linked = sure(strengths) if chances else forth | back
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
