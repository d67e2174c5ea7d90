"""Worked examples as JSON, CSV and npz: every array in full precision, every axis by name.

The keys of the arrays that were given are those that `attnscope sdpa` reads.
"""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product

import numpy as np
from jaxtyping import Shaped

from attnscope.render.certificate import certificate_words
from attnscope.render.file_json import Value, certificate, number, numbers, provenance
from attnscope.render.worked.terminal import check_words
from attnscope.results.worked import Check, ScaleStudy, Step, Worked
from attnscope.tokens import printable

MEASURES = ("spread", "entropy", "gradient")
Result = Worked | ScaleStudy


def document(result: Result, arrays: bool = True) -> dict[str, Value]:
    """The document as plain values; without `arrays` only what describes them."""
    if isinstance(result, ScaleStudy):
        return _study(result) | ({key: _by_scale(result, key) for key in MEASURES} if arrays else {})
    told = _worked(result)
    return told | {step.key: numbers(step.matrix.values) for step in result.steps} if arrays else told


def _worked(result: Worked) -> dict[str, Value]:
    return {
        "schema": "attnscope.worked/1",
        "name": result.name,
        "title": result.title,
        "formula": result.formula,
        "scoring": None if result.scoring is None else result.scoring.value,
        "causal": result.causal,
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


def as_csv(result: Result) -> str:
    """A row per number, under comment lines that say what it is and what proves it."""
    buffer = io.StringIO()
    buffer.writelines(f"# {key}: {printable(str(value))}\n" for key, value in _comments(result))
    csv.writer(buffer, lineterminator="\n").writerows(_rows(result))
    return buffer.getvalue()


def _comments(result: Result) -> Iterator[tuple[str, object]]:
    told = document(result, arrays=False)
    for key in ("schema", "name", "title", "formula", "scoring", "causal", "keys", "queries", "seed"):
        if key in told:
            yield key, told[key]
    yield from (("check", check_words(check)) for check in result.checks)
    if isinstance(result, Worked):
        yield from (("step", f"{step.key} = {step.formula}") for step in result.steps if step.formula)
        for against, one in result.proofs:
            yield "certificate", f"{certificate_words(one)} · against {against}"
        yield from (("note", note) for note in result.notes + result.warnings)
        yield from ((key, value) for key, value in (told["provenance"] or {}).items() if value is not None)


def _rows(result: Result) -> Iterator[tuple[object, ...]]:
    if isinstance(result, ScaleStudy):
        yield "d", *(f"{measure}_{scale}" for measure, scale in product(MEASURES, ("unscaled", "scaled")))
        for column, dim in enumerate(result.dims):
            values = (getattr(result, measure)[row, column] for measure, row in product(MEASURES, (0, 1)))
            yield dim, *(repr(float(value)) for value in values)
        return
    yield "step", "row", "row_name", "column", "column_name", "value"
    for step in result.steps:
        rows, columns = step.matrix.rows.names, step.matrix.columns.names
        for (row, column), value in np.ndenumerate(step.matrix.values):
            yield step.key, row, rows[row], column, columns[column], repr(float(value))


def as_npz(result: Result) -> bytes:
    """The arrays bit by bit by their keys, and everything else as one JSON text named `meta`."""
    meta = json.dumps(document(result, arrays=False), ensure_ascii=False, allow_nan=False)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, meta=np.array(meta), **_arrays(result))
    return buffer.getvalue()


def _arrays(result: Result) -> dict[str, Shaped[np.ndarray, "..."]]:
    if isinstance(result, ScaleStudy):
        return {"dims": np.array(result.dims)} | {key: getattr(result, key) for key in MEASURES}
    return {step.key: step.matrix.values for step in result.steps}
