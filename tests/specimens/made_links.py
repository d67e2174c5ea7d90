"""Links of a text, as they could have come out: many that stand out, one, none that is told, none at all."""

import made_results as made
import numpy as np

from attnscope.results import Kind, Links, Verdict
from attnscope.results.base.evidence import Link

_PLACES = ((2, 1, 8, 5), (0, 3, 4, 2), (1, 0, 7, 9), (2, 2, 2, 7))


def links(
    *, found: int = 4, as_clear: int = 0, controls: int = 20, cross: bool = False, more: int = 0
) -> Links:
    """`found` links with evidence .5, .4, ..., of which `as_clear` controls reach the first."""
    tokens = made.tokens(made.DOOR)
    told = tuple(
        Link(
            *place,
            weight=0.75,
            controls=0.25 + 0.1 * i,
            distance=None if cross else 0.1,
            others=0.05,
            even=0.1,
        )
        for i, place in enumerate(_PLACES[:found])
    )
    best = np.where(np.arange(controls) < as_clear, 0.6, 0.35)
    return Links(
        kind=Kind.CROSS if cross else Kind.ENCODER,
        query_tokens=tokens,
        key_tokens=tokens,
        layers=(0, 1, 2),
        heads=(0, 1, 2, 3),
        links=told,
        more=more,
        best_of_controls=best,
        how="words change places",
        seed=3,
        ids=np.arange(controls * len(tokens)).reshape(controls, -1),
        input="input_ids",
        verdicts=((Verdict.CERTIFIED,) * 4,) * 3,
        provenance=made.provenance(),
    )
