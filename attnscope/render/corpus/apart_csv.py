"""Two corpora as CSV: a row for each measure and head."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.corpus.apart_words import read_words, setting, subject
from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.results import CorpusDifference

_COLUMNS = ("measure", "layer", "head", "first", "second", "difference", "error", "errors")


@rows.register
def _(result: CorpusDifference) -> Iterator[Row]:
    yield _COLUMNS
    for name, each in result.measures.items():
        for i, j in np.ndindex(each.difference.shape):
            values = (each.first, each.second, each.difference, each.error, each.reached)
            yield name, result.layers[i], result.heads[j], *(exact(float(value[i, j])) for value in values)


@comments.register
def _(result: CorpusDifference) -> Iterator[tuple[str, object]]:
    yield "schema", "attnscope.corpora/1"
    yield "subject", subject(result)
    yield "model", setting(result)
    yield "read", read_words(result)
    for side, read, verdict in zip("AB", result.reads, result.verdict_of_each, strict=True):
        yield "verdict", f"{side} {verdict.value}"
        for name, digest in zip(read.files, read.digests, strict=True):
            yield "file", f"{side} {name} {digest}"
    yield from (("note", note) for note in result.notes)
