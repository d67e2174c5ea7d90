"""Worked examples as JSON, CSV and npz: every array in full precision, every axis by name.

The keys of the arrays that were given are those that `attnscope sdpa` reads.
"""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import product

import numpy as np

from attnscope.render.file_csv import Row, comments, exact, rows
from attnscope.render.file_json import Value, certificate, document, number, numbers, provenance
from attnscope.render.file_npz import Arrays, arrays_of
from attnscope.render.kit.certificate import certificate_words
from attnscope.render.worked.terminal import check_words, source
from attnscope.results.worked import Check, ScaleStudy, Step, Worked

MEASURES = ("spread", "entropy", "gradient")


@document.register
def _(result: Worked, arrays: bool = True) -> dict[str, Value]:
    told = _worked(result)
    return told | {step.key: numbers(step.matrix.values) for step in result.steps} if arrays else told


@document.register
def _(result: ScaleStudy, arrays: bool = True) -> dict[str, Value]:
    return _study(result) | ({key: _by_scale(result, key) for key in MEASURES} if arrays else {})


def _worked(result: Worked) -> dict[str, Value]:
    return {
        "schema": "attnscope.worked/1",
        "name": result.name,
        "title": result.title,
        "formula": result.formula,
        "scoring": None if result.scoring is None else result.scoring.value,
        "causal": result.causal,
        "verdict": None if result.verdict is None else result.verdict.value,
        "notes": list(result.notes),
        "warnings": list(result.warnings),
        "certificates": [{"against": against} | certificate(one) for against, one in result.proofs],
        "checks": [_check(check) for check in result.checks],
        "pairs": [asdict(pair) for pair in result.pairs],
        "provenance": None if result.provenance is None else provenance(result.provenance),
        "steps": [_step(step) for step in result.steps],
    }


def _step(step: Step) -> dict[str, Value]:
    rows, columns = step.matrix.rows, step.matrix.columns
    return {
        "key": step.key,
        "symbol": step.matrix.symbol,
        "given": not step.formula,
        "formula": step.formula,
        "shape": list(step.matrix.values.shape),
        "axes": [rows.symbol or rows.word, columns.symbol or columns.word],
        "rows": list(rows.names),
        "columns": list(columns.names),
    }


def _study(result: ScaleStudy) -> dict[str, Value]:
    return {
        "schema": "attnscope.scale/1",
        "dims": list(result.dims),
        "keys": result.keys,
        "queries": result.queries,
        "seed": result.seed,
        "checks": [_check(check) for check in result.checks],
    }


def _by_scale(result: ScaleStudy, key: str) -> dict[str, Value]:
    unscaled, scaled = getattr(result, key)
    return {"unscaled": numbers(unscaled), "scaled": numbers(scaled)}


def _check(check: Check) -> dict[str, Value]:
    return {
        "what": check.what,
        "difference": number(check.difference),
        "tolerance": number(check.tolerance),
        "passed": check.passed,
    }


@comments.register
def _(result: Worked) -> Iterator[tuple[str, object]]:
    told = document(result, arrays=False)
    yield from ((key, told[key]) for key in ("schema", "name", "title", "formula", "scoring", "causal"))
    yield from (("step", f"{step.key} = {step.formula}") for step in result.steps if step.formula)
    for against, one in result.proofs:
        yield "certificate", f"{certificate_words(one)} · against {against}"
    yield from (("check", check_words(check)) for check in result.checks)
    yield from (("note", note) for note in result.notes + result.warnings)
    if result.provenance:
        yield "model", result.provenance.model
        yield "source", source(result.provenance)


@comments.register
def _(result: ScaleStudy) -> Iterator[tuple[str, object]]:
    told = document(result, arrays=False)
    yield from ((key, told[key]) for key in ("schema", "keys", "queries", "seed"))
    yield from (("check", check_words(check)) for check in result.checks)


@rows.register
def _(result: Worked) -> Iterator[Row]:
    yield "step", "row", "row_name", "column", "column_name", "value"
    for step in result.steps:
        names, columns = step.matrix.rows.names, step.matrix.columns.names
        for (row, column), value in np.ndenumerate(step.matrix.values):
            yield step.key, row, names[row], column, columns[column], exact(value)


@rows.register
def _(result: ScaleStudy) -> Iterator[Row]:
    measured = list(product(MEASURES, enumerate(("unscaled", "scaled"))))
    yield "d", *(f"{measure}_{scale}" for measure, (_, scale) in measured)
    for column, dim in enumerate(result.dims):
        yield dim, *(exact(getattr(result, measure)[row, column]) for measure, (row, _) in measured)


@arrays_of.register
def _(result: Worked) -> Arrays:
    return {step.key: step.matrix.values for step in result.steps}


@arrays_of.register
def _(result: ScaleStudy) -> Arrays:
    return {"dims": np.array(result.dims)} | {key: getattr(result, key) for key in MEASURES}
