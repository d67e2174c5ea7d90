"""A worked example: what is given, every step with its shape and a cell spelled out, and what proves it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import counted, weight
from attnscope.render.kit.words.certificate import certificate_line
from attnscope.render.sheet.blocks import Beside, Drawing
from attnscope.render.sheet.said import checked
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Table
from attnscope.results import Verdict
from attnscope.results.worked import Mistake, Step, Worked

_SETTLED = (Verdict.CERTIFIED, Verdict.RECOMPUTED, Verdict.STORED, Verdict.FAILED)


@dataclass(frozen=True, eq=False)
class Steps(Drawing):
    """The steps of an example, one after the other; a number has at most so many `decimals`."""

    title: str
    steps: tuple[Step, ...]
    decimals: int
    says: str = ""


def sheet(result: Worked, focus: Focus = WHOLE) -> Sheet:
    right = Steps("", tuple(each for each in result.steps if not each.wrong), focus.decimals)
    blocks = [right]
    if result.mistake is not None:
        wrong = tuple(each for each in result.steps if each.wrong)
        blocks.append(Steps(f"wrong on purpose: {result.mistake.what}", wrong, focus.decimals))
    example = f"example {result.name}" if result.name else ""
    setting = " · ".join(each for each in (example, result.formula, _sizes(result)) if each)
    return Sheet(
        title=result.title,
        setting=setting,
        origins=() if result.provenance is None else (result.provenance,),
        answer=_answer(result),
        blocks=tuple(Beside((each,)) for each in blocks),
        table=lambda: Table.of("step row row_name column column_name value", _facts(result)),
        about_proof=True,
        notes=tuple(_notes(result, focus)),
        proof=(
            *((verdict, told) for verdict, told in _certificates(result, focus) if verdict in _SETTLED),
            *map(checked, result.checks),
        ),
        summary=(counted(len(result.steps), "step"),),
        record=tuple(_record(result)),
    )


def _answer(result: Worked) -> str:
    """Which query gives most of its weight to which key, of the queries that may look at several."""
    weights = next((each for each in result.steps if each.weights and not each.wrong), None)
    if weights is None:
        return ""
    matrix = weights.matrix
    allowed = np.isfinite(matrix.values) if weights.allowed is None else weights.allowed
    values = np.where(allowed & (allowed.sum(axis=1, keepdims=True) > 1), matrix.values, -1.0)
    row, column = (int(each) for each in np.unravel_index(values.argmax(), values.shape))
    if (largest := float(values[row, column])) < 0:
        return ""
    query, key = matrix.rows.names[row], matrix.columns.names[column]
    return f"The largest weight is {weight(largest, 3)}: {query} looks at {key}."


def _sizes(result: Worked) -> str:
    """`1 query, 3 keys, d_k = 3, d_v = 2`, or the way of the shapes where X is projected."""
    found = {step.key: step.matrix for step in result.steps}
    if "x" in found:
        way = [found[key] for key in ("x", "q", "weights", "output", "y") if key in found]
        symbols = (f"{each.rows.symbol} x {each.columns.symbol}" for each in way)
        numbers = (f"{len(each.rows.names)} x {len(each.columns.names)}" for each in way)
        return f"{' → '.join(symbols)} = {' → '.join(numbers)}"
    given = [found[key] for key in (*"qkv", "scores") if key in found]
    if not given:
        return counted(len(result.steps[0].matrix.rows.names), "key")
    every = [axis for matrix in given for axis in (matrix.rows, matrix.columns)]
    every.sort(key=lambda axis: bool(axis.symbol))  # queries and keys first
    axes = {axis.symbol or axis.word: axis for axis in every}
    return ", ".join(
        f"{name} = {len(axis.names)}" if axis.symbol else counted(len(axis.names), name)
        for name, axis in axes.items()
    )


def _certificates(result: Worked, focus: Focus) -> list[tuple[Verdict, str]]:
    """What the numbers were held against, and with what verdict."""
    return [
        (one.verdict, f"{certificate_line(one, focus.verbose).plain} · against {against}")
        for against, one in result.proofs
    ]


def _notes(result: Worked, focus: Focus) -> Iterator[str]:
    """Single weights, what a mistake does, agreement that proves nothing, and what belongs to the example."""
    for pair in result.pairs:
        place = f"rank {pair.rank} of {pair.pairs} weights"
        yield f"{pair.query} → {pair.key}  {pair.weight:.{focus.decimals}f}, {place}"
    yield from () if result.mistake is None else _mistake(result.mistake)
    yield from (told for verdict, told in _certificates(result, focus) if verdict not in _SETTLED)
    yield from result.notes


def _mistake(mistake: Mistake) -> Iterator[str]:
    """What differs, and why it is a mistake."""
    yield from (f"differs: {told}" for told in mistake.differs)
    yield f"why: {mistake.why}"


def _record(result: Worked) -> Iterator[tuple[str, object]]:
    scoring = "" if result.scoring is None else result.scoring.value
    yield from (("name", result.name), ("title", result.title), ("formula", result.formula))
    yield from (("scoring", scoring), ("causal", result.causal))
    yield from (("step", f"{step.key} = {step.formula}") for step in result.steps if step.formula)
    if result.mistake is not None:
        yield "mistake", result.mistake.what
    yield from (("warning", told) for told in result.warnings)


def _facts(result: Worked) -> Iterator[tuple[object, ...]]:
    """A row per number of every step."""
    for step in result.steps:
        rows, columns = step.matrix.rows.names, step.matrix.columns.names
        for (row, column), value in np.ndenumerate(step.matrix.values):
            yield step.key, row, rows[row], column, columns[column], exact(value)
