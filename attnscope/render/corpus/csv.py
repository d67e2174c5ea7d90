"""A corpus as CSV: a row for each measure and head, with its error, its quantiles and its two halves."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.corpus.words import certified_words, left_out, read_words, setting, subject
from attnscope.render.kit.csv import Row, comments, exact, provenance_comments, rows
from attnscope.results import Corpus
from attnscope.results.claims.corpus import LEVELS
from attnscope.results.stored.document import document

_LEVELS = tuple(f"q{round(100 * level):02d}" for level in LEVELS)
_COLUMNS = (
    "measure", "layer", "head", "mean", "class_name", "error", "texts", "least", *_LEVELS, "largest",
    "even_texts", "odd_texts", "agreement",
)  # fmt: skip


@rows.register
def _(result: Corpus) -> Iterator[Row]:
    yield _COLUMNS
    for name, each in result.measures.items():
        for i, j in np.ndindex(each.values.shape):
            agreement = "" if each.agreement is None else exact(float(each.agreement[i, j]))
            yield (
                name,
                result.layers[i],
                result.heads[j],
                exact(float(each.values[i, j])),
                each.scores.class_of(i, j) or "",
                exact(float(each.error[i, j])),
                int(each.count[i, j]),
                exact(float(each.least[i, j])),
                *(exact(float(value)) for value in each.quantiles[:, i, j]),
                exact(float(each.largest[i, j])),
                *(exact(float(value)) for value in each.halves[:, i, j]),
                agreement,
            )


@comments.register
def _(result: Corpus) -> Iterator[tuple[str, object]]:
    record = document(result)
    yield "schema", record["schema"]
    yield "subject", subject(result)
    yield "model", setting(result)
    yield "read", read_words(result.read)
    for name, digest in zip(result.read.files, result.read.digests, strict=True):
        yield "file", f"{name} {digest}"
    if told := left_out(result.read):
        yield "note", told
    yield from (("note", note) for note in result.notes)
    yield from (("certificate", told) for _, told in certified_words(result))
    yield from provenance_comments(record)
