"""Which word stands for which, or when each is heard, by all heads of a model's cross-attention.

What the model reads and writes is captured and certified. Gold of other sentences and sounds is read one by
one through the same doors, and a few of its cases are certified.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from attnscope.analysis.claims.alignment import gold as golds
from attnscope.analysis.claims.alignment.weighing import Rows, Shares, by_sharpness, even
from attnscope.analysis.claims.finding.rows import rows_of, verdicts_of
from attnscope.analysis.padding import without_padding
from attnscope.capture.faults import if_it_runs
from attnscope.capture.returned import Returned
from attnscope.capture.routes import Selection
from attnscope.capture.weights import Weights
from attnscope.errors import AttnscopeError, InputError
from attnscope.reference import exact
from attnscope.results import Verdict
from attnscope.results.base.groups import Groups, joined, sets_no_blanks, words_of
from attnscope.results.base.origin import worst
from attnscope.results.claims.alignment import Weighed, Weighing
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.vocabulary import Route

SAMPLE = 3  # cases of gold that are certified in full
Case = TypeVar("Case")
Gold = TypeVar("Gold", golds.GoldLinks, golds.GoldTimes)
Verdicts = tuple[tuple[Verdict, ...], ...]


@dataclass(frozen=True)
class AlignQuestion:
    """`gold` is what the answer is held against, `learn` what heads are learnt on; both are files."""

    gold: Path | None = None
    learn: Path | None = None

    def __post_init__(self) -> None:
        if self.gold is not None and self.gold == self.learn:
            raise InputError(
                "--gold and --learn are one file: leave --gold out, each part is judged by the others"
            )


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
            layers = [without_padding(attention.call(layer, block=chosen.block)) for layer in chosen.layers]
        rows = np.concatenate([rows_of(layer, chosen.heads) for layer in layers])
        verdicts = tuple(verdicts_of(layer, chosen.heads) for layer in layers)
    return Attended(rows, verdicts, layers[0].key_tokens, attention)


def shares_of(reading: Reading, chosen: Chosen, rows: Rows) -> tuple[Weighing, Shares]:
    """What heads count without gold: those that the model names itself alike, else by how sharp they are."""
    own = alignment_heads(reading)
    places = [place for place, head in enumerate(_every(chosen)) if head in own]
    if not places:
        return Weighing.SHARPNESS, by_sharpness(rows)
    shares = np.zeros(len(rows))
    shares[places] = even(len(places))
    return Weighing.MODEL, shares


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
        selection = Selection(chosen.layers, chosen.heads, chosen.kind, chosen.tower.pattern, chosen.route)
        self._weights = Weights(reading.model.module, selection, chosen.block)
        self.verdicts = list[Verdicts]()
        self.skipped = 0

    def read(self, gold: Sequence[Gold], make: "Any") -> Iterator[tuple[Gold, Any]]:
        """What `make` says of each case; those that the model cannot read are told and left out."""
        sampled = {0, len(gold) // 2, len(gold) - 1} if len(gold) > SAMPLE else set(range(len(gold)))
        for number, each in enumerate(gold):
            working = f"reading gold, {number} of {len(gold)}"
            try:
                with self.reading.listener.working(working):
                    made = make(each, number in sampled)
            except AttnscopeError as error:
                self.skipped += 1
                self.reading.listener.notice(f"{each.place}: left out: {error}")
                continue
            yield each, made

    def weights(self, reading: Reading, *, certify: bool) -> Rows:
        """The weights of all heads while `reading` is read."""
        if certify or self.chosen.route is Route.RETURNED:
            found = attended(replace(reading, captured=None, keeper=None), self.chosen)
            self.verdicts.append(found.verdicts)
            return found.weights
        with if_it_runs(reading.model.module, reading.inputs, reading.model.name):
            layers = self._weights.read(reading.inputs, lambda _, weights: exact(weights[0]).cpu().numpy())
        return np.concatenate([layers[layer] for layer in self.chosen.layers])

    def worst(self, own: Verdicts) -> Verdicts:
        """The worst verdict of each head in the reading that is shown and in the sample of gold."""
        every = [own, *self.verdicts]
        return tuple(
            tuple(worst(each[i][j] for each in every) for j in range(len(own[i]))) for i in range(len(own))
        )
