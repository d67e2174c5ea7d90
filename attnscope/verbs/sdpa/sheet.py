"""Sheet of a worked example: inputs, every step with its shape and one cell spelled out, and the proof.

Numbers have as many decimals as they need, up to the wanted number, and keep the zero before the point, as in
`0.8·0.9`.
"""

from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.numbers import counted, descending, exact, weight
from attnscope.render.kit.words import certificate_line
from attnscope.render.sheet.blocks import Beside
from attnscope.render.sheet.said import checked
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.steps import Steps, texts
from attnscope.render.sheet.table import Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Verdict
from attnscope.verbs.sdpa.result import Case, Worked
from attnscope.vocabulary import Scoring

_SETTLED = (Verdict.CERTIFIED, Verdict.RECOMPUTED, Verdict.STORED, Verdict.FAILED)
_OWN = "attnscope sdpa --q '1,0,1' --k '1,0,1; 0,1,0; 1,1,0' --v '1,2; 3,4; 5,6'"


def sheet(result: Worked, focus: Focus = WHOLE) -> Sheet:
    say, mistake = said(result), result.mistake
    parts = {"": [each for each in result.steps if not each.wrong]}
    notes = [say("ranked", pair, f"{pair.weight:.{focus.decimals}f}") for pair in result.pairs]
    if mistake is not None:
        parts[say("wrong_steps")] = [each for each in result.steps if each.wrong]
        notes += [*(say("differs", how) for how in mistake.differs), say("why", mistake.why)]
    proved = [
        (one.verdict, say("against", certificate_line(one, focus.verbose).plain, other))
        for other, one in result.proofs
    ]
    return Sheet(
        title=result.title,
        setting=" · ".join(filter(None, (say("example"), result.formula, _sizes(result)))),
        origins=() if result.provenance is None else (result.provenance,),
        answer=say(result.case),
        blocks=tuple(Beside((Steps(title, tuple(steps), focus.decimals),)) for title, steps in parts.items()),
        table=lambda: Table.of("step row row_name column column_name value", _cells(result)),
        notes=(*notes, *(words for verdict, words in proved if verdict not in _SETTLED), *result.notes),
        proof=(*(each for each in proved if each[0] in _SETTLED), *map(checked, result.checks)),
        failed=say("failed"),
        summary=(counted(len(result.steps), "step"),),
        record=(
            *((name, getattr(result, name)) for name in ("name", "title", "formula")),
            ("scoring", "" if result.scoring is None else result.scoring.value),
            ("causal", result.causal),
            *(("step", f"{step.key} = {step.formula}") for step in result.steps if step.formula),
            *([] if mistake is None else [("mistake", mistake.what)]),
            *(("warning", told) for told in result.warnings),
        ),
        next=_next(result, say),
    )


def said(result: Worked) -> Said:
    """Sentences of `sdpa` about this result, and the facts they use."""
    names = "query key keys own wrong shares numbers other other_own found missing"
    facts: dict[str, object] = {**dict.fromkeys(names.split()), "more": 0}
    facts |= {"mistake": result.mistake and result.mistake.what, "unscaled": result.scoring is Scoring.DOT}
    match result.case:
        case Case.LOOKED_UP | Case.NO_ANSWER:
            facts |= _looked_up(result)
        case Case.OTHER_SUM | Case.OTHER_WEIGHT:
            facts |= _mistaken(result)
        case Case.PAIRS:
            facts |= _paired(result)
        case Case.OUTPUT | Case.WEIGHTS:
            facts |= _of_one_query(result)
    return Said("worked", result, facts)


def _looked_up(result: Worked) -> dict[str, object]:
    answers = result.step("found").matrix
    found = dict(zip(answers.rows.names, answers.values[:, 0].tolist(), strict=True))
    return {
        "keys": len(result.step("values").matrix.rows.names),
        "found": [f"“{word}” ({value:g})" for word, value in found.items() if np.isfinite(value)],
        "missing": [f"“{word}”" for word, value in found.items() if np.isnan(value)],
    }


def _mistaken(result: Worked) -> dict[str, object]:
    """Facts about the query whose sum of weights differs most, or about the weight that differs most."""
    apart, right = np.abs(result.differences), result.step("weights")
    sums = result.case is Case.OTHER_SUM
    query = int((np.abs(result.differences.sum(axis=1)) if sums else apart.max(axis=1)).argmax())
    keys = right.seen[query] if sums else [int(apart[query].argmax())]
    own = float(right.matrix.values[query, keys].sum())
    return {
        "query": right.matrix.rows.names[query],
        "key": None if sums else right.matrix.columns.names[keys[0]],
        "own": own,
        "wrong": own + float(result.differences[query, keys].sum()),
    }


def _paired(result: Worked) -> dict[str, object]:
    """Facts about the pair with the largest weight, and another key of its query."""
    best = max(result.pairs, key=lambda pair: pair.weight)
    other = next((each for each in result.pairs if each.query == best.query and each is not best), None)
    weights = result.step("weights")
    return {
        "query": best.query,
        "key": best.key,
        "keys": int(weights.seen[weights.matrix.rows.names.index(best.query)].sum()),
        "own": best.weight,
        "other": other and other.key,
        "other_own": other and other.weight,
    }


def _of_one_query(result: Worked) -> dict[str, object]:
    """Facts about the first query with two visible keys or more, or else with one."""
    step = result.step("weights")
    choices = step.seen.sum(axis=1)
    query = int((choices >= min(2, choices.max())).argmax())
    values, names = step.matrix.values[query], step.matrix.columns.names
    order = [key for key in descending(np.where(step.seen[query], values, -1.0)) if step.seen[query, key]]
    facts: dict[str, object] = {
        "query": step.matrix.rows.names[query],
        "key": names[order[0]],
        "keys": len(order),
        "shares": [f"{names[key]} ({weight(float(values[key]))})" for key in order],
        "more": len(step.matrix.values) - 1,
    }
    if result.case is Case.OUTPUT:
        output = result.step("output").matrix
        called = ["" if name == str(i) else f"{name} " for i, name in enumerate(output.columns.names)]
        numbers = [f"{name}{each}" for name, each in zip(called, texts(output.values[query], 2), strict=True)]
        facts["numbers"] = f"({', '.join(numbers)})" if len(numbers) > 1 else numbers[0]
    return facts


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


def _next(result: Worked, say: Said) -> Next | None:
    if result.case is Case.NO_ANSWER:
        return Next(say("by_vectors"), "attnscope sdpa --example fruit")
    return Next(say("own_numbers"), _OWN) if result.name == "fruit" else None


def _cells(result: Worked) -> Iterator[tuple[object, ...]]:
    for step in result.steps:
        rows, columns = step.matrix.rows.names, step.matrix.columns.names
        for (row, column), value in np.ndenumerate(step.matrix.values):
            yield step.key, row, rows[row], column, columns[column], exact(value)
