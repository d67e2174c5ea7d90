"""Two runs held against each other as CSV: heads and their rows, and the weights of the one shown."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.difference.words import (
    certified_words,
    control_words,
    differing_words,
    run_words,
    subject,
)
from attnscope.render.kit.csv import Row, comments, exact, place, rows
from attnscope.results import Difference

_COLUMNS = (
    *("fact", "layer", "head", "layer_b", "head_b"),
    *("query", "query_token", "key", "key_token", "a", "b", "value"),
)


@rows.register
def _(result: Difference) -> Iterator[Row]:
    yield _COLUMNS
    none = ("",) * 6
    for i in result.ranking:
        yield "divergence", *result.pairs[i], *none, exact(result.divergences[i])
        yield "largest difference", *result.pairs[i], *none, exact(result.largest[i])
        yield "rounding", *result.pairs[i], *none, exact(result.rounding[i])
    for pair, own in zip(result.pairs, result.rows, strict=True):
        for query, value in enumerate(own.tolist()):
            at = place(result.a.query_tokens, query)
            yield "divergence of a row", *pair, *at, "", "", "", "", exact(value)
    for (query, key), value in np.ndenumerate(result.signed):
        at = *place(result.a.query_tokens, query), *place(result.a.key_tokens, key)
        both = exact(float(result.before[query, key])), exact(float(result.after[query, key]))
        yield "weight", *result.pairs[result.shown], *at, *both, exact(float(value))


@comments.register
def _(result: Difference) -> Iterator[tuple[str, object]]:
    yield "schema", "attnscope.difference/1"
    yield "subject", subject(result)
    yield "a", run_words(result.a, result.b)
    yield "b", run_words(result.b, result.a)
    if told := differing_words(result):
        yield "note", told
    yield "control", control_words(result)
    yield from (("certificate", told) for _, told in certified_words(result))
