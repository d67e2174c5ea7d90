"""The scores of a head taken apart, as JSON, CSV and npz: every pair, every step, full precision."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import product

from attnscope.render.file_csv import Row, comments, exact, rows
from attnscope.render.file_json import Value, document, number, numbers
from attnscope.render.file_npz import Arrays, arrays_of
from attnscope.render.kit.certificate import certificate_words
from attnscope.results import HeadTerms


@document.register
def _(result: HeadTerms, arrays: bool = True) -> dict[str, Value]:
    """The head, what each part of its score does, then the steps: `scaled` is what enters the softmax."""
    described = document(result.head, arrays=False) | {
        "schema": "attnscope.terms/1",
        "parts": [_part(asdict(part)) for part in result.influences],
    }
    if not arrays:
        return described
    head = result.head
    return described | {
        "allowed": head.allowed.tolist(),
        "scores": numbers(head.scores),
        "times_scale": numbers(result.scaled),
        "capped": None if head.softcap is None else numbers(result.capped),
        "terms": {name: numbers(values) for name, values in head.terms.items()},
        "scaled": numbers(head.scaled),
        "normaliser": numbers(result.normaliser),
        "sinks": None if result.sinks is None else numbers(result.sinks),
        "weights": numbers(head.weights),
        "sink_weights": None if result.sink_weights is None else numbers(result.sink_weights),
    }


def _part(told: dict[str, Value]) -> dict[str, Value]:
    return {name: value if name == "name" else number(value) for name, value in told.items()}


@arrays_of.register
def _(result: HeadTerms) -> Arrays:
    sinks = {"sinks": result.sinks, "sink_weights": result.sink_weights}
    return {
        **arrays_of(result.head),
        "times_scale": result.scaled,
        "capped": result.capped,
        "normaliser": result.normaliser,
        **{name: values for name, values in sinks.items() if values is not None},
    }


@rows.register
def _(result: HeadTerms) -> Iterator[Row]:
    """A row per query and key, and for a head with a sink one per query for that."""
    head, columns = result.head, result.columns
    steps = [name for name in columns if name != "q·k"]
    yield "query", "query_token", "key", "key_token", "q·k", "scale", *steps
    queries, keys = head.query_tokens.labels, head.key_tokens.labels
    scale = exact(head.scale)
    for query, key in product(range(len(queries)), range(len(keys))):
        values = [exact(columns[name][query, key]) for name in steps]
        place = (query, queries[query], key, keys[key])
        yield *place, exact(head.scores[query, key]), scale, *values
    if result.sinks is not None and result.sink_weights is not None:
        blank = [""] * (len(steps) - 2)
        for query, label in enumerate(queries):
            last = exact(result.sinks[query]), exact(result.sink_weights[query])
            yield query, label, "", "sink", "", "", *blank, *last


@comments.register
def _(result: HeadTerms) -> Iterator[tuple[str, object]]:
    """The comments that any result has, the certificate of the head, and what each part of the score does."""
    yield from comments.dispatch(object)(result)
    yield "certificate", certificate_words(result.head.certificate)
    for part in result.influences:
        figures = asdict(part)
        name = figures.pop("name")
        yield "score part", f"{name}: " + ", ".join(f"{key} {exact(value)}" for key, value in figures.items())
