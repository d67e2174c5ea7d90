"""A report as CSV: the query's row, one key a line, with what each key brings."""

from collections.abc import Iterator

from attnscope.render.kit.csv import Row, exact, rows
from attnscope.results import Report


@rows.register
def _(result: Report) -> Iterator[Row]:
    """The query's row: one key a line."""
    yield "key", "token", "weight", "score", "scaled", "distance", "contribution"
    head, query = result.head, result.query
    for key, label in enumerate(head.key_tokens.labels):
        values = (
            head.weights[query, key],
            head.scores[query, key],
            head.scaled[query, key],
            result.projection.distance[query, key],
            result.contributions[key],
        )
        yield key, label, *map(exact, values)
