"""Worked examples: every array in full precision, every axis by name.

The keys of the arrays that were given are those that `attnscope sdpa` reads.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.origin import Certificate, Provenance
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import certificate, provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.worked import (
    Axis,
    Cell,
    Check,
    Matrix,
    Mistake,
    Pair,
    ScaleStudy,
    Scoring,
    Step,
    Worked,
)

MEASURES = ("spread", "entropy", "gradient")
_VALUES = Float[np.ndarray, "row column"]
_ALLOWED = Bool[np.ndarray, "row column"]
_BY_SCALE = Float[np.ndarray, "2 size"]
_OF_ADDITIVE = Float[np.ndarray, "3 size"]
_WORDS = ("query", "key", "dimension", "")


@document.register
def _(result: Worked, arrays: bool = True) -> dict[str, Value]:
    told = _worked(result)
    return told | {step.key: step.matrix.values for step in result.steps} if arrays else told


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
        "mistake": None if result.mistake is None else asdict(result.mistake),
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
        "words": [rows.word, columns.word],
        "symbols": [rows.symbol, columns.symbol],
        "meaning": step.meaning,
        "weights": step.weights,
        "allowed": step.allowed,
        "cell": None if step.cell is None else asdict(step.cell),
    }


def _study(result: ScaleStudy) -> dict[str, Value]:
    return {
        "schema": "attnscope.scale/1",
        "dims": list(result.dims),
        "keys": result.keys,
        "queries": result.queries,
        "seed": result.seed,
        "checks": [_check(check) for check in result.checks],
        "warnings": list(result.warnings),
    }


def _by_scale(result: ScaleStudy, key: str) -> dict[str, Value]:
    unscaled, scaled = getattr(result, key)
    told = {"unscaled": unscaled, "scaled": scaled}
    return told if result.additive is None else told | {"additive": result.additive[MEASURES.index(key)]}


def _check(check: Check) -> dict[str, Value]:
    return {
        "what": check.what,
        "difference": check.difference,
        "tolerance": check.tolerance,
        "passed": check.passed,
    }


@arrays_of.register
def _(result: Worked) -> Arrays:
    return {step.key: step.matrix.values for step in result.steps}


@arrays_of.register
def _(result: ScaleStudy) -> Arrays:
    found = {"dims": np.array(result.dims)} | {key: getattr(result, key) for key in MEASURES}
    return found if result.additive is None else found | {"additive": result.additive}


@reads("attnscope.worked/1")
def read(record: Record) -> Worked:
    certificates = record.parts("certificates")
    proofs = zip((each.get("against", str) for each in certificates), _proofs(record), strict=True)
    return made(
        Worked,
        record,
        steps=tuple(_read_step(each, record) for each in record.parts("steps")),
        scoring=record.get("scoring", Scoring | None),
        proofs=tuple(proofs),
        checks=record.get("checks", tuple[Check, ...]),
        pairs=record.get("pairs", tuple[Pair, ...]),
        provenance=record.get("provenance", Provenance | None),
        mistake=record.get("mistake", Mistake | None, None),
    )


def _proofs(record: Record) -> tuple[Certificate, ...]:
    proofs: tuple[Certificate, ...] = record.get("certificates", tuple[Certificate, ...])
    return proofs


def _read_step(step: Record, record: Record) -> Step:
    key = step.get("key", str)
    rows, columns = (_axis(step, i, name) for i, name in enumerate(("rows", "columns")))
    record.sizes.update(row=len(rows.names), column=len(columns.names))
    step.sizes.update(record.sizes)
    values = record.array(key, _VALUES)
    described = Record(step.told, sizes=step.sizes)
    return Step(
        key=key,
        matrix=Matrix(step.get("symbol", str), values, rows, columns),
        formula=step.get("formula", str),
        meaning=step.get("meaning", str, before=""),
        weights=step.get("weights", bool, before=key == "weights"),
        allowed=described.array("allowed", _ALLOWED) if described.has("allowed") else None,
        cell=_cell(step, values.shape),
    )


def _axis(step: Record, i: int, name: str) -> Axis:
    """An axis with its names; an old file has either its symbol or what it counts."""
    names = step.get(name, tuple[str, ...])
    if not step.old:
        words, symbols = (step.get(each, tuple[str, str]) for each in ("words", "symbols"))
        return Axis(words[i], names, symbols[i])
    axis = step.get("axes", tuple[str, str])[i]
    if axis == "T":
        of_keys = i == 1 or step.get("key", str) in ("k", "v")
        return Axis("token" if step.get("key", str) == "x" else "key" if of_keys else "query", names, axis)
    return Axis(axis, names) if axis in _WORDS else Axis("dimension", names, axis)


def _cell(step: Record, shape: tuple[int, ...]) -> Cell | None:
    cell: Cell | None = step.get("cell", Cell | None, before=None)
    if cell is not None and not (0 <= cell.row < shape[0] and 0 <= cell.column < shape[1]):
        raise Damaged("'cell' lies outside of its step")
    return cell


@reads("attnscope.scale/1")
def read_study(record: Record) -> ScaleStudy:
    dims = record.get("dims", tuple[int, ...])
    record.sizes["size"] = len(dims)
    values: dict[str, Any] = {key: _read_by_scale(record, key) for key in MEASURES}
    values["additive"] = _read_additive(record)
    return made(ScaleStudy, record, dims=dims, checks=record.get("checks", tuple[Check, ...]), **values)


def _read_additive(record: Record) -> Float[np.ndarray, "3 size"] | None:
    """The measures of additive scores; None in a file of before these were studied."""
    if record.arrays is not None:
        return np.asarray(record.array("additive", _OF_ADDITIVE)) if record.has("additive") else None
    parts = [Record(record.part(key).told, sizes=record.sizes) for key in MEASURES]
    if not all(part.has("additive") for part in parts):
        return None
    return np.array([part.array("additive", Float[np.ndarray, " size"]) for part in parts])


def _read_by_scale(record: Record, key: str) -> Float[np.ndarray, "2 size"]:
    if record.arrays is not None:
        return np.asarray(record.array(key, _BY_SCALE))
    own = Record(record.part(key).told, sizes=record.sizes)
    hint = Float[np.ndarray, " size"]
    return np.array([own.array("unscaled", hint), own.array("scaled", hint)])
