"""A report as JSON, CSV and npz: its head, its map, its prediction, and the query's contributions."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.file_csv import Row, exact, rows
from attnscope.render.file_json import Value, document, measured, number, numbers
from attnscope.render.file_npz import Arrays, arrays_of
from attnscope.results import HeadScores, Report


@document.register
def _(result: Report, arrays: bool = True) -> dict[str, Value]:
    head = document(result.head, arrays=False)
    return {
        **{name: value for name, value in head.items() if name != "schema"},
        "schema": "attnscope.report/1",
        "query": result.query,
        "statistics": [
            {"measure": one.measure, "unit": one.unit, "value": number(one.values[0, 0]), **_told(one)}
            for one in result.statistics
        ],
        "view": None if result.view is None else document(result.view, arrays=arrays),
        "prediction": None if result.prediction is None else document(result.prediction),
        **({"contributions": numbers(result.contributions)} if arrays else {}),
        "map": document(result.projection, arrays=arrays),
    }


def _told(one: HeadScores) -> dict[str, Value]:
    """What evenly spread weights would have, and what is said of the measure."""
    return {"even": None if one.even is None else number(one.even[0, 0])} | measured(one)


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


@arrays_of.register
def _(result: Report) -> Arrays:
    return {
        **arrays_of(result.projection),
        **arrays_of(result.head),
        "query": np.array(result.query),
        "contributions": result.contributions,
    }
