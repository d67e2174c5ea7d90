"""What a program is told, so that it computes the figures of `flow` again."""

import numpy as np

from attnscope.errors import InputError
from attnscope.render.script import COARSE, EXACT, NATS, Told, names_of, of_run
from attnscope.verbs.flow.result import Flow


def figures(result: Flow) -> Told:
    ablated = result.ablated
    if ablated is None:
        raise InputError(f"no script: nothing was replaced: {result.reason}")
    if result.query is None:
        raise InputError("no script: none computes a pooled vector again")
    if result.by.joins:
        raise InputError(f"no script: it is by {result.by.several}, and a script follows tokens")
    if result.query_span:
        raise InputError("no script: it is from several tokens, and a script goes back from one")
    if ablated.against:
        raise InputError("no script: it is of a lead, and a script tells what one answer loses")
    if len(ablated.answer_ids) > 1:
        raise InputError(
            "no script: its answer has several tokens, and a script tells what one of them loses"
        )
    told = of_run(result.provenance, result.tokens, result.kind, result.tower)
    places = np.flatnonzero(~np.isnan(ablated.effects)).tolist()
    return told | {
        "allowed": NATS if result.provenance.dtype in EXACT else COARSE,
        "layers": len(result.layers),
        "heads": result.heads,
        "query": result.query,
        "tokens": names_of(result.tokens),
        "rollout": result.rollout[-1].tolist(),
        "replaced in": ablated.input,
        "replacement": ablated.replacement,
        "replacement id": ablated.replacement_id,
        "said": ablated.answer,
        "answer": next(iter(ablated.answer_ids), None),
        "probability": ablated.probability,
        "effects": [(place, float(ablated.effects[place])) for place in places],
    }
