"""A long head as CSV: the strongest keys of every query, or every key of the one that was asked for."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.csv import Row, exact, rows
from attnscope.results import LongHead


@rows.register
def _(result: LongHead) -> Iterator[Row]:
    """A window that is in full resolution has a row for each of its pairs; masked ones have none."""
    queries, keys = result.query_tokens.labels, result.key_tokens.labels
    yield "query", "query_token", "rank", "key", "key_token", "weight"
    if result.query is not None and result.row is not None:
        for rank, key in enumerate(np.argsort(-result.row, kind="stable").tolist()):
            weight = exact(result.row[key])
            yield result.query, queries[result.query], rank, key, keys[key], weight
    elif result.exact and not result.whole:
        for row, column in np.argwhere(~np.isnan(result.mean)).tolist():
            query, key = result.first[0] + row, result.first[1] + column
            yield query, queries[query], "", key, keys[key], exact(result.mean[row, column])
    else:
        for query, rank in np.argwhere(result.top_keys >= 0).tolist():
            key = int(result.top_keys[query, rank])
            yield query, queries[query], rank, key, keys[key], exact(result.top_weights[query, rank])
