"""Tokens that are given by their numbers: what stands in for a tokenizer, and what it is called.

Nothing is read here as text: pieces are shown as a vocabulary spells them, numbers where it has none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.printable import printable

_ROLES = {
    "cls": ("[CLS]",),
    "sep": ("[SEP]",),
    "bos": ("<s>", "[BOS]", "<bos>", "<|endoftext|>", "<|begin_of_text|>"),
    "eos": ("</s>", "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>"),
    "pad": ("[PAD]", "<pad>"),
    "mask": ("[MASK]", "<mask>"),
    "unk": ("[UNK]", "<unk>"),
}
_MARKS = str.maketrans("▁Ġ", "  ")  # of a word's start, as vocabularies spell it
_NO_LIMIT = 10**30  # as tokenizers say it


class Numbered:
    """Answers what is asked of a tokenizer about spelling, by `pieces`; as a tokenizer it reads no text.

    Special tokens are those that are spelled as such, and those that the model's config names.
    """

    is_fast, model_max_length = False, _NO_LIMIT

    def __init__(self, config: Any, pieces: Mapping[int, str]) -> None:
        self._pieces = pieces
        self._marked = any(piece.startswith(("▁", "Ġ")) for piece in pieces.values())
        by_piece = {piece: id for id, piece in pieces.items()}
        for role, spellings in _ROLES.items():
            spelled = next((by_piece[each] for each in spellings if each in by_piece), None)
            stated = getattr(config, f"{role}_token_id", None)
            id = spelled if spelled is not None else stated if isinstance(stated, int) else None
            setattr(self, f"{role}_token_id", id)
            setattr(self, f"{role}_token", None if id is None else self._piece(id))

    @property
    def all_special_ids(self) -> list[int]:
        ids = (getattr(self, f"{role}_token_id") for role in _ROLES)
        return list(dict.fromkeys(id for id in ids if id is not None))

    @property
    def all_special_tokens(self) -> list[str]:
        return [self._piece(id) for id in self.all_special_ids]

    def convert_ids_to_tokens(self, ids: int | Sequence[int]) -> str | list[str]:
        return self._piece(ids) if isinstance(ids, int) else [self._piece(id) for id in ids]

    def convert_tokens_to_string(self, pieces: Sequence[str]) -> str:
        """Pieces put together where their vocabulary marks how, else with a blank between them."""
        if self._marked:
            return "".join(pieces).translate(_MARKS)
        return " ".join(pieces).replace(" ##", "")

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False, **_: Any) -> str:
        left_out = set(self.all_special_ids) if skip_special_tokens else set()
        return self.convert_tokens_to_string([self._piece(id) for id in ids if id not in left_out])

    def name(self, token: int) -> str:
        """How a token is written by itself; as the vocabulary spells it where another is written alike."""
        piece = self._piece(token)
        written = self.convert_tokens_to_string([piece]).strip()
        alike = {written, f"▁{written}", f"Ġ{written}"} - {piece}
        plain = written and not piece.startswith("##") and alike.isdisjoint(self._pieces.values())
        return printable(written if plain else piece)

    def token(self, name: str) -> int | None:
        """The number that `name` is."""
        return int(name) if name.isdecimal() else None

    def _piece(self, id: int) -> str:
        return self._pieces.get(id, str(id))


class Unreadable:
    """Stands for a tokenizer that cannot be read, for as long as nobody asks anything of it."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self, *texts: Any, **options: Any) -> Any:
        raise self._error

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        raise self._error


def read_vocabulary(file: str | Path) -> dict[int, str]:
    """How the tokens in `file` are spelled: one in a line, counted from 0, or JSON of numbers by token.

    Raises `InputError` for a file that is neither.
    """
    name = incoming.named(file, "the vocabulary")
    if Path(file).suffix.lower() == ".json":
        ids = incoming.parsed(incoming.content(file, "the vocabulary"), name)
        if not isinstance(ids, dict) or not all(type(id) is int and id >= 0 for id in ids.values()):
            raise InputError(f"{name} is no JSON object of numbers by token")
        pieces = {id: piece for piece, id in ids.items()}
    else:
        pieces = {
            number - 1: incoming.text(line, f"{name}, line {number},")
            for number, line in incoming.whole_lines(file, "the vocabulary")
        }
    if not any(piece.strip() for piece in pieces.values()):
        raise InputError(f"{name} is empty")
    for id, piece in pieces.items():
        incoming.check_name(piece, f"{name}, token {id}")
    return pieces
