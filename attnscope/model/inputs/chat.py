"""A conversation as a user gives it: messages, and what else the chat template of a model may write.

    [{"role": "user", "content": "Who opened the door?"}]
    {"messages": [...], "tools": [...], "enable_thinking": true}

Here it is only read and checked. What a model's template makes of it is `attnscope.model.inputs.rendered`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnscope import incoming
from attnscope.errors import InputError

Message = Mapping[str, Any]
SYSTEM, USER = "system", "user"
_OURS = {  # what a template is called with by us or by the library, and what is of no text
    *("conversation", "chat_template", "tokenize", "padding", "truncation", "max_length", "return_tensors"),
    *("return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs", "continue_final_message"),
    "add_generation_prompt",
}
_FORM = 'a list of messages, [{"role": "user", "content": "..."}], or an object with such "messages"'


@dataclass(frozen=True)
class Chat:
    """Messages in their order, `settings` that the template is given with them, and the file of both.

    `settings` are tools, documents and whatever else a template knows, such as `enable_thinking`.
    """

    messages: tuple[Message, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None

    def behind(self, system: str) -> "Chat":
        """The chat behind a system message; `InputError` where it begins with one."""
        if self.messages[0]["role"] == SYSTEM:
            raise InputError("--system: the chat begins with a system message already, leave one out")
        if not system:
            return self
        return replace(self, messages=({"role": SYSTEM, "content": system}, *self.messages))


def asked(text: str) -> Chat:
    """The text as the only message of a user."""
    if not text.strip():
        raise InputError("the text is empty")
    return Chat(({"role": USER, "content": text},))


def read_chat(file: Path) -> Chat:
    """The conversation that stands in a file, or comes by standard input."""
    name = f"--chat {incoming.named(file)}"
    return replace(chat_of(incoming.parsed(incoming.content(file, "the chat"), name), name), file=file)


def chat_of(written: Any, name: str = "the chat") -> Chat:
    """A list of messages, or an object that has it; `InputError` that says which message is wrong."""
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
