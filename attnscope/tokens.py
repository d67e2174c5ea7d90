"""Tokens: what the model read, tied to the text that it was read from.

Labels are cut from the source text by the tokenizer's own offsets, so that byte-level and sentence-piece
vocabularies show real characters. This module knows no tokenizer and imports no torch: `attnscope.model`
fills it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from attnscope.errors import Damaged
from attnscope.printable import VISIBLE, printable
from attnscope.spans import Span, span_of
from attnscope.spelling import beginning

_VISIBLE = VISIBLE | {" ": "␣", "\u3000": "␣"}
_SPELLED = str.maketrans({"▁": "␣", "Ġ": "␣", "Ċ": "↵", "č": "␍", "ĉ": "⇥"})  # blanks in vocabularies


@dataclass(frozen=True)
class Token:
    """One token of the model's input.

    `piece` is the vocabulary's own spelling (`##ing`, `Ġdoor`); `text` the exact characters of the source
    text; `span` their place in it, None for a token that the tokenizer added; `word` counts the words of one
    text, -1 of a sentence or a passage taken together; `part` says which text (0, or 1 for the second
    sentence of a pair). `padding` fills up a text to the length of others in one batch, and the model was
    told so. `special` is one that stands for no text,
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
    def is_long(self) -> bool:
        """Whether it is a sentence or a passage, the tokens of which were taken together."""
        return self.word == -1

    @property
    def name(self) -> str:
        """How the token is called on screen, before repeated tokens get their position."""
        if self.is_long:
            return beginning(self.text)
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


def patch(row: int, column: int) -> str:
    """`row 3, column 5`: a patch of a picture, from 0 at the top left; `r3c5` on an axis and in commands."""
    return f"row {row}, column {column}"


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
        """How many patches there are."""
        return self.rows * self.columns

    @property
    def positions(self) -> tuple[int, ...]:
        """Where they stand among the tokens."""
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
        """Where they stand among the tokens."""
        return tuple(range(self.first, self.first + self.count))

    def heard(self, seconds: float) -> int:
        """How many of them a sound of so many seconds has; the others are padding."""
        return min(math.ceil(seconds / self.seconds - 1e-9), self.count)

    def check_parts(self) -> None:
        """Raises `Damaged` where the number of frames is none."""
        if self.count < 0:
            raise Damaged("'stretches' do not fit together")


@dataclass(frozen=True)
class Section:
    """A stretch of positions that a template made and that can be named: the message of a role, or a field.

    `kind` and `name` make up what it is called, `role:user` or `field:a`. `first` is its first position,
    `count` how many there are; of these the template put `before` in front of what was said, and `after`
    behind it.
    """

    kind: str
    name: str
    first: int
    count: int
    before: int = 0
    after: int = 0

    @property
    def positions(self) -> tuple[int, ...]:
        """Where it stands among the tokens."""
        return tuple(range(self.first, self.first + self.count))

    @property
    def said(self) -> tuple[int, ...]:
        """The positions of what was said, without what the template put around it."""
        return self.positions[self.before : self.count - self.after]

    @property
    def called(self) -> str:
        """How it is asked for: `role:user`."""
        return f"{self.kind}:{self.name}"

    def among(self, places: Sequence[int]) -> "Section | None":
        """The section where only `places` are left, in their order; None where none of it is."""
        own, said = self.positions, self.said
        left = [(i, position) for i, position in enumerate(places) if position in own]
        if not left:
            return None
        begins, ends = (said[0], said[-1]) if said else (own[-1] + 1, own[-1])
        before = sum(position < begins for _, position in left)
        after = sum(position > ends for _, position in left)
        return replace(self, first=left[0][0], count=len(left), before=before, after=after)

    def check_parts(self) -> None:
        """Raises `Damaged` where it has no positions, or fewer than the template's own."""
        if min(self.first, self.before, self.after) < 0 or self.count < max(1, self.before + self.after):
            raise Damaged("'stretches' do not fit together")


@dataclass(frozen=True)
class Given:
    """That the tokens are not those of a text as it is read alone: `by` is `chat` or `ids`.

    Where the messages of a chat cannot be told apart, `no_roles` says why.
    """

    by: str
    no_roles: str = ""


@dataclass(frozen=True)
class Tokens:
    """The tokens of one input, in order, with the text or the pair of texts that they came from.

    What is `marked` (`stretches` in files) are the positions that stand for pictures and sounds instead of
    text, those that a template made of a message, and how the tokens were given. Where the model wrote
    the last of the texts itself, `written` says how; that text then ends with a token that was not read.
    `numbers` are the positions in the model's input where these are only some of its tokens, or words. Where
    `words_given`, the user says what is a word, and `word` counts these. `texts` are these texts.
    """

    texts: tuple[str, ...]
    items: tuple[Token, ...] = field(metadata={"file": "tokens"})
    marked: tuple[Patches | Frames | Section | Given, ...] = field(default=(), metadata={"file": "stretches"})
    written: str = ""
    numbers: tuple[int, ...] = field(default=(), metadata={"file": "positions"})
    words_given: bool = False

    def __len__(self) -> int:
        return len(self.items)

    @property
    def ids(self) -> tuple[int, ...]:
        """Their numbers in the vocabulary."""
        return tuple(token.id for token in self.items)

    @property
    def stretches(self) -> tuple[Patches | Frames, ...]:
        """The positions that stand for pictures and sounds."""
        return tuple(each for each in self.marked if isinstance(each, Patches | Frames))

    @property
    def sections(self) -> tuple[Section, ...]:
        """The messages that a chat's template made, in their order."""
        return tuple(each for each in self.marked if isinstance(each, Section) and each.kind == "role")

    @property
    def fields(self) -> tuple[Section, ...]:
        """What stands in the place of the fields of a template, or has a name of its own."""
        return tuple(each for each in self.marked if isinstance(each, Section) and each.kind == "field")

    @cached_property
    def of_template(self) -> frozenset[int]:
        """The positions of a chat at which nothing stands that anybody said; none of any other text."""
        said = {position for each in self.sections for position in each.said}
        return frozenset(range(len(self))) - said if self.sections else frozenset()

    @property
    def given(self) -> Given | None:
        """How the tokens were given, where that was not by a text as it is read alone."""
        return next((each for each in self.marked if isinstance(each, Given)), None)

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

    @property
    def of_sentences(self) -> bool:
        """Whether tokens were taken together to sentences or passages, which are told by their number."""
        return any(token.is_long for token in self.items)

    @cached_property
    def in_full(self) -> tuple[str, ...]:
        """The labels with the whole text of sentences and passages, in one line each."""
        named = zip(self.items, self.names, strict=True)
        return tuple(printable(" ".join(item.text.split())) if item.is_long else name for item, name in named)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One unique label per token: its name, and `@position` where the name stands more than once."""
        count = Counter(self.names)
        return tuple(
            f"{name}@{i}" if count[name] > 1 else name
            for i, name in zip(self.positions, self.names, strict=True)
        )

    def called(self, position: int) -> str:
        """What a reader is told in a sentence or a list: its name, of a patch `patch row 3, column 5`."""
        for each in self.stretches:
            if isinstance(each, Patches) and position in each.positions:
                row, column = divmod(each.positions.index(position), each.columns)
                return f"patch {patch(row, column)}"
        return self.names[position]

    def named(self, position: int) -> str:
        """What a reader is told: `5 door`, position and name. `door@5` is what names it to a command."""
        return f"{self.positions[position]} {self.names[position]}"

    def only(self, kept: Sequence[int]) -> "Tokens":
        """Those at the positions `kept` as a text of their own, which is counted from 0."""
        place = {position: i for i, position in enumerate(kept)}
        marked = list[Patches | Frames | Section | Given]()
        for each in self.marked:
            if isinstance(each, Given):
                marked.append(each)
            elif isinstance(each, Section):
                marked += [section] if (section := each.among(kept)) else []
            elif each.first in place:
                moved = replace(each, first=place[each.first])
                if isinstance(moved, Patches) and moved.places:
                    moved = replace(moved, places=tuple(place.get(i, -1) for i in moved.places))
                marked.append(moved)
        return replace(self, items=tuple(self.items[i] for i in kept), marked=tuple(marked), numbers=())

    @property
    def unknown(self) -> tuple[str, ...]:
        """The pieces of the source text that the vocabulary cannot spell."""
        return tuple(printable(token.text) for token in self.items if token.unknown)

    def span(self, wanted: str | int) -> Span:
        """The tokens that `wanted` names, as `attnscope.spans` reads it: `door`, `the door`, `door@5`, `4-5`.

        Raises `InputError` that lists the choices when nothing answers to it, or more than one place does.
        """
        return span_of(self, wanted)

    def position(self, wanted: str | int) -> int:
        """Where a single token stands that `wanted` names: `InputError` also for several."""
        return self.span(wanted).one()

    def check_parts(self) -> None:
        """Raises `Damaged` where positions are not as many as tokens, or a token lies outside of its text."""
        if len(self.positions) != len(self):
            raise Damaged("'positions' are not as many as the tokens")
        if not all(token.lies_within(self.texts) for token in self.items):
            raise Damaged("'tokens' have a place outside of their text")
