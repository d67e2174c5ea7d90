"""The product of one query and one key of a head, dimension by dimension."""

import numpy as np
from jaxtyping import Float

from attnscope.analysis.head import recompute_head
from attnscope.analysis.links import links
from attnscope.analysis.padding import without_padding
from attnscope.analysis.rotation import rotation_of
from attnscope.attention import AttentionCall, Capture
from attnscope.errors import InputError
from attnscope.results import Dimensions, HeadAttention
from attnscope.results.dimensions import Rotation
from attnscope.tokens import Tokens

UNPAIRED = "its keys are turned, but not two and two by one angle from token to token"


def head_dimensions(
    captured: Capture,
    layer: int,
    head: int,
    query: str | int | None = None,
    key: str | int | None = None,
    block: int = 0,
) -> Dimensions:
    """Head `head` of a captured layer at one pair of tokens, by default its strongest.

    `InputError` when the head was not captured, or for a token that is not there or masked.
    """
    found = recompute_head(captured, layer, head, block=block)
    row, column = _pair(found, query, key)
    rotation, unpaired = _rotation(without_padding(captured.call(layer, block=block)), found.key_head)
    return Dimensions(found, row, column, rotation, unpaired)


def _pair(head: HeadAttention, query: str | int | None, key: str | int | None) -> tuple[int, int]:
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


def _rotation(call: AttentionCall, key_head: int) -> tuple[Rotation | None, str]:
    if call.unrotated_k is None:
        return None, ""
    before, after = (each[key_head].double().numpy() for each in (call.unrotated_k, call.k))
    if (before == after).all():
        return None, ""
    found = rotation_of(before, after)
    return found, "" if found is not None else UNPAIRED
