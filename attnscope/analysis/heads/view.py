"""A head's weights between words, with special tokens shown, left out, or left out and the rest scaled up.

Sum over the pieces of a key, mean over the pieces of a query that have a key (Clark et al. 2019): a row
still sums to what the rows of its pieces sum to. Weights are regrouped, never made anew.
"""

from attnscope.errors import InputError
from attnscope.results import HeadView, HeadWeights, Special
from attnscope.results.base.grouped import members, regrouped
from attnscope.results.base.words import Groups, joined, words_of
from attnscope.tokens import Tokens


def viewed(head: HeadWeights, *, words: bool = False, special: Special = Special.SHOW) -> HeadView:
    """The weights of `head`, by `words` or by tokens, with special tokens as `special` says.

    `InputError` where nothing is left to show, or the tokens do not say which words they belong to.
    """
    queries = groups_of(head.query_tokens, "query", words, special)
    keys = groups_of(head.key_tokens, "key", words, special)
    rows, columns = members(queries, len(head.query_tokens)), members(keys, len(head.key_tokens))
    same = head.query_tokens is head.key_tokens
    query_tokens = joined(head.query_tokens, queries)
    return HeadView(
        head=head,
        words=words,
        special=special,
        query_tokens=query_tokens,
        key_tokens=query_tokens if same else joined(head.key_tokens, keys),
        query_groups=queries,
        key_groups=keys,
        weights=regrouped(head.weights, queries, keys, renormalise=special is Special.RENORMALISE),
        allowed=rows @ head.allowed @ columns.T,
    )


def groups_of(tokens: Tokens, side: str, words: bool, special: Special) -> Groups:
    """Words or single tokens, without the special ones unless they are shown."""
    groups = words_of(tokens) if words else tuple((i,) for i in range(len(tokens)))
    if special is Special.SHOW:
        return groups
    left = tuple(group for group in groups if not tokens.items[group[0]].special)
    if not left:
        raise InputError(f"every {side} is a special token: without them nothing is left to show")
    return left
