"""Composition of heads as CSV: a line for every pair and input."""

from collections.abc import Iterator

from attnscope.render.composition.words import (
    certified_words,
    draws_words,
    inside_words,
    outside_words,
    reasons_words,
    setting,
    subject,
)
from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.results import Composition

_COLUMNS = (
    "through", "early_layer", "early_head", "late_layer", "late_head", "score", "chance", "spread",
    "percentile", "difference",
)  # fmt: skip


@rows.register
def _(result: Composition) -> Iterator[Row]:
    yield _COLUMNS
    numbers = result.scores, result.chance, result.spread, result.percentile, result.scores - result.chance
    for t, through in enumerate(result.through):
        for i, pair in enumerate(result.pairs.tolist()):
            yield through.value, *pair, *(exact(each[t, i]) for each in numbers)


@comments.register
def _(result: Composition) -> Iterator[tuple[str, object]]:
    yield "schema", "attnscope.composition/1"
    yield "subject", subject(result)
    yield "model", setting(result)
    yield "in the scores", inside_words(result)
    yield "not in them", outside_words(result)
    yield "control", draws_words(result)
    yield from (("note", told) for told in reasons_words(result))
    yield from (("certificate", told) for _, told in certified_words(result))
