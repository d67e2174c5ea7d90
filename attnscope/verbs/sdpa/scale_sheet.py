"""Sheet of the scale study: spread, entropy and gradient by vector size, with and without dividing by √d."""

import math
from functools import partial

from attnscope.render.kit.numbers import number
from attnscope.render.sheet.blocks import Beside, Curve
from attnscope.render.sheet.said import checked
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Line, Table, Tint
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.verbs.sdpa.result import MEASURES, ScaleStudy

_UNITS = {"spread": "standard deviation", "entropy": "nats", "gradient": "Frobenius norm"}
_WAYS = ("unscaled", "scaled")
_TINTS: tuple[Tint, ...] = ("loses", "own", "kin")  # without the scale, with it, additive


def sheet(result: ScaleStudy, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    return Sheet(
        title=say("title"),
        setting="example why-scale",
        origins=(),
        answer=say(result.case),
        blocks=(Beside(tuple(_curve(result, measure, say) for measure in MEASURES)),),
        table=lambda: _table(result),
        notes=tuple(say.lines("notes")),
        proof=tuple(map(checked, result.checks)),
        summary=("dimensions " + ", ".join(map(str, result.dims)),),
        record=(("keys", result.keys), ("queries", result.queries), ("seed", result.seed)),
    )


def said(result: ScaleStudy) -> Said:
    """Sentences of `sdpa --example why-scale` about this result, and the facts they use."""
    last = result.dims[-1]
    facts = {
        "first": result.dims[0],
        "last": last,
        "root": math.sqrt(last),
        "spread_first": result.spread[0, 0],
        "spread_last": result.spread[0, -1],
        "spread_scaled": result.spread[1, -1],
        "steep": result.gradient[0, -1],
        "kept": result.gradient[1, -1],
        "additive": None if result.additive is None else result.additive[0, -1],
        "most": math.log(result.keys),
    }
    return Said("scale", result, facts)


def _curve(result: ScaleStudy, measure: str, say: Said) -> Curve:
    raw, scaled = getattr(result, measure).tolist()
    ways = {"q·k": raw, "q·k/√d": scaled}
    if result.additive is not None:
        ways["additive"] = result.additive[MEASURES.index(measure)].tolist()
    titles = {"spread": "spread_title", "entropy": "entropy_title", "gradient": "gradient_title"}
    spread = measure == "spread"
    lines = [
        Line("line", tint, name, values) for tint, (name, values) in zip(_TINTS, ways.items(), strict=False)
    ]
    if measure == "entropy":
        most = math.log(result.keys)
        lines.append(Line("dashed", "faint", say("alike"), [most] * len(raw)))
    return Curve(
        title=say(titles[measure]),
        of="d",
        names=tuple(map(str, result.dims)),
        table=Table(
            *(Column(name, values, name, partial(number, decimals=3)) for name, values in ways.items())
        ),
        places=tuple(range(len(raw))),
        named=True,
        measured=_UNITS[measure],
        lines=tuple(lines),
        axis=None if spread else (0.0, 1.08 * max(end for line in lines for end in line.ends())),
        log=spread,
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
