"""What one prompt says of a flow, beside other prompts."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from attnscope.analysis.prompts import NONE, OnePrompt, Seen, Spans
from attnscope.results.claims.attributed import DISTANCE
from attnscope.results.claims.prompts import CORRELATION, Asked, Figure
from attnscope.verbs.flow.result import Flow


def figures(result: Flow, spans: Spans) -> OnePrompt:
    """Each method by its correlation, each field by what is lost without it."""
    return OnePrompt(Asked.FLOW, dict(_methods(result, spans)))


def _methods(result: Flow, spans: Spans) -> Iterator[tuple[Figure, Seen]]:
    if (replaced := result.ablated) is None:
        return
    alone = next((each.correlation for each in replaced.trust if each.method == DISTANCE), NONE)
    for each in replaced.trust:
        if each.method != DISTANCE:
            stands = bool(each.correlation > each.high)
            yield Figure(each.method, CORRELATION), Seen(each.correlation, alone, stands=stands)
    measured = f"{replaced.unit} lost" if replaced.answer else replaced.unit
    tried = np.isfinite(replaced.effects)
    for name, places in spans.items():
        own = np.zeros(len(tried), dtype=bool)
        own[list(places)] = True
        if (own & tried).any():
            value, others = (_mean(replaced.effects[part & tried]) for part in (own, ~own))
            stands = bool(np.isfinite(others)) and value > float(replaced.effects[~own & tried].max())
            yield Figure(f"field:{name}", measured), Seen(value, others, stands=stands)


def _mean(values: Float[np.ndarray, " key"]) -> float:
    return float(values.mean()) if len(values) else NONE
