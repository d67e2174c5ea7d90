"""One word in many texts as CSV: one fact a row, texts by their number from 1."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.senses.words import certified_words, remarks, setting, subject, usage_words
from attnscope.results import Senses


@rows.register
def _(result: Senses) -> Iterator[Row]:
    yield "fact", "layer", "head", "text_a", "text_b", "value"
    first, second = np.triu_indices(len(result.usages), 1)
    for i, layer in enumerate(result.layers):
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            yield "cosine", layer, "together", a + 1, b + 1, exact(result.cosines[i, a, b])
        if (found := result.separation) is None:
            continue
        for name in ("within", "between", "chance", "percentile", "best_chance", "best_percentile"):
            yield name, layer, "together", "", "", exact(getattr(found, name)[i])
        for j, head in enumerate(result.heads):
            yield "within", layer, head, "", "", exact(found.heads_within[i, j])
            yield "between", layer, head, "", "", exact(found.heads_between[i, j])


@comments.register
def _(result: Senses) -> Iterator[tuple[str, object]]:
    yield "schema", "attnscope.senses/1"
    yield "subject", subject(result)
    yield "model", setting(result)
    yield from (("text", usage_words(usage, i)) for i, usage in enumerate(result.usages, start=1))
    yield from (("note", told) for told in remarks(result))
    yield from (("certificate", told) for _, told in certified_words(result))
