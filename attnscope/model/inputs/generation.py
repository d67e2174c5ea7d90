"""Text that the model generates, and inputs from token ids or from words that are already split.

The newest token is never fed back to the model, so it is no part of what was read: as in transformers, N new
tokens are N - 1 more rows of attention.

Tokens without a text (`tokens_read`, `tokens_by_number`) are cut from the text that they decode to together,
where that works.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.errors import InputError, one_line
from attnscope.model.inputs.text import Encoded, encode, special_ids, with_own_masks
from attnscope.reference import exact
from attnscope.tokens import Given, Section, Token, Tokens

_UNFINISHED = "\ufffd"  # what a tokenizer writes for the first bytes of a character


LIKELIEST = "greedily"  # the likeliest token each time
Words = tuple[str, ...]  # the words of one text


@dataclass(frozen=True, eq=False)
class Written:
    """A generated sequence: `given` prompt tokens, then those that the model wrote.

    `finished` is True where it ended with an end token. `chances` are the probabilities at each step.
    """

    ids: tuple[int, ...]
    given: int
    finished: bool
    chances: Float[Tensor, "step word"]

    @property
    def read(self) -> tuple[int, ...]:
        """All token ids but the last: those that the model has read by then."""
        return self.ids[:-1]


@torch.no_grad()
def write(module: Any, inputs: Any, most: int, name: str) -> Written:
    """Generate greedily, at most `most` tokens, from a batch of one with the model called `name`.

    Raises `InputError` for a model that cannot write, and for settings that the library does not follow.
    """
    head = getattr(module, "get_output_embeddings", lambda: None)
    if not hasattr(module, "generate") or not module.can_generate() or head() is None:
        raise InputError(f"{name} has no language-model head and writes no text")
    try:
        made = module.generate(
            **inputs,
            max_new_tokens=most,
            do_sample=False,
            num_beams=1,
            use_cache=True,
            return_dict_in_generate=True,
            output_logits=True,
        )
    except ValueError as error:  # unsupported settings of the checkpoint
        raise InputError(f"{name} does not write on: {one_line(error).rstrip('.')}") from error
    ids = tuple(made.sequences[0].tolist())
    stated = module.generation_config.eos_token_id
    ends = stated if isinstance(stated, list) else [stated]
    chances = exact(torch.cat(made.logits)).softmax(-1)
    return Written(ids, len(ids) - len(made.logits), ids[-1] in ends, chances)


def check_room(tokens: int, most: int, limit: int | None, name: str) -> None:
    """Raises `InputError` where `name` cannot read `tokens` and then all but the last of `most` more."""
    if limit is not None and tokens + most - 1 > limit:
        room = max(limit - tokens + 1, 0)
        raise InputError(
            f"{most} tokens after {tokens} are too many: {name} reads at most {limit}, so that --generate "
            f"{room} is the most"
        )


def tokens_read(tokenizer: Any, written: Written, prompt: Tokens | None = None) -> Tokens:
    """Tokens that the model has read: those of `prompt`, then those that it wrote, without the last.

    The generated part is a text of its own. Without a prompt, as in an encoder-decoder, the decoder's start
    tokens belong to it too.
    """
    given = prompt or Tokens((), ())
    whole = tokens_behind(tokenizer, given, written.ids[len(given) :], LIKELIEST)
    return replace(whole, items=whole.items[:-1], marked=answered(given, len(whole) - 1))


def tokens_behind(tokenizer: Any, given: Tokens, ids: tuple[int, ...], how: str) -> Tokens:
    """The tokens of `given`, then `ids` as a text of their own; `how` says how these were made."""
    text, items = _spelled(tokenizer, (*given.ids, *ids), len(given), len(given.texts))
    read = given.items + items
    return Tokens((*given.texts, text), read, answered(given, len(read)), how)


def answered(given: Tokens, read: int) -> tuple[Any, ...]:
    """`given.marked` once the model has read `read` tokens: with a section for a generated answer.

    Generated tokens are the assistant's message where the template has opened that, and nothing was in it.
    """
    opened = max((each.first + each.count for each in given.sections), default=len(given))
    if opened == len(given):
        return given.marked
    return *given.marked, Section("role", "assistant", opened, read - opened)


def tokens_by_number(tokenizer: Any, ids: tuple[int, ...]) -> Tokens:
    """Tokens for ids that the user gave, spelled by the tokenizer."""
    text, items = _spelled(tokenizer, ids, 0, 0)
    return Tokens((text,) if text.strip() else (), items, (Given("ids"),))


def _spelled(tokenizer: Any, ids: tuple[int, ...], first: int, part: int) -> tuple[str, tuple[Token, ...]]:
    """The text of `ids` from index `first` on, and these as tokens of text number `part`.

    Special tokens have no place in the text, nor have those of a tokenizer without offsets.
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
            unknown = ids[i] == tokenizer.unk_token_id and ids[i] not in special
            added = {"special": ids[i] in special, "unknown": unknown}
            items.append(Token(ids[i], pieces[i], alone, None, None, part, **added))
        else:
            spoken = next((at for at in range(start, len(text)) if not text[at].isspace()), None)
            word = None if spoken is None else encoding.char_to_word(spoken)
            items.append(Token(ids[i], pieces[i], own, (start, end), word, part))
    return text, tuple(items)


def _grown(tokenizer: Any, ids: tuple[int, ...], first: int) -> tuple[str, list[tuple[int, int]]]:
    """The text behind the first `first` tokens, and the characters of each later token in it.

    A token's text is the growth of the decoded text; tokens that share a character's bytes share its place.
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


def encode_words(
    tokenizer: Any, texts: tuple[Words, ...], *, name: str, limit: int | None, truncate: bool = False
) -> Encoded:
    """Model inputs for a text or a pair in words, which are joined by blanks.

    A token belongs to the given word that it begins in, whatever the tokenizer holds for a word.
    """
    if not all(texts) or any(not word.strip() for words in texts for word in words):
        raise InputError("one of the words is empty" if all(texts) else "there are no words in the text")
    masked = with_own_masks(tokenizer, tuple(word for words in texts for word in words), name)
    respelled = iter(masked.texts)
    texts = tuple(tuple(next(respelled) for _ in words) for words in texts)
    joined = tuple(" ".join(words) for words in texts)
    encoded = encode(tokenizer, joined, name=name, limit=limit, truncate=truncate)
    notices = (masked.notice, *encoded.notices) if masked.notice else encoded.notices
    return replace(encoded, tokens=_in_words(encoded.tokens, texts), notices=notices)


def _in_words(tokens: Tokens, texts: tuple[Words, ...]) -> Tokens:
    ends = [list(accumulate(len(word) + 1 for word in words)) for words in texts]  # behind the blank

    def numbered(token: Token) -> Token:
        if token.span is None:
            return token
        first = token.span[0] + len(token.text) - len(token.text.lstrip())
        return replace(token, word=bisect_right(ends[token.part], first))

    return replace(tokens, items=tuple(map(numbered, tokens.items)), words_given=True)


def encode_numbers(
    tokenizer: Any, ids: tuple[int, ...], *, name: str, limit: int | None, truncate: bool = False
) -> Encoded:
    """Model inputs of exactly these token ids; `tokenizer` only spells them."""
    notices: tuple[str, ...] = ()
    if limit is not None and len(ids) > limit:
        if not truncate:
            raise InputError(
                f"--ids are {len(ids)} tokens, {name} reads at most {limit}: --truncate cuts them"
            )
        notices = (f"--ids are {len(ids)} tokens: cut to the {limit} that {name} reads",)
        ids = ids[:limit]
    from transformers import BatchEncoding

    there = torch.tensor([ids])
    inputs = BatchEncoding({"input_ids": there, "attention_mask": torch.ones_like(there)})
    mask = tokenizer.mask_token_id
    return Encoded(inputs, tokens_by_number(tokenizer, ids), notices, mask if mask in ids else None)
