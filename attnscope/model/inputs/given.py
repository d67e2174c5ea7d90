"""User inputs other than a text: a conversation, or token ids.

    [{"role": "user", "content": "Who opened the door?"}]
    {"messages": [...], "tools": [...], "enable_thinking": true}

are conversations: messages, and whatever else the model's chat template takes, which is applied in
`attnscope.model.inputs.rendered`. Token ids are not read as text: a stand-in for the tokenizer spells them by
a vocabulary, and shows ids without one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.printable import printable

Message = Mapping[str, Any]
SYSTEM, USER = "system", "user"
_OURS = {  # keys that we or the library pass to a template, or that are not about text
    *("conversation", "chat_template", "tokenize", "padding", "truncation", "max_length", "return_tensors"),
    *("return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs", "continue_final_message"),
    "add_generation_prompt",
}
_FORM = 'a list of messages, [{"role": "user", "content": "..."}], or an object with such "messages"'
_ROLES = {
    "cls": ("[CLS]",),
    "sep": ("[SEP]",),
    "bos": ("<s>", "[BOS]", "<bos>", "<|endoftext|>", "<|begin_of_text|>"),
    "eos": ("</s>", "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>"),
    "pad": ("[PAD]", "<pad>"),
    "mask": ("[MASK]", "<mask>"),
    "unk": ("[UNK]", "<unk>"),
}
_MARKS = str.maketrans("▁Ġ", "  ")  # marks of a word's start in vocabularies
_NO_LIMIT = 10**30  # as tokenizers state no limit


@dataclass(frozen=True)
class Chat:
    """Messages in their order, the template's `settings`, and the file of both.

    `settings` are tools, documents and whatever else a template knows, such as `enable_thinking`.
    """

    messages: tuple[Message, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None

    def behind(self, system: str) -> "Chat":
        """The chat with a system message put first; `InputError` where it begins with one."""
        if self.messages[0]["role"] == SYSTEM:
            raise InputError("--system: the chat begins with a system message already, leave one out")
        if not system:
            return self
        return replace(self, messages=({"role": SYSTEM, "content": system}, *self.messages))


def asked(text: str) -> Chat:
    """A chat of one user message with this text."""
    if not text.strip():
        raise InputError("the text is empty")
    return Chat(({"role": USER, "content": text},))


def read_chat(file: Path) -> Chat:
    """The conversation in a JSON file, or from standard input."""
    name = f"--chat {incoming.named(file)}"
    return replace(chat_of(incoming.parsed(incoming.content(file, "the chat"), name), name), file=file)


def chat_of(written: Any, name: str = "the chat") -> Chat:
    """A `Chat` from a list of messages, or an object that has one; `InputError` names the wrong message."""
    if isinstance(written, Chat):
        return written
    settings: dict[str, Any] = {}
    if isinstance(written, Mapping):
        settings = {key: value for key, value in written.items() if key != "messages"}
        if "messages" not in written:
            raise InputError(f'{name} has no "messages": it takes {_FORM}')
        written = written["messages"]
    if isinstance(written, str) or not isinstance(written, Sequence):
        raise InputError(f"{name} is no conversation: it takes {_FORM}")
    if not written:
        raise InputError(f"{name} has no messages: it takes {_FORM}")
    for key in settings:
        if not isinstance(key, str) or key in _OURS:
            raise InputError(f"{name}: '{key}' is no part of a conversation")
    messages = tuple(_message(each, f"{name}: message {i}") for i, each in enumerate(written, start=1))
    try:
        json.dumps({"messages": messages, **settings})
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds what JSON has no form for") from error
    return Chat(messages, settings)


def _message(written: Any, where: str) -> Message:
    if not isinstance(written, Mapping):
        raise InputError(f'{where} is no message: it takes {{"role": "user", "content": "..."}}')
    role = written.get("role")
    if not isinstance(role, str) or not role.strip():
        raise InputError(f"{where} has no role: system, user, assistant, tool")
    content = written.get("content")
    if content is None and len(written) < 2:
        raise InputError(f"{where} ({role}) has no content")
    if content is None or isinstance(content, str):
        return dict(written)
    return {**written, "content": _joined(content, f"{where} ({role})")}


def _joined(content: Any, where: str) -> str:
    if not isinstance(content, Sequence) or not all(isinstance(part, Mapping) for part in content):
        raise InputError(f"{where}: its content is no text")
    others = [part.get("type", "nothing") for part in content if not isinstance(part.get("text"), str)]
    if others:
        raise InputError(f"{where}: a part of its content is {others[0]}, a chat is read as text alone")
    return "".join(part["text"] for part in content)


class Numbered:
    """Stand-in for a tokenizer that spells ids by `pieces`; it encodes no text.

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
        """Pieces joined by their vocabulary's word marks, else with blanks."""
        if self._marked:
            return "".join(pieces).translate(_MARKS)
        return " ".join(pieces).replace(" ##", "")

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False, **_: Any) -> str:
        left_out = set(self.all_special_ids) if skip_special_tokens else set()
        return self.convert_tokens_to_string([self._piece(id) for id in ids if id not in left_out])

    def name(self, token: int) -> str:
        """The token's text; its vocabulary spelling where another token has the same text."""
        piece = self._piece(token)
        written = self.convert_tokens_to_string([piece]).strip()
        alike = {written, f"▁{written}", f"Ġ{written}"} - {piece}
        plain = written and not piece.startswith("##") and alike.isdisjoint(self._pieces.values())
        return printable(written if plain else piece)

    def token(self, name: str) -> int | None:
        """The id that `name` is in decimal digits; None for anything else."""
        return int(name) if name.isdecimal() else None

    def _piece(self, id: int) -> str:
        return self._pieces.get(id, str(id))


class Unreadable:
    """Stand-in for a tokenizer that cannot be read: raises its error at the first use."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self, *texts: Any, **options: Any) -> Any:
        raise self._error

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        raise self._error


def read_vocabulary(file: str | Path) -> dict[int, str]:
    """Token spellings by id from `file`: one token a line from 0, or a JSON object of ids by token.

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
