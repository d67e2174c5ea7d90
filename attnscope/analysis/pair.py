"""One pair of a head: the query and the key that are named, or its strongest link."""

import numpy as np
from jaxtyping import Float

from attnscope.analysis.links import links
from attnscope.errors import InputError
from attnscope.results import HeadAttention
from attnscope.tokens import Tokens


def pair_of(head: HeadAttention, query: str | int | None, key: str | int | None) -> tuple[int, int]:
    """Where query and key stand, by default those of the strongest link; `InputError` for a masked key."""
    if query is None and key is not None:
        raise InputError("a key goes with a query: name a query")
    queries, keys = head.query_tokens, head.key_tokens
    row = _strongest(head.weights, queries, keys)[0] if query is None else _place(queries, query)
    if row < 0 or not head.answered[row]:
        raise InputError(f"query {queries.named(max(row, 0))} has no key that it may look at")
    if key is None:
        return row, _strongest(head.weights[row : row + 1], queries.only([row]), keys)[1]
    column = _place(keys, key)
    if not head.allowed[row, column]:
        raise InputError(f"key {keys.named(column)} is masked for query {queries.named(row)}")
    return row, column


def _place(tokens: Tokens, wanted: str | int) -> int:
    """A number is a position here, even where a token is called so."""
    inside = isinstance(wanted, int) and 0 <= wanted < len(tokens)
    return int(wanted) if inside else tokens.position(str(wanted))


def _strongest(weights: Float[np.ndarray, "query key"], queries: Tokens, keys: Tokens) -> tuple[int, int]:
    """The strongest link among tokens that are not special, where there are any; (-1, -1) without a key."""
    row, column = links([[weights]], queries, keys).strongest[0, 0].tolist()
    return row, column
