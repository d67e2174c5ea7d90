"""Relations of a treebank as CSV: a summary of each, then every offset and every head in both directions."""

from collections.abc import Iterator

from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.relations.words import (
    certified_words,
    left_out,
    read_words,
    setting,
    subject,
)
from attnscope.results import Dependencies
from attnscope.results.claims.relations import Direction, Relation

_COLUMNS = ("fact", "relation", "count", "layer", "head", "direction", "offset", "accuracy", "low", "high")


@rows.register
def _(result: Dependencies) -> Iterator[Row]:
    yield _COLUMNS
    for relation in (*result.relations, result.overall):
        yield from _summary(relation)
    for r, relation in enumerate(result.relations):
        for o, offset in enumerate(result.tried_offsets):
            value = exact(result.offsets[o, r])
            yield "offset", relation.name, relation.count, "", "", "", offset, value, "", ""
        for i, layer in enumerate(result.layers):
            for j, head in enumerate(result.heads):
                for k, direction in enumerate(Direction):
                    own = layer, head, direction.value, "", exact(result.accuracies[i, j, k, r])
                    yield "head", relation.name, relation.count, *own, "", ""


def _summary(relation: Relation) -> Iterator[Row]:
    name, count, best, fixed = relation.name, relation.count, relation.best, relation.baseline
    interval = exact(best.accuracy), exact(best.low), exact(best.high)
    yield "best head", name, count, best.layer, best.head, best.direction.value, "", *interval
    interval = exact(fixed.accuracy), exact(fixed.low), exact(fixed.high)
    yield "best offset", name, count, "", "", "", fixed.offset, *interval
    if (held := relation.held_out) is not None:
        yield "head held out", name, count, "", "", "", "", exact(held.accuracy), "", ""
        interval = exact(held.difference), exact(held.low), exact(held.high)
        yield "gain held out", name, count, "", "", "", "", *interval


@comments.register
def _(result: Dependencies) -> Iterator[tuple[str, object]]:
    yield "schema", "attnscope.dependencies/1"
    yield "subject", subject(result)
    yield "model", setting(result)
    yield "read", read_words(result)
    if told := left_out(result):
        yield "note", told
    yield from (("certificate", told) for _, told in certified_words(result))
