"""The scores of a head taken apart, as CSV: every pair, every step, full precision."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import product

from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.kit.words.certificate import certificate_words
from attnscope.results import HeadTerms


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
