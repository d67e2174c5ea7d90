"""Chats in a model's chat template: the rendered text, its tokens, and the role of each part.

The text is the template's own to the last character: the tokenizer adds no token, as a template writes the
start token itself where the model knows one. The characters of a message are those by which the text grows
when the message is added. Where a template writes earlier messages otherwise once a later one is there, roles
cannot be told, and the tokens say so.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

from attnscope import incoming
from attnscope.errors import InputError, is_out_of_memory, one_line
from attnscope.model.inputs.given import Chat, Message
from attnscope.model.inputs.text import Encoded, encoded_texts
from attnscope.process.machine import ALONE
from attnscope.tokens import Given, Section, Tokens

ASSISTANT = "assistant"
Stretch = tuple[int, int]  # first and end character


def has_template(tokenizer: Any) -> bool:
    """True where the tokenizer came with a chat template."""
    return bool(getattr(_own(tokenizer), "chat_template", None))


def _own(tokenizer: Any) -> Any:
    """The library's tokenizer itself, whose errors here are not those of damaged files."""
    return getattr(tokenizer, "own", tokenizer)


def rendered(maker: Any, messages: Sequence[Message], name: str, **settings: Any) -> str:
    """The chat as the template of a tokenizer or processor writes it; `InputError` where it fails."""
    try:
        with _no_longer_than(incoming.LONGEST_LINE):
            return str(maker.apply_chat_template(messages, tokenize=False, **settings))
    except Exception as error:  # one call of the library, in which code of the template runs
        if is_out_of_memory(error):
            raise
        why = one_line(error).rstrip(".")
        raise InputError(f"the chat template of {name} does not take the chat: {why}") from error


@contextmanager
def _no_longer_than(most: int) -> Iterator[None]:
    """Context manager: stops a template that writes more than `most` characters, before it multiplies."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment as Sandbox

    def check(characters: int) -> None:
        if characters > most:
            raise OverflowError(f"it writes more than {most:,} characters")

    def concat(pieces: Iterable[str]) -> str:
        written: list[str] = []
        length = 0
        for piece in pieces:
            length += len(piece)
            check(length)
            written.append(piece)
        return "".join(written)

    def call_binop(self: Any, context: Any, operator: str, left: Any, right: Any) -> Any:
        for text, times in ((left, right), (right, left)):
            if isinstance(text, str | list | tuple) and isinstance(times, int):
                check(len(text) * times)
        return self.binop_table[operator](left, right)

    own = {"concat": staticmethod(concat), "call_binop": call_binop, "intercepted_binops": frozenset("*")}
    with ALONE:
        before = {name: getattr(Sandbox, name) for name in own}
        try:
            for name, value in own.items():
                setattr(Sandbox, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(Sandbox, name, value)


class _Untold(Exception):
    """Raised with the reason why a chat's messages cannot be told apart."""


class Template:
    """The chat template of the model called `name`, applied to one conversation."""

    def __init__(self, tokenizer: Any, chat: Chat, name: str) -> None:
        self._tokenizer, self._chat, self._name = _own(tokenizer), chat, name
        if not has_template(tokenizer):
            raise InputError(
                f"{name} has no chat template: give it a text, or the tokens of the chat (--ids)"
            )

    def whole(self) -> str:
        """The rendered chat; a last message that is not the model's is followed by the answer's opening."""
        messages = self._chat.messages
        text = self._rendered(messages, opens=messages[-1]["role"] != ASSISTANT)
        if not text.strip():
            raise InputError(f"the chat template of {self._name} makes an empty text of the chat")
        return text

    def _rendered(self, messages: Sequence[Message], opens: bool = False, without: str | None = None) -> str:
        settings = {key: value for key, value in self._chat.settings.items() if key != without}
        given = [dict(each) for each in messages]  # a template may change what it is given
        return rendered(self._tokenizer, given, self._name, add_generation_prompt=opens, **settings)

    def unread(self) -> Iterator[str]:
        """Names of message fields and settings that the template leaves out or writes otherwise."""
        messages, settings = self._chat.messages, self._chat.settings
        whole = self._rendered(messages)
        yield from (key for key in settings if self._rendered_or_none(messages, without=key) == whole)
        for i, message in enumerate(messages):
            where = f"message {i + 1} ({message['role']})"
            for key in (key for key in message if key != "role" and message[key]):
                if key == "content" and message[key].strip() in whole:
                    continue
                less = {name: value for name, value in message.items() if name != key}
                if self._rendered_or_none([*messages[:i], less, *messages[i + 1 :]]) == whole:
                    yield f"{key} of {where}"
                elif key == "content":
                    yield f"a part of the content of {where}"

    def _rendered_or_none(self, messages: Sequence[Message], without: str | None = None) -> str | None:
        try:
            return self._rendered(messages, without=without)
        except InputError:
            return None

    def stretches(self) -> list[Stretch]:
        """First and end character of each message; raises `_Untold` where these cannot be told."""
        messages = self._chat.messages
        grown = [self._prefix(count) for count in range(1, len(messages) + 1)]
        for count, (before, after) in enumerate(pairwise(grown), start=1):
            if not after.startswith(before):
                raise _Untold(
                    f"the chat template of {self._name} writes the first {_messages(count)} otherwise once "
                    f"message {count + 1} ({messages[count]['role']}) is there"
                )
        if not self.whole().startswith(grown[-1]):
            raise _Untold(f"the chat template of {self._name} ends a chat otherwise before an answer")
        ends = list(map(len, grown))
        return list(pairwise([self._start(grown[0]), *ends]))

    def _prefix(self, count: int) -> str:
        try:
            return self._rendered(self._chat.messages[:count])
        except InputError as error:
            raise _Untold(
                f"the chat template of {self._name} does not write the first {_messages(count)} alone: "
                f"{str(error).rpartition(': ')[2]}"
            ) from error

    def _start(self, first: str) -> int:
        """Character at which the first message begins, behind the template's own preamble.

        It is found from the same message further on in a chat, where it comes without a preamble.
        """
        message = self._chat.messages[0]
        for between in ([], [{"role": ASSISTANT, "content": "a"}], [{"role": "user", "content": "a"}]):
            before = self._rendered_or_none([message, *between])
            again = self._rendered_or_none([message, *between, message])
            if before is not None and again is not None and again.startswith(before):
                own = again[len(before) :]
                if own and first.endswith(own):
                    return len(first) - len(own)
        empty = self._rendered_or_none([])
        if empty is not None and first.startswith(empty):
            return len(empty)
        begins = getattr(self._tokenizer, "bos_token", None) or ""
        return len(begins) if first.startswith(begins) else 0


def _messages(count: int) -> str:
    return "message" if count == 1 else f"{count} messages"


def encode_chat(
    tokenizer: Any, chat: Chat, *, name: str, limit: int | None, truncate: bool = False
) -> Encoded:
    """Model inputs of a conversation, with each message a section of its tokens.

    Raises `InputError` for a model without a template, and for a chat that its template does not take.
    """
    template = Template(tokenizer, chat, name)
    text = template.whole()
    own: dict[str, Any] = {"add_special_tokens": False}
    encoded = encoded_texts(tokenizer, (text,), name=name, limit=limit, truncate=truncate, options=own)
    told = [f"the chat template of {name} leaves out {each}" for each in template.unread()]
    told += _begun_otherwise(tokenizer, encoded.tokens, name)
    mask = tokenizer.mask_token_id
    return replace(
        encoded,
        tokens=_sectioned(template, chat, encoded.tokens, name),
        notices=(*told, *encoded.notices),
        mask_id=mask if mask in encoded.tokens.ids else None,
    )


def _begun_otherwise(tokenizer: Any, tokens: Tokens, name: str) -> list[str]:
    begins = tokenizer.bos_token_id
    if begins is None or tokenizer("a")["input_ids"][:1] != [begins]:
        return []
    piece = tokenizer.bos_token
    if tokens.ids[:2] == (begins, begins):
        return [f"the chat template of {name} writes {piece} twice in front"]
    if tokens.ids[0] != begins:
        return [f"the chat template of {name} writes no {piece} in front, as its tokenizer does of a text"]
    return []


def _sectioned(template: Template, chat: Chat, tokens: Tokens, name: str) -> Tokens:
    try:
        sections = _sections(chat, template.stretches(), tokens, name)
    except _Untold as untold:
        return replace(tokens, marked=(Given("chat", f"roles cannot be told: {untold}"),))
    return replace(tokens, marked=(*sections, Given("chat")))


def _sections(chat: Chat, stretches: Sequence[Stretch], tokens: Tokens, name: str) -> list[Section]:
    if any(token.span is None for token in tokens.items):
        raise _Untold(f"the tokenizer of {name} does not say where in the text its tokens are")
    spans = [token.span for token in tokens.items if token.span is not None]
    sections = []
    for message, (start, end) in zip(chat.messages, stretches, strict=True):
        if not (inside := [span for span in spans if start <= span[0] < end]):
            continue  # cut off by truncation
        begins, ends = _said(message, tokens.texts[0][start:end])
        before = sum(span[1] <= start + begins for span in inside)
        after = sum(span[0] >= start + ends for span in inside)
        whole = spans.index(inside[0]), len(inside)
        sections.append(Section("role", message["role"], *whole, before, after))
    return sections


def _said(message: Message, written: str) -> Stretch:
    content = str(message.get("content") or "").strip()
    if not content and not message.keys() - {"role", "content"}:
        return len(written), len(written)
    behind = max(written.find(message["role"]), 0) + len(message["role"])
    at = written.find(content, behind) if written.count(content) > 1 else written.find(content)
    return (at, at + len(content)) if content and at >= 0 else (0, len(written))
