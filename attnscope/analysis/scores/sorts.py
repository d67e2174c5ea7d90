"""Tokens by sort: which are special, which punctuation, which the same as which, which of one text."""

import unicodedata

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnscope.tokens import Patches, Token, Tokens


def special(tokens: Tokens) -> Bool[Tensor, " token"]:
    return torch.tensor([token.special for token in tokens.items], dtype=torch.bool)


def punctuation(tokens: Tokens) -> Bool[Tensor, " token"]:
    """Those that are nothing but punctuation, as Unicode has it."""
    return torch.tensor([_is_punctuation(token) for token in tokens.items], dtype=torch.bool)


def _is_punctuation(token: Token) -> bool:
    written = token.text.strip()
    return not token.special and bool(written) and all(unicodedata.category(c)[0] == "P" for c in written)


def alike(queries: Tokens, keys: Tokens) -> Bool[Tensor, "query key"]:
    """Where a key is the same token as the query, or the same word, in whatever capitals; itself too.

    A patch or a frame is like none but itself.
    """
    first, second = named(queries, keys)
    return first[:, None] == second[None, :]


def named(queries: Tokens, keys: Tokens) -> tuple[Int[Tensor, " query"], Int[Tensor, " key"]]:
    """A number for every token of either side, equal where the tokens are the same."""
    names = [_names(tokens) for tokens in (queries, keys)]
    numbers = {name: i for i, name in enumerate(dict.fromkeys([*names[0], *names[1]]))}
    first, second = (torch.tensor([numbers[name] for name in each]) for each in names)
    return first, second


def _names(tokens: Tokens) -> list[object]:
    elsewhere = {place for stretch in tokens.stretches for place in stretch.positions}
    return [
        ("position", i) if i in elsewhere else ("word", token.text.casefold()) if token.id < 0 else token.id
        for i, token in enumerate(tokens.items)
    ]


def is_picture(tokens: Tokens) -> bool:
    """Whether the positions are patches of a picture, and tokens that the model has learned."""
    return not tokens.texts and any(isinstance(each, Patches) for each in tokens.stretches)


def together(queries: Tokens, keys: Tokens) -> Bool[Tensor, "query key"] | None:
    """Where query and key are of the same one of several texts; None where there is one."""
    found = parts(queries, keys)
    return None if found is None else found[0][:, None] == found[1][None, :]


def parts(queries: Tokens, keys: Tokens) -> tuple[Int[Tensor, " query"], Int[Tensor, " key"]] | None:
    """Which of several texts each token is of; None where there is one."""
    first, second = (torch.tensor([token.part for token in tokens.items]) for tokens in (queries, keys))
    return None if len({*first.tolist(), *second.tolist()}) < 2 else (first, second)
