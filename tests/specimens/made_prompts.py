"""One question over many prompts, as it could have come out, for each question that there is."""

from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.analysis.claims.prompts import Seen, tabled
from attnscope.results import Kind, Prompts, Verdict
from attnscope.results.claims.prompts import CORRELATION, Asked, Figure, Prompt, Refused

_TEXTS = (
    *("Mary gave Ann a book.", "John gave the old man a key.", "Ann sold Tom the red car.", "Tom fell."),
    *(
        "Ann gave Mary the key.",
        "The old man sold Tom a car.",
        "John sold Ann the red book.",
        "Mary saw Tom.",
    ),
)
# of each figure what it has in the first three prompts, and again, and in those against it; its controls
_MEASURED = {
    Asked.FIND: ("weight", ((0.8, 0.7, 0.78, 0.05), (0.1, 0.12, 0.1, 0.09)), 0.1),
    Asked.LIKE: ("distance", ((0.1, 0.12, 0.15, 0.5), (0.5, 0.4, 0.45, 0.4)), 0.4),
    Asked.ABLATE: ("nats", ((-1.2, -0.9, -1.4, 0.3), (0.02, -0.01, 0.03, 0.02)), 0.05),
    Asked.LINKS: ("weight", ((0.8, 0.7, 0.78, 0.05), (0.16, 0.17, 0.15, 0.14)), 0.15),
    Asked.RANK: ("foretold nats", ((-1.2, -0.9, -1.4, 0.3), (0.02, -0.01, 0.03, 0.02)), 0.05),
    Asked.ANSWER: ("logits", ((2.1, 1.2, 1.8, -0.3), (1.0, 1.4, -0.9, 0.8)), 0.4),
    Asked.FLOW: (CORRELATION, ((0.8, 0.7, 0.6, 0.1), (0.2, 0.3, 0.1, 0.2)), 0.25),
    Asked.PREDICT: ("probability", ((0.9, 0.8, 0.7, 0.4), (0.05, 0.8, 0.1, 0.2)), 0.15),
    Asked.LAYERS: ("probability", ((0.1, 0.2, 0.05, 0.1), (0.9, 0.8, 0.7, 0.4)), 0.15),
    Asked.WHY: ("share", ((5.1, 4.2, 4.8, -0.3), (1.0, 1.4, -0.9, 0.8)), 0.4),
}
_NAMES = {
    Asked.LINKS: (
        Figure("L1 H8 from field:a at “book”", "weight", 1, 8),
        Figure("L0 H3 from “gave” at field:b", "weight", 0, 3),
    ),
    Asked.ANSWER: (Figure("L0 H2", "logits", 0, 2), Figure("biases", "logits")),
    Asked.FLOW: (Figure("rollout", CORRELATION), Figure("attention", CORRELATION)),
    Asked.PREDICT: (Figure("own answer", "probability"), Figure("“book”", "probability")),
    Asked.LAYERS: (Figure("embeddings", "probability"), Figure("layer 0", "probability", 0)),
    Asked.WHY: (
        Figure("L0 H2 on the key side", "share", 0, 2),
        Figure("MLP L0 on the query side", "share", 0),
    ),
}


def prompts(
    asked: Asked = Asked.FIND,
    *,
    count: int = 8,
    off: int = 1,
    refused: bool = True,
    first: float | None = None,
) -> Prompts:
    """Two figures over `count` prompts, of which the last `off` go against the first figure's mean.

    `first` is what the first figure has in every prompt, in the place of its own.
    """
    measured, values, control = _MEASURED[asked]
    figures = _NAMES.get(asked, (Figure("L1 H8", measured, 1, 8), Figure("L0 H3", measured, 0, 3)))
    every = []
    for place in range(count):
        own = {}
        for i, figure in enumerate(figures):
            column = place % 3 if place < count - off else 3
            value = values[i][column] if first is None or i else first
            lost = value if not i and (asked.of_parts or asked is Asked.RANK) else float("nan")
            stands = abs(value) > 0.6 if asked is not Asked.LIKE else value < 0.2
            stands = stands and (not asked.of_parts or not i)
            own[figure] = Seen(value, control, lost, stands)
        every.append(own)
    untouched = asked in (Asked.PREDICT, Asked.LAYERS)
    return Prompts(
        asked=asked,
        question="looks from field:a at field:b" if asked is Asked.FIND else "from field:a at field:b",
        file="gave.csv",
        prompts=tuple(Prompt(2 + i, text) for i, text in enumerate(_TEXTS[:count])),
        refused=(Refused(7, "its cell 'a' is empty"),) if refused else (),
        **vars(tabled(asked, every)),
        certified={} if untouched else {Verdict.CERTIFIED: count},
        provenance=made.provenance().of_no_text,
        kind=None if untouched else Kind.ENCODER,
        notes=("over a test",),
    )


def of_nothing() -> Prompts:
    """Figures that no prompt has a number of."""
    found = prompts()
    none = np.full_like(found.values, np.nan)
    return replace(found, values=none, controls=none)
