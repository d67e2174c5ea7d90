"""Joins tokens to readable text, cut from the source where possible.

Parts of a text that a template made have names: `role:user`, `role:user#2`, `role:user@12`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from attnscope.errors import InputError, listed
from attnscope.printable import printable

IS_NO = {  # a text that has none of them
    "role": "the text is no chat: --chat reads one, --system makes one of a text",
    "field": "no field of a template (--fill) and no span of a record (.jsonl) stands in it",
}
_ONE = re.compile(r"(.*)([#@])([0-9]{1,9})", re.DOTALL)
_LONGEST = 40  # characters of a text that are shown
_MARKS = ("▁", "Ġ")  # of a word's start, as vocabularies spell it


class Named(Protocol):
    """Protocol: tokens with a common name (`attnscope.tokens.Section`)."""

    @property
    def kind(self) -> str: ...
    @property
    def called(self) -> str: ...
    @property
    def positions(self) -> tuple[int, ...]: ...


class Origin(Protocol):
    """Protocol: how tokens were given (`attnscope.tokens.Given`)."""

    @property
    def no_roles(self) -> str: ...


def section_named(positions: Sequence[int], there: Sequence[Named], wanted: str) -> tuple[int, ...]:
    """The positions of the section named `wanted`; `positions` are the numbers shown to a reader.

    Raises `InputError` that lists what there is, and where, for none and for several.
    """
    name, sign, number = wanted.casefold(), "", 0
    named = [each.called.casefold() for each in there]
    if name not in named and (one := _ONE.fullmatch(name)):
        name, sign, number = one[1], one[2], int(one[3])
    places = [each.positions for each, called in zip(there, named, strict=True) if called == name]
    if sign == "#":
        places = places[number - 1 : number] if number else []
    elif sign:
        places = [each for each in places if positions[each[0]] == number]
    if len(places) == 1:
        return places[0]
    every = dict(zip(_choices(positions, there), named, strict=True))
    if places:
        choices = ", ".join(choice for choice, each in every.items() if each == name)
        raise InputError(f"'{wanted}' stands {len(places)} times: choose one of {choices}")
    choices = ", ".join(every)
    raise InputError(f"no {there[0].kind} '{wanted}' in the input: there are {choices}")


def called(sections: Sequence[Named]) -> list[str]:
    """The names of sections, numbered where they repeat: `role:user#2`."""
    names = [each.called for each in sections]
    return [
        f"{name}#{names[: i + 1].count(name)}" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]


def _choices(positions: Sequence[int], there: Sequence[Named]) -> Iterator[str]:
    for name, each in zip(called(there), there, strict=True):
        yield f"{name} ({listed([positions[place] for place in each.positions])})"


class Piece(Protocol):
    """Protocol: one token (`attnscope.tokens.Token`)."""

    @property
    def piece(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def span(self) -> tuple[int, int] | None: ...
    @property
    def part(self) -> int: ...
    @property
    def special(self) -> bool: ...
    @property
    def is_long(self) -> bool: ...


class Pieces(Protocol):
    """Protocol: the tokens of an input (`attnscope.tokens.Tokens`)."""

    @property
    def sections(self) -> Sequence[Named]: ...
    @property
    def fields(self) -> Sequence[Named]: ...
    @property
    def given(self) -> Origin | None: ...

    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def items(self) -> Sequence[Piece]: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def positions(self) -> Sequence[int]: ...
    def __len__(self) -> int: ...


def told(tokens: Pieces, places: Sequence[int]) -> str:
    """Positions and text of some tokens: `5 door`, `4-5 the door`."""
    numbers = [tokens.positions[i] for i in places]
    if len(numbers) == 1:
        return f"{numbers[0]} {tokens.names[places[0]]}"
    for name, each in zip(called(tokens.sections), tokens.sections, strict=True):
        if each.positions == tuple(places):
            return f"{listed(numbers)} {name}"
    return f"{listed(numbers)} {shortened(spelled(tokens, places))}"


def shortened(text: str) -> str:
    """The text on one short line, with its middle left out."""
    text = printable(" ".join(text.split()))
    half = _LONGEST // 2 - 2
    return text if len(text) <= _LONGEST else f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


def beginning(text: str) -> str:
    """The text on one short line, cut at the end (at a blank where possible)."""
    text = printable(" ".join(text.split()))
    if len(text) <= _LONGEST:
        return text
    kept = text[: _LONGEST - 2]
    return f"{kept.rpartition(' ')[0] or kept} …"


def spelled(tokens: Pieces, places: Sequence[int]) -> str:
    """The joined text of these tokens, cut from the source where they have offsets."""
    return Line(tokens, places).text


class Line:
    """Tokens joined to one text, with the characters at which each begins and ends, blanks excluded.

    What stands in a source is cut from it; what does not is put together as its vocabulary marks words.
    """

    def __init__(self, tokens: Pieces, places: Sequence[int]) -> None:
        self.text = ""
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        items, texts = tokens.items, tokens.texts
        unsourced = {i for i in places if items[i].span is None or items[i].part >= len(texts)}
        marked = any(items[i].piece.startswith(_MARKS) for i in unsourced)
        part, offset = None, 0
        for i in places:
            token = items[i]
            if i in unsourced or token.span is None:
                part = None
                text = token.name if token.special else token.text.strip().removeprefix("##") or token.name
                apart = token.piece.startswith(_MARKS) if marked else not token.piece.startswith("##")
                self.text += " " if self.text and (apart or token.special) else ""
                self.first[len(self.text)] = i
                self.text += text
                self.last[len(self.text)] = i
                continue
            (start, end), source = token.span, texts[token.part]
            if token.part != part:
                self.text += " " if self.text else ""
                part, offset = token.part, len(self.text) - start
            self.text += source[len(self.text) - offset : end]
            if cut := source[start:end].strip():
                begin = offset + start + source[start:end].index(cut)
                self.first.setdefault(begin, i)
                self.last[begin + len(cut)] = i

    def whole(self, start: int, end: int) -> bool:
        """Whether the characters from `start` to `end` are whole words."""
        before, after = self.text[max(start - 1, 0) : start], self.text[end : end + 1]
        begun = before.isalnum() and self.text[start : start + 1].isalnum()
        return not begun and not (after.isalnum() and self.text[end - 1 : end].isalnum())
