"""One text of a padded batch as it would be alone: padding is no query and no key of it.

What a layer was given and returned stays whole in its `AttentionCall`, and is certified whole; results are
of the text. Rows of padding are left out, and its columns where the model gives them no weight at all. Where
it does, as one that no mask reaches, they are keys like any other and are shown.
"""

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.errors import InputError
from attnscope.tokens import Tokens

Kept = tuple[list[int], list[int]]


def kept(query_tokens: Tokens, key_tokens: Tokens, weights: Iterable[Tensor]) -> Kept | None:
    """The queries and the keys of the text, by `weights` of several heads; None where nothing is padding."""
    queries, keys = (
        [i for i, token in enumerate(tokens.items) if not token.padding]
        for tokens in (query_tokens, key_tokens)
    )
    if (len(queries), len(keys)) == (len(query_tokens), len(key_tokens)):
        return None
    seen = torch.zeros(len(key_tokens), dtype=torch.bool)
    for each in weights:
        seen |= (each[queries].nan_to_num() != 0).any(0)
    seen[keys] = True
    return queries, seen.nonzero().flatten().tolist()


def cut_tokens(query_tokens: Tokens, key_tokens: Tokens, rest: Kept) -> tuple[Tokens, Tokens]:
    """The tokens of both sides that are left; one and the same where they were."""
    queries, keys = rest
    left = query_tokens.only(queries)
    same = (query_tokens is key_tokens or query_tokens == key_tokens) and queries == keys
    return left, left if same else key_tokens.only(keys)


def without_padding(call: AttentionCall) -> AttentionCall:
    """The same attention between the tokens of its text alone."""
    rest = kept(call.query_tokens, call.key_tokens, call.weights.values())
    if rest is None:
        return call
    queries, keys = rest
    query_tokens, key_tokens = cut_tokens(call.query_tokens, call.key_tokens, rest)

    def pairs(values: Tensor) -> Tensor:
        return values[..., queries, :][..., keys]

    by_query = call.sinks is not None and call.sinks.numel() > len(call.sinks)
    return replace(
        call,
        query_tokens=query_tokens,
        key_tokens=key_tokens,
        q=call.q[:, queries],
        k=call.k[:, keys],
        v=call.v[:, keys],
        terms=tuple(replace(term, values=pairs(term.values)) for term in call.terms),
        allowed=None if call.allowed is None else pairs(call.allowed),
        sinks=call.sinks[:, queries] if call.sinks is not None and by_query else call.sinks,
        output=call.output[:, queries],
        weights={head: pairs(each) for head, each in call.weights.items()},
        unrotated_k=None if call.unrotated_k is None else call.unrotated_k[:, keys],
        remainder=None if call.remainder is None else pairs(call.remainder),
        reweighted=None if call.reweighted is None else {h: pairs(w) for h, w in call.reweighted.items()},
    )


def place_in_text(call: AttentionCall, position: int) -> int:
    """Where a query stands in its text that stands at `position` in the call; `InputError` for padding."""
    there = [i for i, token in enumerate(call.query_tokens.items) if not token.padding]
    if position not in there:
        raise InputError(f"position {position} is padding: the text stands at {there[0]}-{there[-1]}")
    return there.index(position)
