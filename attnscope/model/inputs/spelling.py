"""How tokens are spelled that no text was given for: each cut from the text that they make, if it can be."""

from typing import Any

from attnscope.model.inputs.generation import Written
from attnscope.model.inputs.text import special_ids
from attnscope.tokens import Token, Tokens

_UNFINISHED = "\ufffd"  # what a tokenizer writes for the first bytes of a character


def tokens_read(tokenizer: Any, written: Written, prompt: Tokens | None = None) -> Tokens:
    """The tokens that the model has read: those of `prompt`, then those that it wrote, but for the last.

    What it wrote is a text of its own, to its end. Without a prompt, as in an encoder-decoder, also the
    tokens that the decoder starts from belong to it.
    """
    given = prompt or Tokens((), ())
    text, items = _spelled(tokenizer, written.ids, len(given), len(given.texts))
    return Tokens((*given.texts, text), given.items + items[:-1], given.stretches, written.how)


def tokens_by_number(tokenizer: Any, ids: tuple[int, ...]) -> Tokens:
    """Tokens that are given by their numbers, spelled as those are that a model wrote."""
    text, items = _spelled(tokenizer, ids, 0, 0)
    return Tokens((text,) if text.strip() else (), items)


def _spelled(tokenizer: Any, ids: tuple[int, ...], first: int, part: int) -> tuple[str, tuple[Token, ...]]:
    """The text of `ids` from number `first` on, and these tokens as pieces of text number `part`.

    Special tokens have no place in it, nor have those of a tokenizer that knows no offsets.
    """
    text, spans = _grown(tokenizer, ids, first)
    fast, special = getattr(tokenizer, "is_fast", False), special_ids(tokenizer)
    encoding = tokenizer(text, add_special_tokens=False) if text and fast else None
    own = tokenizer.convert_ids_to_tokens(list(ids))
    pieces = [f"#{id}" if piece is None else piece for id, piece in zip(ids, own, strict=True)]
    items = []
    for i, (start, end) in enumerate(spans, start=first):
        own = text[start:end]
        if encoding is None or not own or ids[i] in special:
            alone = str(tokenizer.convert_tokens_to_string([pieces[i]]))
            items.append(Token(ids[i], pieces[i], alone, None, None, part, special=ids[i] in special))
        else:
            spoken = next((at for at in range(start, len(text)) if not text[at].isspace()), None)
            word = None if spoken is None else encoding.char_to_word(spoken)
            items.append(Token(ids[i], pieces[i], own, (start, end), word, part))
    return text, tuple(items)


def _grown(tokenizer: Any, ids: tuple[int, ...], first: int) -> tuple[str, list[tuple[int, int]]]:
    """The text after the first `first` tokens, and where in it each later one stands.

    A token is what the decoded text grows by; the bytes of one character share it.
    """

    def decoded(count: int) -> str:
        some = list(ids[:count])
        return str(tokenizer.decode(some, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    start = before = len(decoded(first))
    spans: list[tuple[int, int]] = []
    for count in range(first + 1, len(ids) + 1):
        text = decoded(count)
        if not text.endswith(_UNFINISHED) or count == len(ids):
            spans += [(start - before, len(text) - before)] * (count - first - len(spans))
            start = len(text)
    return decoded(len(ids))[before:], spans
