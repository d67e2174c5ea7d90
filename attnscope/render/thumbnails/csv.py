"""Thumbnails as CSV: a row per cell, named by its first query and its first key."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.csv import Row, exact, rows
from attnscope.results import Thumbnails


@rows.register
def _(result: Thumbnails) -> Iterator[Row]:
    """Masked cells have no row."""
    yield "layer", "head", "query", "query_token", "key", "key_token", "weight"
    queries, keys = result.query_tokens.labels, result.key_tokens.labels
    for i, j, row, column in np.argwhere(~np.isnan(result.weights)).tolist():
        query, key = row * result.step, column * result.step
        weight = exact(result.weights[i, j, row, column])
        yield result.layers[i], result.heads[j], query, queries[query], key, keys[key], weight
