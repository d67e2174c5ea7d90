"""A report: its head, its map, its prediction, and the query's contributions."""

import numpy as np
from jaxtyping import Float

from attnscope.results.heads import HeadAttention, HeadScores
from attnscope.results.prediction import Prediction
from attnscope.results.report import Report
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.record import Arrays, Record
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.scores import meant, measured, read_scores
from attnscope.results.stored.codec.strict import Value, or_none
from attnscope.results.stored.heads.projection import read_projection
from attnscope.results.stored.heads.view import read_view, view_document
from attnscope.results.stored.prediction import check_blanks, read_prediction

_SHARES = Float[np.ndarray, " key"]


@document.register
def _(result: Report, arrays: bool = True) -> dict[str, Value]:
    """The head as it is described everywhere; its arrays stand in `map`."""
    head = document(result.head, arrays=False)
    return {
        **{name: value for name, value in head.items() if name != "schema"},
        "schema": "attnscope.report/1",
        "query": result.query,
        "statistics": [_statistic(one) for one in result.statistics],
        "view": None if result.view is None else view_document(result.view, arrays),
        "prediction": None if result.prediction is None else document(result.prediction),
        **({"contributions": result.contributions} if arrays else {}),
        "map": document(result.projection, arrays=arrays),
    }


def _statistic(one: HeadScores) -> dict[str, Value]:
    """The value of a measure, what evenly spread weights would have, and what is said of it."""
    even = None if one.even is None else or_none(float(one.even[0, 0]))
    value = float(one.values[0, 0])
    return {"measure": one.measure, "unit": one.unit, "value": value, "even": even, **measured(one)}


@arrays_of.register
def _(result: Report) -> Arrays:
    view = {} if result.view is None else {"weights": result.view.weights, "allowed": result.view.allowed}
    return {
        **arrays_of(result.projection),
        **arrays_of(result.head),
        "query": np.array(result.query),
        "contributions": result.contributions,
        **{f"view {name}": values for name, values in view.items()},
    }


@reads("attnscope.report/1")
def read(record: Record) -> Report:
    projection = read_projection(record.part("map"))
    head, query = projection.head, record.get("query", int)
    if not 0 <= query < len(head.query_tokens):
        raise Damaged(f"'query' is {query}, which is no token's position")
    record.sizes["key"] = len(head.key_tokens)
    view = None
    if record.get("view", object) is not None:
        view = read_view(record.part("view").prefixed("view "), head)
    if view is not None and view.query_row(query) is None:
        raise Damaged("'view' leaves the query out")
    contributions = record.array("contributions", _SHARES)
    statistics = tuple(_read_statistic(each, head) for each in record.parts("statistics"))
    return Report(projection, query, contributions, statistics, _prediction(record, head), view)


def _prediction(record: Record, head: HeadAttention) -> Prediction | None:
    if record.get("prediction", object) is None:
        return None
    prediction = read_prediction(record.part("prediction"))
    check_blanks(prediction, len(head.query_tokens))
    return prediction


def _read_statistic(record: Record, head: HeadAttention) -> HeadScores:
    place = {"layers": (head.layer,), "heads": (head.head,)}
    values = np.array([[record.get("value", float)]])
    if "limits" not in record.told:
        name, unit = record.get("measure", str), record.get("unit", str)
        return meant(name, unit, len(head.key_tokens), values=values, **place)
    even = record.get("even", float | None)
    evens = None if even is None else np.array([[even]])
    return read_scores(record, values=values, even=evens, **place)
