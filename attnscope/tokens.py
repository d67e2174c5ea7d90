"""Tokens: what the model read, tied to the text that it was read from.

Labels are cut from the source text by the tokenizer's own offsets, so that byte-level and sentence-piece
vocabularies show real characters. This module knows no tokenizer and imports no torch: `attnscope.model`
fills it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from attnscope.errors import Damaged, InputError, listed, nearest
from attnscope.printable import VISIBLE, printable

_LISTED = 40  # tokens that a message names at most, about
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_VISIBLE = VISIBLE | {" ": "␣", "\u3000": "␣"}
_SPELLED = str.maketrans({"▁": "␣", "Ġ": "␣", "Ċ": "↵", "č": "␍", "ĉ": "⇥"})  # blanks in vocabularies


@dataclass(frozen=True)
class Token:
    """One token of the model's input.

    `piece` is the vocabulary's own spelling (`##ing`, `Ġdoor`); `text` the exact characters of the source
    text; `span` their place in it, None for a token that the tokenizer added; `word` counts the words of one
    text; `part` says which text (0, or 1 for the second sentence of a pair). `padding` fills up a text to the
    length of others in one batch, and the model was told so. `special` is one that stands for no text,
    `unknown` one that the vocabulary cannot spell. `id` is its number there, None without one; `position` and
    `label` are its place and how it is called.
    """

    id: int
    piece: str
    text: str
    span: tuple[int, int] | None
    word: int | None
    part: int = 0
    special: bool = False
    unknown: bool = False
    padding: bool = False

    def lies_within(self, texts: Sequence[str]) -> bool:
        """Whether its span lies in its text, as far as that is there."""
        if self.part < 0 or self.span is None:
            return self.part >= 0
        start, end = self.span
        return 0 <= start <= end and (self.part >= len(texts) or end <= len(texts[self.part]))

    @property
    def added(self) -> bool:
        """Whether the tokenizer put it around the text; what the user typed has a place in it."""
        return self.special and self.span is None

    @property
    def name(self) -> str:
        """How the token is called on screen, before repeated tokens get their position."""
        if self.special or self.unknown:
            return printable(self.piece)
        stripped = self.text.strip()
        if not stripped:
            spaces = "".join(_VISIBLE.get(character) or printable(character) for character in self.text)
            return spaces or printable(self._as_blank())
        continued = self.piece.startswith("##") and stripped != self.piece
        return ("##" if continued else "") + printable(stripped)

    def _as_blank(self) -> str:
        """The piece of a token without characters, visible where the vocabulary spells a blank so."""
        visible = self.piece.translate(_SPELLED)
        return visible if set(visible) <= set(_VISIBLE.values()) else self.piece


@dataclass(frozen=True)
class Patches:
    """Positions that are the patches of one picture, row by row from the top left.

    They follow one another from `first`, or else are those that `places` names, -1 for a patch without one.
    `rows` and `columns` are how many there are.
    """

    first: int
    rows: int
    columns: int
    places: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return self.rows * self.columns

    @property
    def positions(self) -> tuple[int, ...]:
        return self.places or tuple(range(self.first, self.first + self.count))

    def check_parts(self) -> None:
        """Raises `Damaged` where there are not as many positions as patches."""
        if self.count < 0 or len(self.positions) != self.count:
            raise Damaged("'stretches' do not fit together")


@dataclass(frozen=True)
class Frames:
    """A stretch of positions that are the frames of one sound, each `seconds` later than the one before.

    `first` is the position of the first, `count` how many there are.
    """

    first: int
    count: int
    seconds: float

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(range(self.first, self.first + self.count))

    def check_parts(self) -> None:
        """Raises `Damaged` where the number of frames is none."""
        if self.count < 0:
            raise Damaged("'stretches' do not fit together")


@dataclass(frozen=True)
class Tokens:
    """The tokens of one input, in order, with the text or the pair of texts that they came from.

    `stretches` are the positions that stand for pictures and sounds instead of text. Where the model wrote
    the last of the texts itself, `written` says how; that text then ends with a token that was not read.
    `numbers` are the positions in the model's input where these are only some of its tokens, or words. Where
    `words_given`, the user says what is a word, and `word` counts these. `texts` are these texts.
    """

    texts: tuple[str, ...]
    items: tuple[Token, ...] = field(metadata={"file": "tokens"})
    stretches: tuple[Patches | Frames, ...] = ()
    written: str = ""
    numbers: tuple[int, ...] = field(default=(), metadata={"file": "positions"})
    words_given: bool = False

    def __len__(self) -> int:
        return len(self.items)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(token.id for token in self.items)

    @property
    def positions(self) -> Sequence[int]:
        """Where each stands in the model's input."""
        return self.numbers or range(len(self))

    @property
    def sentence(self) -> str:
        """The source text, the two of a pair joined by a bar, what the model went on to write by an arrow."""
        if self.written and len(self.texts) > 1:
            return f"{' | '.join(self.texts[:-1])} → {self.texts[-1].strip()}"
        return " | ".join(self.texts)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name per token; the same name may stand several times."""
        return tuple(token.name for token in self.items)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One unique label per token: its name, and `@position` where the name stands more than once."""
        count = Counter(self.names)
        return tuple(
            f"{name}@{i}" if count[name] > 1 else name
            for i, name in zip(self.positions, self.names, strict=True)
        )

    def named(self, position: int) -> str:
        """What a reader is told: `5 door`, position and name. `door@5` is what names it to a command."""
        return f"{self.positions[position]} {self.names[position]}"

    def only(self, kept: Sequence[int]) -> "Tokens":
        """Those at the positions `kept` as a text of their own, which is counted from 0."""
        place = {position: i for i, position in enumerate(kept)}
        moved = (replace(each, first=place[each.first]) for each in self.stretches if each.first in place)
        stretches = (
            replace(each, places=tuple(place.get(i, -1) for i in each.places))
            if isinstance(each, Patches) and each.places
            else each
            for each in moved
        )
        return replace(self, items=tuple(self.items[i] for i in kept), stretches=tuple(stretches), numbers=())

    @property
    def unknown(self) -> tuple[str, ...]:
        """The pieces of the source text that the vocabulary cannot spell."""
        return tuple(printable(token.text) for token in self.items if token.unknown)

    def position(self, wanted: str) -> int:
        """Position of the token that `wanted` names.

        `wanted` is a position (negatives count from the end), a token's text, `text@position`, or
        `@position` where tokens are numbers themselves.
        Raises `InputError` that lists the choices when nothing or more than one token answers to it.
        """
        matches = self._named(wanted)
        if not matches and wanted.startswith("@") and _NUMBER.fullmatch(wanted[1:]):
            return self._numbered(int(wanted[1:]))
        if _NUMBER.fullmatch(wanted) and not (matches and self._beyond(int(wanted))):
            number = self._numbered(int(wanted))
            if matches in ([], [number]):
                return number
            matches = sorted({number, *matches})
            choices = ", ".join(f"{self.names[i]}@{self.positions[i]}" for i in matches)
            raise InputError(f"'{wanted}' is a position and the text of a token: choose one of {choices}")
        if len(matches) == 1:
            return matches[0]
        if matches:
            choices = ", ".join(self.labels[i] for i in matches)
            raise InputError(f"token '{wanted}' stands {len(matches)} times: choose one of {choices}")
        if pieces := self._pieces_of_word(wanted):
            choices = ", ".join(f"{self.names[i]} ({self.positions[i]})" for i in pieces)
            raise InputError(f"'{wanted}' is cut into the tokens {choices}: choose one of these")
        names = {name.casefold(): i for i, name in reversed([*enumerate(self.names)])}
        near = [names[name] for name in nearest(wanted.casefold(), names)]
        meant = "".join(f"the nearest is {self.positions[i]} {self.names[i]}; " for i in near)
        raise InputError(f"no token '{wanted}' in the input: {meant}tokens are {self._listed()}")

    def _listed(self) -> str:
        """Every token with its position, the middle of a long input left out."""
        named = [f"{i} {name}" for i, name in zip(self.positions, self.names, strict=True)]
        return ", ".join(named if len(named) <= _LISTED else [*named[: _LISTED // 2], "...", *named[-3:]])

    def _beyond(self, number: int) -> bool:
        return number not in self.positions and not -len(self) <= number < 0

    def _numbered(self, number: int) -> int:
        if -len(self) <= number < 0:
            return number % len(self)
        if number not in self.positions:
            raise InputError(f"no token {number} in the input: positions {listed(self.positions)}")
        return self.positions.index(number)

    def _named(self, wanted: str) -> list[int]:
        if wanted in self.labels:
            return [self.labels.index(wanted)]
        if numbered := [i for i, name in enumerate(self.names) if wanted == f"{name}@{self.positions[i]}"]:
            return numbered
        for same in (str, str.casefold):
            forms = [{same(t.name), same(t.text.strip()), same(t.piece)} - {""} for t in self.items]
            if matches := [i for i, form in enumerate(forms) if same(wanted) in form]:
                return matches
        return []

    def _pieces_of_word(self, wanted: str) -> list[int]:
        words: dict[tuple[int, int], list[int]] = {}
        for i, token in enumerate(self.items):
            if token.word is not None and token.span is not None and token.part < len(self.texts):
                words.setdefault((token.part, token.word), []).append(i)
        for (part, _), positions in words.items():
            spans = [span for i in positions if (span := self.items[i].span)]
            source = self.texts[part][spans[0][0] : spans[-1][1]]
            if source.strip().casefold() == wanted.casefold():
                return positions
        return []

    def check_parts(self) -> None:
        """Raises `Damaged` where positions are not as many as tokens, or a token lies outside of its text."""
        if len(self.positions) != len(self):
            raise Damaged("'positions' are not as many as the tokens")
        if not all(token.lies_within(self.texts) for token in self.items):
            raise Damaged("'tokens' have a place outside of their text")
