"""Names of vocabulary tokens as answers, and the token that such a name means.

A name is only given where it leads back to its token. “my” is the word after a blank where a vocabulary tells
these apart, and “##my” the piece joined to the text before it; “,” is joined, and “␣,” stands after a blank.
Bytes that are no whole character are named by their numbers, as in “<0xC2>”.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transformers.convert_slow_tokenizer import bytes_to_unicode

from attnscope.printable import VISIBLE, printable, steers
from attnscope.results.base.groups import sets_no_blanks

_BLANK = "␣"
_JOINED = "##"
_SHOWN = {" ": _BLANK, **VISIBLE}
_MEANT = dict(zip(_SHOWN.values(), _SHOWN, strict=True))
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_CHARACTER_OF = bytes_to_unicode()
_BYTE_OF = dict(zip(_CHARACTER_OF.values(), _CHARACTER_OF, strict=True))
_AFTER_A_BLANK = ("L", "N", "Ps", "Pi", "Sc")  # letters, numbers, what opens and currencies, as Unicode sorts


@dataclass(frozen=True)
class Names:
    """Names of a tokenizer's tokens, and the tokens of names."""

    tokenizer: Any

    def name(self, token: int) -> str:
        """The plainest name by which the token is found again."""
        names = [name for name in self._names(token) if name]
        apart = f"{names[0] if names else ''}#{token}"
        return next((name for name in names if self.token(name) == token), apart)

    def token(self, name: str) -> int | None:
        """Id of the one token that the name means; None where none or several fit."""
        special = dict(zip(self.tokenizer.all_special_tokens, self.tokenizer.all_special_ids, strict=True))
        if name in special:
            return int(special[name])
        return next((token for token in self._meant(name) if token is not None), None)

    def _names(self, token: int) -> Iterator[str]:
        piece = self.tokenizer.convert_ids_to_tokens(token)
        if piece is None:  # a row of the vocabulary that the tokenizer has no token for
            return
        spoken = _visible(self._bytes_of(piece))
        if self._by_byte or not piece.startswith(_JOINED):
            yield spoken.strip(_BLANK)
            yield spoken
            yield _JOINED + spoken
        yield printable(piece)

    def _meant(self, name: str) -> Iterator[int | None]:
        if not name:
            return
        if set(name) <= _MEANT.keys():
            yield self._spelled(_unseen(name))
        if name.startswith(" "):
            written = [name]
        elif _after_a_blank(name[0]):
            written = [f" {name}", name]
        else:
            yield from (self._spelled(text.encode(errors="replace")) for text in (name, f" {name}"))
            written = [name, f" {name}"]
        yield from map(self._read, written)
        exact = self._spelled(_unseen(name)), self._known(name)
        yield from exact if self._by_byte else reversed(exact)
        joined = _unseen(name.removeprefix(_JOINED))
        if name.startswith(_JOINED) and self._spelled(b" " + joined) is not None:
            yield self._spelled(joined)

    def _read(self, text: str) -> int | None:
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return int(ids[0]) if len(ids) == 1 and ids[0] != self.tokenizer.unk_token_id else None

    def _spelled(self, written: bytes) -> int | None:
        if self._by_byte:
            return self._known("".join(map(_CHARACTER_OF.__getitem__, written)))
        text, first = written.decode(errors="replace"), written[0] if written else 0
        pieces = text.replace(" ", "▁"), text, f"<0x{first:02X}>", chr(first)
        found = ((piece, self._known(piece)) for piece in pieces)
        return next((id for piece, id in found if id is not None and self._bytes_of(piece) == written), None)

    def _known(self, piece: str) -> int | None:
        id = self.tokenizer.convert_tokens_to_ids(piece)
        if id is None or id == self.tokenizer.unk_token_id or id >= len(self.tokenizer):
            return None
        return int(id) if self.tokenizer.convert_ids_to_tokens(id) == piece else None

    @cached_property
    def _by_byte(self) -> bool:
        """True where pieces are spelled in GPT-2's byte alphabet, in which Ã is half a character."""
        return str(self.tokenizer.convert_tokens_to_string(["Ã"])) == "\ufffd"

    @cached_property
    def _added(self) -> set[str]:
        return set(self.tokenizer.get_added_vocab())

    def _bytes_of(self, piece: str) -> bytes:
        if piece in self._added:
            return piece.encode()
        if self._by_byte and all(character in _BYTE_OF for character in piece):
            return bytes(_BYTE_OF[character] for character in piece)
        if byte := _BYTE.fullmatch(piece):
            return bytes([int(byte[1], 16)])
        if piece.startswith("▁"):  # which some decoders take away in front of a text
            return piece.replace("▁", " ").encode()
        written = str(self.tokenizer.convert_tokens_to_string([piece])).rstrip()
        if not written and len(piece) == 1 and ord(piece) < 256:  # as ByT5 spells a byte
            return bytes([ord(piece)])
        return (written or piece).encode()


def _after_a_blank(character: str) -> bool:
    return unicodedata.category(character).startswith(_AFTER_A_BLANK) and not sets_no_blanks(character)


def _visible(written: bytes) -> str:
    """Bytes as text, with blanks at its ends marked and invisible characters as byte numbers."""
    text = written.decode(errors="surrogateescape")
    inner = text.strip(" ")
    start = text.index(inner)
    shown = "".join(map(_seen, inner))
    return f"{_BLANK * start}{shown}{_BLANK * (len(text) - start - len(inner))}"


def _seen(character: str) -> str:
    if character in VISIBLE:
        return VISIBLE[character]
    hidden = steers(character) or (character != " " and character.isspace())
    if not hidden:
        return character
    return "".join(f"<0x{byte:02X}>" for byte in character.encode(errors="surrogateescape"))


def _unseen(name: str) -> bytes:
    parts = re.split("(<0x[0-9A-F]{2}>)", name)
    made = (
        bytes([int(part[3:5], 16)])
        if _BYTE.fullmatch(part)
        else "".join(_MEANT.get(each, each) for each in part).encode(errors="replace")
        for part in parts
    )
    return b"".join(made)
