"""Tokens as a page knows them: their names, which are special, which make a word, which text they are of."""

from typing import Any

from attnscope.errors import InputError
from attnscope.results.base.groups import joined, words_of
from attnscope.tokens import Tokens
from attnscope.vocabulary import Special


def tokens_of(tokens: Tokens) -> dict[str, Any]:
    """`words` are positions by word, None where the tokenizer does not tell or every word is one token."""
    parts = [token.part for token in tokens.items]
    return {
        "names": list(tokens.names),
        "special": [i for i, token in enumerate(tokens.items) if token.special],
        "parts": parts,
        **_words(tokens),
    }


def _words(tokens: Tokens) -> dict[str, Any]:
    try:
        groups = words_of(tokens)
    except InputError:
        return {"words": None, "joined": {}}
    if all(len(group) == 1 for group in groups):
        return {"words": None, "joined": {}}
    names = joined(tokens, groups).names
    whole = {group[0]: name for group, name in zip(groups, names, strict=True) if len(group) > 1}
    return {"words": groups, "joined": whole}


def sides(queries: Tokens, keys: Tokens) -> dict[str, Any]:
    """Both sides of one attention. `pair` where two texts were read: then one may look at the other."""
    same = queries is keys or queries == keys
    pair = same and len({token.part for token in queries.items}) > 1
    return {
        "queries": tokens_of(queries),
        "keys": None if same else tokens_of(keys),
        "self": same,
        "pair": pair,
    }


def first_token(
    place: int | None, tokens: dict[str, Any] | None, words: bool, special: Special
) -> int | None:
    """Where what stands at a `place` begins, among words or without special tokens, by tokens."""
    if place is None or tokens is None:
        return place
    groups = tokens["words"] if words and tokens["words"] else [(i,) for i in range(len(tokens["names"]))]
    hidden = () if special is Special.SHOW else tokens["special"]
    return [group[0] for group in groups if group[0] not in hidden][place]
