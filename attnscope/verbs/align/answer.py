"""Links words of two texts, or times words of a sound, by all heads of a model's cross-attention.

What the model reads and writes is captured and certified. Gold of other sentences and sounds is read one
case after the other in the same way, and a few of the cases are certified.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from attnscope.analysis.heads.view import without_padding
from attnscope.analysis.rows import rows_of, verdicts_of
from attnscope.capture.following.describe import names_in
from attnscope.capture.returned import Returned
from attnscope.capture.weights import Weights
from attnscope.errors import AttnscopeError, InputError
from attnscope.reference import exact
from attnscope.results import Verdict
from attnscope.results.base.groups import Groups, joined, sets_no_blanks, words_of
from attnscope.results.base.origin import worst
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs
from attnscope.tokens import Tokens
from attnscope.verbs.align.gold import GoldLinks, GoldTimes, read_links
from attnscope.verbs.align.judging import (
    Gold,
    Learnt,
    Pairs,
    Rows,
    Shares,
    WordWeights,
    agreement,
    by_sharpness,
    by_words,
    even,
    learn,
    left_out,
    mixed,
    reliabilities,
    score_diagonal,
    score_even,
    score_links,
    shuffled,
    strongest,
    sure,
)
from attnscope.verbs.align.result import (
    Alignment,
    Direction,
    Judged,
    LinkScore,
    TimeScore,
    Weighed,
    Weighing,
    WordLink,
)
from attnscope.vocabulary import Route

SAMPLE = 3  # cases of gold that are certified in full
Own = TypeVar("Own")
Case = TypeVar("Case")
Answer = TypeVar("Answer")
Sides = TypeVar("Sides")
OneGold = TypeVar("OneGold", GoldLinks, GoldTimes)
Taught = TypeVar("Taught", bound="CountsHeads")
Verdicts = tuple[tuple[Verdict, ...], ...]
# so many words; ways held against gold; how sure each answer is said to be, and whether it is right
Scored = tuple[int, tuple[LinkScore | TimeScore, ...], Iterable[float], Iterable[bool]]


class CountsHeads(Protocol):
    """Protocol: the shares of heads that were learnt from gold."""

    def shares_of(self, own: Any, /) -> Shares:
        """The share of each head in the answer about one reading."""


@dataclass(frozen=True, eq=False)
class Attended:
    """Attention weights of every chosen head of one reading, and the verdicts on them by layer."""

    weights: Rows
    verdicts: Verdicts
    keys: Tokens
    attention: Any


def attended(reading: Reading, chosen: Chosen) -> Attended:
    """Reads all chosen heads, recomputed and certified; as the model returns them where they cannot be."""
    with reading.listener.working("reading the attention"):
        attention = reading.attention(chosen)
        if isinstance(attention, Returned):
            layers: list[Any] = list(attention.layers)
        else:
            attention.check_in_place("words are linked and timed by their own rows")
            layers = [without_padding(attention.call(layer, block=chosen.block)) for layer in chosen.layers]
        rows = np.concatenate([rows_of(layer, chosen.heads) for layer in layers])
        verdicts = tuple(verdicts_of(layer, chosen.heads) for layer in layers)
    return Attended(rows, verdicts, names_in(layers)[1], attention)


def shares_of(reading: Reading, chosen: Chosen, rows: Rows) -> tuple[Weighing, Shares]:
    """Shares of heads without gold: equal for given or the model's own alignment heads, else by sharpness."""
    every = _every(chosen)
    named = (chosen.apart or every) if chosen.named else alignment_heads(reading)
    places = [place for place, head in enumerate(every) if head in named]
    if not places:
        return Weighing.SHARPNESS, by_sharpness(rows)
    shares = np.zeros(len(rows))
    shares[places] = even(len(places))
    return Weighing.GIVEN if chosen.named else Weighing.MODEL, shares


def alignment_heads(reading: Reading) -> frozenset[tuple[int, int]]:
    """The alignment heads of the model's generation config, as Whisper names them; empty for most models."""
    named = getattr(getattr(reading.model.module, "generation_config", None), "alignment_heads", None)
    return frozenset((int(layer), int(head)) for layer, head in named or ())


def _every(chosen: Chosen) -> list[tuple[int, int]]:
    return [(layer, head) for layer in chosen.layers for head in chosen.heads]


class Cases:
    """Reads gold of other sentences or sounds case by case, and certifies a few of the cases."""

    def __init__(self, reading: Reading, chosen: Chosen) -> None:
        self.reading, self.chosen = reading, chosen
        self._weights = Weights(reading.model.module, chosen.selection(heads=chosen.heads), chosen.block)
        self.verdicts = list[Verdicts]()
        self.skipped = 0

    def read(self, gold: Sequence[OneGold], make: "Callable[[Cases, OneGold, bool], Case]") -> list[Case]:
        """`make(self, gold, certify)` of each case; reports and leaves out what the model cannot read."""
        found, name = list[Case](), self.reading.model.name
        sampled = {0, len(gold) // 2, len(gold) - 1} if len(gold) > SAMPLE else set(range(len(gold)))
        for number, each in enumerate(gold):
            working = f"reading gold, {number} of {len(gold)}"
            try:
                with self.reading.listener.working(working):
                    found.append(make(self, each, number in sampled))
            except AttnscopeError as error:
                self.skipped += 1
                self.reading.listener.notice(f"{each.place}: left out: {error}")
        if gold and not found:
            raise InputError(f"{name} reads none of the cases of gold")
        return found

    def weights(self, reading: Reading, *, certify: bool) -> Rows:
        """Weights of all chosen heads on `reading`, certified on request."""
        if certify or self.chosen.route is Route.RETURNED:
            found = attended(replace(reading, captured=None), self.chosen)
            self.verdicts.append(found.verdicts)
            return found.weights
        with reading.running():
            layers = self._weights.read(reading.inputs, lambda _, weights: exact(weights[0]).cpu().numpy())
        return np.concatenate([layers[layer] for layer in self.chosen.layers])

    def worst(self, own: Verdicts) -> Verdicts:
        """The worst verdict of each head over the shown reading and the certified cases of gold."""
        every = [own, *self.verdicts]
        return tuple(
            tuple(worst(each[i][j] for each in every) for j in range(len(own[i]))) for i in range(len(own))
        )


@dataclass(frozen=True, eq=False)
class Told(Generic[Own]):
    """The shown reading by head: `rows` are weights of its words, `says` strengths of the answers."""

    own: Own
    rows: Rows
    says: Rows


class Aligning(ABC, Generic[OneGold, Sides, Own, Case, Taught, Answer]):
    """Base of word links and word times: reads gold, learns shares of heads, answers and scores.

    `gold` judges the answer, heads are learnt on `learn`: files, both read before a model is loaded.
    """

    def __init__(self, gold: Path | None = None, learn: Path | None = None) -> None:
        if gold is not None and gold == learn:
            raise InputError(
                "--gold and --learn are one file: leave --gold out, each part is judged by the others"
            )
        self.gold_name, self.learn_name = ("" if each is None else each.name for each in (gold, learn))
        self.gold: tuple[OneGold, ...] = () if gold is None else self.read(gold)
        self.learn: tuple[OneGold, ...] = () if learn is None else self.read(learn)
        self.check()

    @abstractmethod
    def read(self, file: Path) -> tuple[OneGold, ...]:
        """Reads the gold cases of a file."""

    @abstractmethod
    def check(self) -> None:
        """Raises `InputError` where the gold cannot be learnt on or judged by."""

    @abstractmethod
    def sides(self, reading: Reading) -> Sides:
        """The words to align; `InputError` where a side has none, or not those of gold."""

    @abstractmethod
    def told(self, reading: Reading, shown: Attended, sides: Sides) -> Told[Own]:
        """The weights that heads give the words of the shown reading."""

    @abstractmethod
    def case(self, cases: Cases, gold: OneGold, certify: bool) -> Case:
        """Reads one case of gold with the model."""

    @abstractmethod
    def own_case(self, told: Told[Own], gold: OneGold) -> Case:
        """The shown reading as a case of gold."""

    @abstractmethod
    def learnt(self, cases: Sequence[Case]) -> Taught:
        """Learns the shares of heads from cases of gold."""

    @abstractmethod
    def answered(
        self,
        told: Told[Own],
        shares: Shares,
        learnt: Taught | None,
        gold: OneGold | None,
        sides: Sides,
        **parts: Any,
    ) -> Answer:
        """The result; `parts` are the fields that links and times share."""

    @abstractmethod
    def scored(
        self, cases: Sequence[Case], learnt: Sequence[Taught] | None, weigh: Callable[[Rows], Shares]
    ) -> Scored:
        """Number of words, scores of the answer and of baselines, confidences, and whether each is right."""

    def answer(self, reading: Reading, chosen: Chosen) -> Answer:
        """Aligns the reading by heads learnt from gold where there is some, else by given or sharp heads."""
        if self.learn and chosen.apart:
            raise InputError("heads that are given one by one count alike, --learn says how much each does")
        own = next((each for each in self.gold if each.of_what_is_shown), None)
        sides = self.sides(reading)
        shown = attended(reading, chosen)
        told = self.told(reading, shown, sides)
        cases = Cases(reading, chosen)
        learnt_on = cases.read(self.learn, self.case)
        learnt = self.learnt(learnt_on) if learnt_on else None
        weighing, shares = shares_of(reading, chosen, told.rows)
        if learnt is not None:
            weighing, shares = Weighing.LEARNT, learnt.shares_of(told.own)
        heads = zip(_every(chosen), shares, strict=True)
        weighed = (Weighed(*head, float(share)) for head, share in heads if share)
        known = [self.own_case(told, own)] if own is not None else cases.read(self.gold, self.case)
        out = not known
        judged = None
        if known or learnt is not None:
            every = known or learnt_on
            by = None if learnt is None else left_out(every, self.learnt) if out else [learnt] * len(every)
            words, scores, said, right = self.scored(
                every, by, lambda rows: shares_of(reading, chosen, rows)[1]
            )
            judged = Judged(
                name=self.learn_name if out else self.gold_name,
                cases=len(every),
                words=words,
                held_out=out,
                scores=scores,
                reliability=() if by is None else reliabilities(said, right),
                skipped=cases.skipped,
                certified=len(cases.verdicts),
            )
        return self.answered(
            told,
            shares,
            learnt,
            own,
            sides,
            kind=chosen.kind,
            layers=chosen.layers,
            heads=chosen.heads,
            weighing=weighing,
            weighed=tuple(sorted(weighed, key=lambda each: -each.share)),
            agreement=agreement(told.says, shares),
            shuffled=shuffled(told.says, shares),
            verdicts=cases.worst(shown.verdicts),
            provenance=shown.attention.provenance,
            judged=judged,
            learnt_on=self.learn_name,
            tower=str(shown.attention.tower),
            notes=(shown.attention.reason,) if isinstance(shown.attention, Returned) else (),
        )


@dataclass(frozen=True, eq=False)
class Side:
    """The words of one text: the token positions of each, and their names."""

    groups: Groups
    words: Tokens

    @classmethod
    def of(cls, tokens: Tokens, *, plain: bool = False) -> "Side":
        """Words between blanks, punctuation at their ends apart unless `plain`, without special tokens.

        In scripts without blanks the words are the tokenizer's.
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
    """Whether a tokenizer word continues the one before: no blank between, no punctuation at the seam."""
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
    """Raises `InputError` where a word begins with the first token, which no decoder row writes."""
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
    """Links the words of two texts: likely links by learnt heads, else the strongest of either side."""

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
            score_links("mean of heads", means, [strongest(each)[0] for each in means], true),
            score_diagonal(true),
            score_even(true),
        )
        said = chain.from_iterable(c[own].tolist() for c, own in zip(chances, links, strict=True))
        right = chain.from_iterable(g.possible[own].tolist() for g, own in zip(true, links, strict=True))
        return sum(len(each.sure) for each in true), scores, said, right


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
    sides = {(True, False): Direction.TARGET, (False, True): Direction.SOURCE}
    found = list[WordLink]()
    for query, key in np.argwhere(linked).tolist():
        strength, gold = float(strengths[query, key]), None
        if known is not None:
            gold = "sure" if (key, query) in known.sure else "none"
            gold = "possible" if gold == "none" and (key, query) in known.possible else gold
        side = sides.get(
            (bool(forth[query, key]), bool(back[query, key])), Direction.BOTH
        )  # as good from both
        found.append(WordLink(query, key, strength, strength if chances else None, side, gold))
    return tuple(found)
