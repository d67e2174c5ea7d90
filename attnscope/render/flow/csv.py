"""What reaches a token from the input, as CSV: one fact a row, layers by number where they have one."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.flow.words import effect_words, method_words, subject, trust_words, zeroing_words
from attnscope.render.kit.csv import Row, comments, exact, provenance_comments, rows
from attnscope.results import Flow
from attnscope.results.stored.document import document


@rows.register
def _(result: Flow) -> Iterator[Row]:
    yield "fact", "layer", "position", "token", "value"
    by_layer = {
        "attention": result.raw,
        "rollout": result.rollout,
        "by norm": result.by_norm,
        "zeroing": result.zeroed,
    }
    for name, values in by_layer.items():
        for layer, row in zip(result.layers, () if values is None else values, strict=values is not None):
            for key, value in enumerate(row):
                yield name, layer, key, result.tokens.labels[key], exact(value)
    for key, value in enumerate(() if result.flow is None else result.flow):
        yield "flow", result.layers[-1], key, result.tokens.labels[key], exact(value)
    if result.ablated is None:
        return
    for key, value in enumerate(result.ablated.effects):
        if not np.isnan(value):
            yield "effect", "", key, result.tokens.labels[key], exact(value)
    for each in result.ablated.trust:
        for name in ("correlation", "low", "high", "beats"):
            yield f"{name} of {each.method}", "", "", "", exact(getattr(each, name))


@comments.register
def _(result: Flow) -> Iterator[tuple[str, object]]:
    record = document(result)
    yield from ((key, record[key]) for key in ("schema", "kind", "tower", "verdict"))
    yield "subject", subject(result)
    words = method_words(result), zeroing_words(result), effect_words(result), trust_words(result)
    yield from (("note", told) for told in words if told)
    yield from (("note", told) for told in result.notes)
    yield from provenance_comments(record)
    yield from (("text", each) for each in record["texts"])
