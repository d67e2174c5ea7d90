"""What is given otherwise than as a text: words that are cut already, and tokens by their numbers."""

from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch
from transformers import BatchEncoding

from attnscope.errors import InputError
from attnscope.model.inputs.generation import tokens_by_number
from attnscope.model.inputs.text import Encoded, encode, with_own_masks
from attnscope.tokens import Token, Tokens

Words = tuple[str, ...]  # of one text


def encode_words(
    tokenizer: Any, texts: tuple[Words, ...], *, name: str, limit: int | None, truncate: bool = False
) -> Encoded:
    """As `encode` for the words of one text or of a pair: they are read with one blank between them.

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
    """Exactly these tokens for the model called `name`; `tokenizer` is only asked how they are spelled."""
    notices: tuple[str, ...] = ()
    if limit is not None and len(ids) > limit:
        if not truncate:
            raise InputError(
                f"--ids are {len(ids)} tokens, {name} reads at most {limit}: --truncate cuts them"
            )
        notices = (f"--ids are {len(ids)} tokens: cut to the {limit} that {name} reads",)
        ids = ids[:limit]
    there = torch.tensor([ids])
    inputs = BatchEncoding({"input_ids": there, "attention_mask": torch.ones_like(there)})
    mask = tokenizer.mask_token_id
    return Encoded(inputs, tokens_by_number(tokenizer, ids), notices, mask if mask in ids else None)
