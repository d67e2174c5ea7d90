"""A worked example: what is given, every step with its shape and a cell spelled out, and what proves it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import counted, descending, number, weight
from attnscope.render.kit.words.certificate import certificate_line
from attnscope.render.sheet.blocks import Beside, Drawing
from attnscope.render.sheet.said import checked
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Table
from attnscope.render.sheets.arithmetic import texts
from attnscope.results import Verdict
from attnscope.results.worked import Mistake, Step, Worked

_ONE, _ALIKE, _NEAR = 0.9, 0.05, 0.1  # weights: almost one key, keys alike, two that are near
_LISTED = 3  # keys of the answer
_OWN = "attnscope sdpa --q '1,0,1' --k '1,0,1; 0,1,0; 1,1,0' --v '1,2; 3,4; 5,6'"
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
        next=Next("your own numbers?", _OWN) if result.name == "fruit" else None,
    )


def _answer(result: Worked) -> str:
    if result.verdict is Verdict.FAILED:
        return "✗ Do not use these numbers: another way to them gives others."
    weights = next((each for each in result.steps if each.weights and not each.wrong), None)
    if weights is None:
        return ""
    values = _allowed(weights)
    choices = (values >= 0).sum(axis=1)
    if not choices.any():
        return ""
    row = int((choices > 1).argmax()) if (choices > 1).any() else int((choices > 0).argmax())
    told = _mistaken(result, weights, row)
    if not told:
        told = f"{_attends(result, weights, values[row], row)}."
        told += "" if result.mistake is None else f" Below it is wrong on purpose: {result.mistake.what}."
    opened = f"Example {result.name}: " if result.name else ""
    others = counted(len(values) - 1, "more query").replace("more querys", "more queries")
    return f"{opened}{told}" + (f" {others} below." if len(values) > 1 else "")


def _allowed(step: Step) -> Float[np.ndarray, "query key"]:
    """The weights of a step, -1 where a query may not look."""
    values = step.matrix.values
    allowed = np.isfinite(values) if step.allowed is None else step.allowed
    return np.where(allowed, values, -1.0)


def _attends(result: Worked, weights: Step, values: Float[np.ndarray, " key"], row: int) -> str:
    query, names = weights.matrix.rows.names[row], weights.matrix.columns.names
    order = [key for key in descending(values) if values[key] >= 0]
    best, last = order[0], order[-1]
    if len(order) == 1:
        return f"{query} may attend to {names[best]} alone"
    if values[best] >= _ONE:
        return f"{query} attends almost only to {names[best]} ({weight(float(values[best]))})"
    if values[best] - values[last] <= _ALIKE:
        return f"{query} attends to all {len(order)} keys alike (about {weight(1 / len(order))} each)"
    listed = [f"{names[key]} {weight(float(values[key]))}" for key in order[:_LISTED]]
    rest = f", and to {len(order) - _LISTED} more less" if len(order) > _LISTED else ""
    told = f"{query} attends to {', '.join(listed[:-1])} and {listed[-1]}{rest}"
    found = {each.key: each for each in result.steps if not each.wrong}
    if (scores := found.get("scaled") or found.get("scores")) is None:
        return told
    score = texts(scores.matrix.values[row : row + 1, best], 2)[0]
    after = " after scaling" if scores.key == "scaled" else ""
    near = ", but not by much" if values[best] - values[order[1]] < _NEAR else ""
    return f"{told}: its score with {names[best]} is the highest ({score}{after}){near}"


def _mistaken(result: Worked, right: Step, row: int) -> str:
    wrong = next((each for each in result.steps if each.wrong and each.weights), None)
    if result.mistake is None or wrong is None or wrong.matrix.values.shape != right.matrix.values.shape:
        return ""
    query, what = right.matrix.rows.names[row], result.mistake.what
    made, meant = (_allowed(each)[row].clip(0) for each in (wrong, right))
    if not np.isclose(made.sum(), 1.0, atol=0.005):
        total = number(float(made.sum()))
        return f"Wrong on purpose ({what}): the weights of {query} would add up to {total}, not 1."
    key = int(np.abs(made - meant).argmax())
    if abs(made[key] - meant[key]) < 0.005:
        return ""
    name, pair = right.matrix.columns.names[key], [weight(float(each[key])) for each in (made, meant)]
    return f"Wrong on purpose ({what}): {query} would give {name} {pair[0]}, not {pair[1]}."


def _sizes(result: Worked) -> str:
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
    return [
        (one.verdict, f"{certificate_line(one, focus.verbose).plain} · against {against}")
        for against, one in result.proofs
    ]


def _notes(result: Worked, focus: Focus) -> Iterator[str]:
    for pair in result.pairs:
        place = f"rank {pair.rank} of {pair.pairs} weights"
        yield f"{pair.query} → {pair.key}  {pair.weight:.{focus.decimals}f}, {place}"
    yield from () if result.mistake is None else _mistake(result.mistake)
    yield from (told for verdict, told in _certificates(result, focus) if verdict not in _SETTLED)
    yield from result.notes


def _mistake(mistake: Mistake) -> Iterator[str]:
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
    for step in result.steps:
        rows, columns = step.matrix.rows.names, step.matrix.columns.names
        for (row, column), value in np.ndenumerate(step.matrix.values):
            yield step.key, row, rows[row], column, columns[column], exact(value)
