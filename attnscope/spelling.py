"""How tokens are spelled together: the text of a stretch, cut from its source, and what a reader is told."""

from collections.abc import Sequence
from typing import Protocol

from attnscope.errors import listed
from attnscope.printable import printable
from attnscope.sections import Named, Origin, called

_LONGEST = 40  # characters of a text that are shown
_MARKS = ("▁", "Ġ")  # of a word's start, as vocabularies spell it


class Piece(Protocol):
    """What is known of one token (`attnscope.tokens.Token`)."""

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
    """The tokens that may be meant (`attnscope.tokens.Tokens`)."""

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
    """`5 door`, `4-5 the door`: positions and text."""
    numbers = [tokens.positions[i] for i in places]
    if len(numbers) == 1:
        return f"{numbers[0]} {tokens.names[places[0]]}"
    for name, each in zip(called(tokens.sections), tokens.sections, strict=True):
        if each.positions == tuple(places):
            return f"{listed(numbers)} {name}"
    return f"{listed(numbers)} {shortened(spelled(tokens, places))}"


def shortened(text: str) -> str:
    """A text in one short line, its middle left out."""
    text = printable(" ".join(text.split()))
    half = _LONGEST // 2 - 2
    return text if len(text) <= _LONGEST else f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


def beginning(text: str) -> str:
    """A text in one short line without its end, which falls off at a blank where there is one."""
    text = printable(" ".join(text.split()))
    if len(text) <= _LONGEST:
        return text
    kept = text[: _LONGEST - 2]
    return f"{kept.rpartition(' ')[0] or kept} …"


def spelled(tokens: Pieces, places: Sequence[int]) -> str:
    """The text of these tokens together, cut from the source as far as they have a place in it."""
    return Line(tokens, places).text


class Line:
    """Tokens as one text, and which of them begin and end at its characters; blanks are none of a token's.

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
        """Whether no word goes on before or behind."""
        before, after = self.text[max(start - 1, 0) : start], self.text[end : end + 1]
        begun = before.isalnum() and self.text[start : start + 1].isalnum()
        return not begun and not (after.isalnum() and self.text[end - 1 : end].isalnum())
