"""Worked examples as CSV: a row per number of every step."""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.kit.words.certificate import certificate_words
from attnscope.render.worked.terminal import check_words, mistake_words, source
from attnscope.results.stored.document import document
from attnscope.results.worked import Worked


@comments.register
def _(result: Worked) -> Iterator[tuple[str, object]]:
    told = document(result)
    yield from ((key, told[key]) for key in ("schema", "name", "title", "formula", "scoring", "causal"))
    yield from (("step", f"{step.key} = {step.formula}") for step in result.steps if step.formula)
    for against, one in result.proofs:
        yield "certificate", f"{certificate_words(one)} · against {against}"
    yield from (("check", check_words(check)) for check in result.checks)
    if result.mistake is not None:
        yield "mistake", result.mistake.what
        yield from (("mistake", told) for told in mistake_words(result.mistake))
    yield from (("note", note) for note in result.notes + result.warnings)
    if result.provenance:
        yield "model", result.provenance.model
        yield "source", source(result.provenance)


@rows.register
def _(result: Worked) -> Iterator[Row]:
    yield "step", "row", "row_name", "column", "column_name", "value"
    for step in result.steps:
        names, columns = step.matrix.rows.names, step.matrix.columns.names
        for (row, column), value in np.ndenumerate(step.matrix.values):
            yield step.key, row, names[row], column, columns[column], exact(value)
