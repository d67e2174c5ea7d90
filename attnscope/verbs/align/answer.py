"""Which word stands for which, or when each is heard, by all heads of a model's cross-attention.

What the model reads and writes is captured and certified. Gold of other sentences and sounds is read one by
one through the same doors, and a few of its cases are certified.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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
from attnscope.results.base.origin import worst
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.verbs.align import gold as golds
from attnscope.verbs.align.judging import (
    Rows,
    Shares,
    agreement,
    by_sharpness,
    even,
    left_out,
    reliabilities,
    shuffled,
)
from attnscope.verbs.align.result import Judged, LinkScore, TimeScore, Weighed, Weighing
from attnscope.vocabulary import Route

SAMPLE = 3  # cases of gold that are certified in full
Own = TypeVar("Own")
Case = TypeVar("Case")
Answer = TypeVar("Answer")
Sides = TypeVar("Sides")
Gold = TypeVar("Gold", golds.GoldLinks, golds.GoldTimes)
Learnt = TypeVar("Learnt", bound="CountsHeads")
Verdicts = tuple[tuple[Verdict, ...], ...]


class CountsHeads(Protocol):
    """What was learnt of gold."""

    def shares_of(self, own: Any, /) -> Shares:
        """How much each head counts in a reading."""


@dataclass(frozen=True, eq=False)
class Attended:
    """The weights of every chosen head of one reading, and the verdicts on them by layer."""

    weights: Rows
    verdicts: Verdicts
    keys: Tokens
    attention: Any

    @property
    def tower(self) -> str:
        return str(self.attention.tower)

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.attention.reason,) if isinstance(self.attention, Returned) else ()


def attended(reading: Reading, chosen: Chosen) -> Attended:
    """All chosen heads, recomputed and certified; as the model returns them where they cannot be."""
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
    """What heads count without gold: those that are given, or the model names, alike, else by sharpness."""
    every = _every(chosen)
    named = (chosen.apart or every) if chosen.named else alignment_heads(reading)
    places = [place for place, head in enumerate(every) if head in named]
    if not places:
        return Weighing.SHARPNESS, by_sharpness(rows)
    shares = np.zeros(len(rows))
    shares[places] = even(len(places))
    return Weighing.GIVEN if chosen.named else Weighing.MODEL, shares


def alignment_heads(reading: Reading) -> frozenset[tuple[int, int]]:
    """The heads that the model's own generation settings name, as Whisper's do; none of most models."""
    named = getattr(getattr(reading.model.module, "generation_config", None), "alignment_heads", None)
    return frozenset((int(layer), int(head)) for layer, head in named or ())


def _every(chosen: Chosen) -> list[tuple[int, int]]:
    return [(layer, head) for layer in chosen.layers for head in chosen.heads]


def weighed(chosen: Chosen, shares: Shares) -> tuple[Weighed, ...]:
    """Every head that counts, most first."""
    every = [
        Weighed(*head, float(share)) for head, share in zip(_every(chosen), shares, strict=True) if share
    ]
    return tuple(sorted(every, key=lambda each: -each.share))


class Cases:
    """Gold of other sentences or sounds, read case by case; a few are certified."""

    def __init__(self, reading: Reading, chosen: Chosen) -> None:
        self.reading, self.chosen = reading, chosen
        self._weights = Weights(reading.model.module, chosen.selection(heads=chosen.heads), chosen.block)
        self.verdicts = list[Verdicts]()
        self.skipped = 0

    def read(self, gold: Sequence[Gold], make: "Callable[[Cases, Gold, bool], Case]") -> list[Case]:
        """What `make` says of each case; those that the model cannot read are told and left out."""
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
        """The weights of all heads while `reading` is read."""
        if certify or self.chosen.route is Route.RETURNED:
            found = attended(replace(reading, captured=None), self.chosen)
            self.verdicts.append(found.verdicts)
            return found.weights
        with reading.running():
            layers = self._weights.read(reading.inputs, lambda _, weights: exact(weights[0]).cpu().numpy())
        return np.concatenate([layers[layer] for layer in self.chosen.layers])

    def worst(self, own: Verdicts) -> Verdicts:
        """The worst verdict of each head in the reading that is shown and in the sample of gold."""
        every = [own, *self.verdicts]
        return tuple(
            tuple(worst(each[i][j] for each in every) for j in range(len(own[i]))) for i in range(len(own))
        )


@dataclass(frozen=True, eq=False)
class Told(Generic[Own]):
    """What heads say of the reading that is shown, and what they say of its rows: both by head."""

    own: Own
    rows: Rows
    says: Rows


class Aligning(ABC, Generic[Gold, Sides, Own, Case, Learnt, Answer]):
    """What is asked: `gold` is what the answer is held against, `learn` what heads are learnt on; files.

    Both are read at once, so that what is wrong with them is told before any model is.
    """

    def __init__(self, gold: Path | None = None, learn: Path | None = None) -> None:
        if gold is not None and gold == learn:
            raise InputError(
                "--gold and --learn are one file: leave --gold out, each part is judged by the others"
            )
        self.gold_name, self.learn_name = ("" if each is None else each.name for each in (gold, learn))
        self.gold: tuple[Gold, ...] = () if gold is None else self.read(gold)
        self.learn: tuple[Gold, ...] = () if learn is None else self.read(learn)
        self.check()

    @abstractmethod
    def read(self, file: Path) -> tuple[Gold, ...]:
        """The cases of a file."""

    @abstractmethod
    def check(self) -> None:
        """Raises `InputError` where gold is none to learn on, or to judge by."""

    @abstractmethod
    def sides(self, reading: Reading) -> Sides:
        """What stands for what; `InputError` where one side has no word, or not those of gold."""

    @abstractmethod
    def told(self, reading: Reading, shown: Attended, sides: Sides) -> Told[Own]:
        """What heads say of the reading that is shown."""

    @abstractmethod
    def case(self, cases: Cases, gold: Gold, certify: bool) -> Case:
        """A case of gold, read."""

    @abstractmethod
    def own_case(self, told: Told[Own], gold: Gold) -> Case:
        """The reading that is shown, with its gold."""

    @abstractmethod
    def learnt(self, cases: Sequence[Case]) -> Learnt:
        """What is learnt of these."""

    @abstractmethod
    def answered(
        self,
        told: Told[Own],
        shares: Shares,
        learnt: Learnt | None,
        gold: Gold | None,
        sides: Sides,
        **parts: Any,
    ) -> Answer:
        """The result, whose other `parts` are known."""

    @abstractmethod
    def scored(
        self, cases: Sequence[Case], learnt: Sequence[Learnt] | None, weigh: Callable[[Rows], Shares]
    ) -> "Scored":
        """How the answer's way does, and others."""

    def answer(self, reading: Reading, chosen: Chosen) -> Answer:
        """By heads as gold teaches where there is some to learn on, else by how sharp they are."""
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
        known = [self.own_case(told, own)] if own is not None else cases.read(self.gold, self.case)
        out = not known
        judged = None
        if known or learnt is not None:
            every = known or learnt_on
            by = None if learnt is None else left_out(every, self.learnt) if out else [learnt] * len(every)
            scored = self.scored(every, by, lambda rows: shares_of(reading, chosen, rows)[1])
            judged = Judged(
                name=self.learn_name if out else self.gold_name,
                cases=len(every),
                words=scored.words,
                held_out=out,
                scores=scored.scores,
                reliability=() if by is None else reliabilities(scored.said, scored.right),
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
            weighed=weighed(chosen, shares),
            agreement=agreement(told.says, shares),
            shuffled=shuffled(told.says, shares),
            verdicts=cases.worst(shown.verdicts),
            provenance=shown.attention.provenance,
            judged=judged,
            learnt_on=self.learn_name,
            tower=shown.tower,
            notes=shown.notes,
        )


@dataclass(frozen=True, eq=False)
class Scored:
    """Ways held against gold of so many words; how sure each answer is `said` to be, and whether it is."""

    words: int
    scores: tuple[LinkScore | TimeScore, ...]
    said: Iterable[float]
    right: Iterable[bool]
