"""Why scores are divided by √d: spread, entropy and gradient over the size of vectors, with and without."""

import math
from collections.abc import Iterator
from functools import partial

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import number
from attnscope.render.sheet.blocks import Beside, Curve
from attnscope.render.sheet.said import checked
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Line, Table, Tint
from attnscope.results.worked import MEASURES, ScaleStudy

_MEASURED = {
    "spread": ("spread of scores", "standard deviation"),
    "entropy": ("entropy of the softmax", "nats"),
    "gradient": ("size of the softmax's gradient", "Frobenius norm"),
}
_WAYS = ("unscaled", "scaled")
_TINTS: tuple[Tint, ...] = ("loses", "own", "kin")  # without the scale, with it, additive


def sheet(result: ScaleStudy, focus: Focus = WHOLE) -> Sheet:
    return Sheet(
        title="why scores are divided by √d",
        setting="example why-scale",
        origins=(),
        answer=_answer(result),
        blocks=(Beside(tuple(_curve(result, measure) for measure in MEASURES)),),
        table=lambda: _table(result),
        notes=tuple(_notes(result)),
        proof=tuple(map(checked, result.checks)),
        summary=("dimensions " + ", ".join(map(str, result.dims)),),
        record=(("keys", result.keys), ("queries", result.queries), ("seed", result.seed)),
    )


def _answer(result: ScaleStudy) -> str:
    first, last = result.dims[0], result.dims[-1]
    (raw, scaled), (steep, kept) = result.spread, result.gradient
    return (
        f"From d = {first} to d = {last} the spread of q·k grows from {number(raw[0])} to {number(raw[-1])} "
        f"(√{last} = {number(math.sqrt(last), 1)}), divided by √d it is {number(scaled[-1])}; the softmax "
        f"keeps a gradient of {number(kept[-1], 3)} in place of {number(steep[-1], 3)}."
    )


def _curve(result: ScaleStudy, measure: str) -> Curve:
    raw, scaled = getattr(result, measure).tolist()
    ways = {"q·k": raw, "q·k/√d": scaled}
    if result.additive is not None:
        ways["additive"] = result.additive[MEASURES.index(measure)].tolist()
    title, unit = _MEASURED[measure]
    spread = measure == "spread"
    lines = [
        Line("line", tint, name, values) for tint, (name, values) in zip(_TINTS, ways.items(), strict=False)
    ]
    if measure == "entropy":
        most = math.log(result.keys)
        lines.append(Line("dashed", "faint", f"ln {result.keys}: all keys alike", [most] * len(raw)))
    return Curve(
        title=title,
        of="d",
        names=tuple(map(str, result.dims)),
        table=Table(
            *(Column(name, values, name, partial(number, decimals=3)) for name, values in ways.items())
        ),
        places=tuple(range(len(raw))),
        named=True,
        measured=unit,
        lines=tuple(lines),
        axis=None if spread else (0.0, 1.08 * max(end for line in lines for end in line.ends())),
        log=spread,
    )


def _notes(result: ScaleStudy) -> Iterator[str]:
    yield (
        f"{result.queries} queries with {result.keys} keys each per d, every entry drawn from N(0, 1), "
        f"seed {result.seed}"
    )
    most = f"ln {result.keys} = {number(math.log(result.keys))}"
    yield f"entropy: of at most {most} nats; near 0 the softmax sees one key only"
    yield "gradient: Frobenius norm of the softmax's Jacobian diag(p) - p pᵀ, mean over queries"
    if result.additive is not None:
        yield (
            "additive, a·tanh(q Aq + k Ak) (Bahdanau et al. 2015), entries of Aq, Ak and a from N(0, 1/d): "
            f"tanh keeps every term within its own a, so that the spread is {number(result.additive[0][-1])} "
            f"at d = {result.dims[-1]} without any scale; dot products need one (Vaswani et al. 2017, 3.2.1)"
        )


def _table(result: ScaleStudy) -> Table:
    additive = [] if result.additive is None else result.additive.tolist()
    return Table(
        Column("d", result.dims),
        *(
            Column(f"{measure}_{way}", getattr(result, measure)[row].tolist())
            for measure in MEASURES
            for row, way in enumerate(_WAYS)
        ),
        *(Column(f"{measure}_additive", values) for measure, values in zip(MEASURES, additive, strict=False)),
    )
