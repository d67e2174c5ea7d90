"""Which query looks hardest at which key in every head: among ordinary tokens, or among all of them.

Many heads of a trained encoder leave most of their weight on [CLS] and [SEP] (Clark et al. 2019, section
3.2): their largest weight then tells nothing of the text, that among the other tokens does.

`pair_of` is one pair of a head: the query and the key that are named, or its strongest link.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attnscope.errors import InputError
from attnscope.results import HeadAttention, HeadScores, MeasureDescription, Overview
from attnscope.tokens import Tokens

Weights = Sequence[Sequence[Float[np.ndarray, "query key"]]]


class Links(NamedTuple):
    """The strongest link of every head; the names are those of `Overview`."""

    strongest: Int[np.ndarray, "layer head 2"]
    strongest_weight: Float[np.ndarray, "layer head"]
    ordinary: bool


def links(weights: Weights, queries: Tokens, keys: Tokens, *, ordinary: bool = True) -> Links:
    """The largest weight of each head, with its query and key; (-1, -1) and NaN where no query has a key.

    With `ordinary` among the tokens that are not special, unless a side has no other ones, or none of them
    has a key in any head.
    """
    if ordinary:
        rows, columns = (_ordinary(tokens) for tokens in (queries, keys))
        found = _strongest(weights, rows, columns)
        if not np.isnan(found.strongest_weight).all():
            return found
    return _strongest(weights, range(len(queries)), range(len(keys)))._replace(ordinary=False)


def _ordinary(tokens: Tokens) -> Sequence[int]:
    return [i for i, token in enumerate(tokens.items) if not token.special]


def _strongest(weights: Weights, rows: Sequence[int], columns: Sequence[int]) -> Links:
    shape = len(weights), len(weights[0])
    places, sizes = np.full((*shape, 2), -1), np.full(shape, np.nan)
    for i, j in np.ndindex(shape):
        among = weights[i][j][np.ix_(rows, columns)]
        if among.size and not np.isnan(among).all():
            row, column = np.unravel_index(np.nanargmax(among), among.shape)
            places[i, j] = rows[int(row)], columns[int(column)]
            sizes[i, j] = among[row, column]
    return Links(places, sizes, True)


def among_all(overview: Overview) -> Overview:
    """The overview with the strongest links among all tokens, special ones too."""
    found = links(overview.dense_weights, overview.query_tokens, overview.key_tokens, ordinary=False)
    return replace(overview, **found._asdict())


def aimed(overview: Overview, query: int, key: int | None = None, beside: Sequence[str] = ()) -> Overview:
    """One row of every head, or one weight of it: what the query at row `query` gives to the key at `key`.

    Without a key that is the largest weight of the row, among ordinary keys unless the overview's links are
    among all or the query is special itself. Of its measures those named in `beside` are kept. A head where
    the query has no key is NaN.
    """
    weights = [[each[[query]] for each in row] for row in overview.dense_weights]
    keys = overview.key_tokens
    ordinary = overview.ordinary and not overview.query_tokens.items[query].special
    columns = _ordinary(keys) if ordinary else range(len(keys))
    found = _strongest(weights, [0], columns if key is None else [key])
    places = found.strongest.copy()
    places[..., 0] = np.where(places[..., 0] < 0, -1, query)
    told = _described(overview, query, key)
    aim = HeadScores(told, overview.layers, overview.heads, found.strongest_weight)
    kept = {name: overview.scores[name] for name in beside}
    return replace(
        overview,
        scores={aim.measure: aim, **kept},
        strongest=places,
        strongest_weight=found.strongest_weight,
        ordinary=ordinary and key is None,
        aim=(query, key),
    )


def _described(overview: Overview, query: int, key: int | None) -> MeasureDescription:
    asked = f"{overview.query_tokens.positions[query]} {overview.query_tokens.names[query]}"
    if key is None:
        label, strongest = f"largest weight of {asked}", "heads in which it looks hardest at one key"
        return MeasureDescription(
            name="row", unit="weight", meaning=label, label=label, strongest=strongest, low="spread thin",
            high="all on one key",
        )  # fmt: skip
    label = f"weight of {asked} → {overview.key_tokens.positions[key]} {overview.key_tokens.names[key]}"
    return MeasureDescription(
        name="pair", unit="weight", meaning=label, label=label, strongest="heads in which it is largest"
    )


def pair_of(head: HeadAttention, query: str | int | None, key: str | int | None) -> tuple[int, int]:
    """Where query and key stand, by default those of the strongest link; `InputError` for a masked key."""
    if query is None and key is not None:
        raise InputError("a key goes with a query: name a query")
    queries, keys = head.query_tokens, head.key_tokens
    row = _strongest_of(head.weights, queries, keys)[0] if query is None else _place(queries, query)
    if row < 0 or not head.answered[row]:
        raise InputError(f"query {queries.named(max(row, 0))} has no key that it may look at")
    if key is None:
        return row, _strongest_of(head.weights[row : row + 1], queries.only([row]), keys)[1]
    column = _place(keys, key)
    if not head.allowed[row, column]:
        raise InputError(f"key {keys.named(column)} is masked for query {queries.named(row)}")
    return row, column


def _place(tokens: Tokens, wanted: str | int) -> int:
    """A number is a position here, even where a token is called so."""
    inside = isinstance(wanted, int) and 0 <= wanted < len(tokens)
    return int(wanted) if inside else tokens.position(str(wanted))


def _strongest_of(weights: Float[np.ndarray, "query key"], queries: Tokens, keys: Tokens) -> tuple[int, int]:
    """The strongest link among tokens that are not special, where there are any; (-1, -1) without a key."""
    row, column = links([[weights]], queries, keys).strongest[0, 0].tolist()
    return row, column
