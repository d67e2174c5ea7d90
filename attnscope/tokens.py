"""Tokens: the input of a model, tied to the source text.

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
    text, -1 for a sentence or a passage; `part` is the number of its text (1 for the second of a pair).
    `padding` tokens fill up a text to the length of others in one batch, and are masked. `special` tokens
    stand for no text, `unknown` ones cannot be spelled by the vocabulary. `id` is its number there, None
    without one; `position` and `label` are its place and its unique name.
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
        """Whether the token's span is within its text, where that is known."""
        if self.part < 0 or self.span is None:
            return self.part >= 0
        start, end = self.span
        return 0 <= start <= end and (self.part >= len(texts) or end <= len(texts[self.part]))

    @property
    def added(self) -> bool:
        """Whether the tokenizer added the token; a special token that the user typed has a span."""
        return self.special and self.span is None

    @property
    def is_long(self) -> bool:
        """Whether the item is a sentence or a passage, joined from tokens."""
        return self.word == -1

    @property
    def name(self) -> str:
        """The token's display name, without the position that repeated tokens get."""
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
        """The piece of a token without characters, with vocabulary signs for blanks made visible."""
        visible = self.piece.translate(_SPELLED)
        return visible if set(visible) <= set(_VISIBLE.values()) else self.piece


def patch(row: int, column: int) -> str:
    """The name of a picture's patch, from 0 at the top left: `row 3, column 5` (`r3c5` in commands)."""
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
        """The number of patches."""
        return self.rows * self.columns

    @property
    def positions(self) -> tuple[int, ...]:
        """The token index of each patch."""
        return self.places or tuple(range(self.first, self.first + self.count))

    def check_parts(self) -> None:
        """Raises `Damaged` where there are not as many positions as patches."""
        if self.count < 0 or len(self.positions) != self.count:
            raise Damaged("'stretches' do not fit together")


@dataclass(frozen=True)
class Frames:
    """A run of positions that are the frames of one sound, each `seconds` later than the one before.

    `first` is the position of the first, `count` how many there are.
    """

    first: int
    count: int
    seconds: float

    @property
    def positions(self) -> tuple[int, ...]:
        """The token index of each frame."""
        return tuple(range(self.first, self.first + self.count))

    def heard(self, seconds: float) -> int:
        """The number of frames with sound for a sound of `seconds`; the others are padding."""
        return min(math.ceil(seconds / self.seconds - 1e-9), self.count)

    def check_parts(self) -> None:
        """Raises `Damaged` where the number of frames is negative."""
        if self.count < 0:
            raise Damaged("'stretches' do not fit together")


@dataclass(frozen=True)
class Section:
    """A named run of positions from a template: the message of a role, or a field.

    `kind` and `name` make up its full name, `role:user` or `field:a`. `first` is its first position, `count`
    the number of positions; of these the template put `before` in front of the content, and `after` behind
    it.
    """

    kind: str
    name: str
    first: int
    count: int
    before: int = 0
    after: int = 0

    @property
    def positions(self) -> tuple[int, ...]:
        """The token indices of the section."""
        return tuple(range(self.first, self.first + self.count))

    @property
    def said(self) -> tuple[int, ...]:
        """The token indices of the content, without the template's marks around it."""
        return self.positions[self.before : self.count - self.after]

    @property
    def called(self) -> str:
        """The name to ask for the section by: `role:user`."""
        return f"{self.kind}:{self.name}"

    def among(self, places: Sequence[int]) -> "Section | None":
        """The section with only `places` left; None where none is."""
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
    """A way in which tokens were given other than plain text: `by` is `chat` or `ids`.

    `no_roles` says why the messages of a chat cannot be told apart, if they cannot.
    """

    by: str
    no_roles: str = ""


@dataclass(frozen=True)
class Tokens:
    """The tokens of one input, in order, with the text or the pair of texts that they came from.

    `marked` (`stretches` in files) are runs of positions for pictures and sounds, or from a template, and
    how the tokens were given. Where the model generated the last of the `texts`, `written` says how; that
    text then ends with a token that was not read. `numbers` are positions in the model's input where these
    are only some of its tokens, or words. `words_given` says that the user split the text into words, which
    `word` counts.
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
        """The vocabulary ids of the tokens."""
        return tuple(token.id for token in self.items)

    @property
    def stretches(self) -> tuple[Patches | Frames, ...]:
        """The runs of positions that stand for pictures and sounds."""
        return tuple(each for each in self.marked if isinstance(each, Patches | Frames))

    @property
    def sections(self) -> tuple[Section, ...]:
        """The messages of a chat, in order."""
        return tuple(each for each in self.marked if isinstance(each, Section) and each.kind == "role")

    @property
    def fields(self) -> tuple[Section, ...]:
        """The fields of a template, and named spans."""
        return tuple(each for each in self.marked if isinstance(each, Section) and each.kind == "field")

    @cached_property
    def of_template(self) -> frozenset[int]:
        """Token indices of a chat's template marks, without the messages; empty for other texts."""
        said = {position for each in self.sections for position in each.said}
        return frozenset(range(len(self))) - said if self.sections else frozenset()

    @property
    def given(self) -> Given | None:
        """The way the tokens were given, if not as plain text; else None."""
        return next((each for each in self.marked if isinstance(each, Given)), None)

    @property
    def positions(self) -> Sequence[int]:
        """The position of each token in the model's input."""
        return self.numbers or range(len(self))

    @property
    def sentence(self) -> str:
        """The source text; a pair is joined by a bar, generated text by an arrow."""
        if self.written and len(self.texts) > 1:
            return f"{' | '.join(self.texts[:-1])} → {self.texts[-1].strip()}"
        return " | ".join(self.texts)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The display name of each token; names may repeat."""
        return tuple(token.name for token in self.items)

    @property
    def of_sentences(self) -> bool:
        """Whether the items are sentences or passages."""
        return any(token.is_long for token in self.items)

    @cached_property
    def in_full(self) -> tuple[str, ...]:
        """The names, with the whole text of sentences and passages, on one line each."""
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
        """The name of a token for a sentence or list; for a patch `patch row 3, column 5`."""
        for each in self.stretches:
            if isinstance(each, Patches) and position in each.positions:
                row, column = divmod(each.positions.index(position), each.columns)
                return f"patch {patch(row, column)}"
        return self.names[position]

    def named(self, position: int) -> str:
        """The position and name of a token: `5 door`."""
        return f"{self.positions[position]} {self.names[position]}"

    def only(self, kept: Sequence[int]) -> "Tokens":
        """The tokens at the positions `kept`, renumbered from 0."""
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
        """The index of the single token that `wanted` names; `InputError` also for several."""
        return self.span(wanted).one()

    def check_parts(self) -> None:
        """Raises `Damaged` where positions are not as many as tokens, or a token lies outside of its text."""
        if len(self.positions) != len(self):
            raise Damaged("'positions' are not as many as the tokens")
        if not all(token.lies_within(self.texts) for token in self.items):
            raise Damaged("'tokens' have a place outside of their text")
