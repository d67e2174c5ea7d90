"""What a program is told, so that it computes the figures of `ablate` again."""

from typing import Any

from attnscope.errors import InputError
from attnscope.render.script import COARSE, EXACT, NATS, Told, of_run
from attnscope.results.claims.effect import Asks, Measured, Method
from attnscope.verbs.ablate.result import Ablation


def figures(result: Ablation) -> Told:
    if result.method is Method.LINK:
        raise InputError("no script: a link is cut within the softmax, where no module can be told to")
    if result.path is not None:
        raise InputError("no script: in a program a change comes to everything, and not along one path")
    if result.places:
        raise InputError("no script: only heads are taken away in a program, at all tokens")
    if result.measured is not Measured.CHANCE:
        raise InputError(f"no script: a program measures probabilities, no {result.measured}")
    if result.answer.asks is Asks.SPAN:
        raise InputError("no script: a program reads one row of scores, and the ends of a span stand in two")
    told = of_run(result.provenance, result.tokens, result.kind, result.tower)
    answer, group = result.answer, result.group
    first = answer.position
    if first is None:  # what a decoder writes ends where its input does, behind what it was given
        written = result.provenance.inputs.get("decoder_input_ids", ())
        first = max(len(written) - 1 - len(answer.ids), 0)
    rows = list(range(first, first + len(answer.ids)))
    rows = rows if answer.asks is Asks.WRITTEN or answer.position is not None else []
    texts: list[dict[str, Any]] = [
        {side.input: side.ids[i % len(side.ids)].tolist() for side in result.mean_over}
        for i in range(max((len(side.ids) for side in result.mean_over), default=0))
    ]
    if result.other is not None:
        texts = [{"input_ids": result.other.ids}]
    return told | {
        "allowed": max(NATS if result.provenance.dtype in EXACT else COARSE, 4 * result.floor.rounding),
        "modules": result.modules,
        "texts": texts,
        "rows": rows,
        "answer": answer.ids,
        "said": answer.text,
        "probability": answer.probability,
        "heads": [(each.layer, each.head, each.change, each.kl) for each in result.heads],
        "random heads": [(each.layer, each.head, each.change) for each in result.floor.random],
        "group": [] if group is None else group.heads,
        "group change": None if group is None else group.effect.change,
        "drawn": [] if group is None else group.drawn,
        "drawn median": None if group is None else group.typical,
    }
