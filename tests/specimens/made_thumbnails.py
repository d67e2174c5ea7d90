"""Thumbnails as they could have come out: heads of random weights."""

import made_results as made
import numpy as np

from attnscope.analysis.heads.thumbnails import pooled, steps_for
from attnscope.results import Kind, Thumbnails, Verdict


def thumbnails(
    layers: int = 3,
    heads: int = 4,
    *,
    causal: bool = False,
    tokens: int = 13,
    step: int | None = None,
    last: Verdict = Verdict.CERTIFIED,
) -> Thumbnails:
    random = np.random.default_rng(8)
    names = [*made.DOOR, *(f"w{i}" for i in range(13, tokens))][:tokens]
    text = made.tokens(names)
    allowed = np.tril(np.ones((tokens, tokens), bool)) if causal else np.ones((tokens, tokens), bool)
    steps = (step, step) if step else steps_for(tokens, tokens, heads)
    cells = [
        [
            pooled(made.softmax(3 * random.normal(size=allowed.shape), allowed), allowed, steps)
            for _ in range(heads)
        ]
        for _ in range(layers)
    ]
    verdicts = [[Verdict.CERTIFIED] * heads for _ in range(layers)]
    verdicts[0][-1] = last
    return Thumbnails(
        kind=Kind.DECODER if causal else Kind.ENCODER,
        query_tokens=text,
        key_tokens=text,
        layers=tuple(range(2, 2 + layers)),
        heads=tuple(range(heads)),
        steps=steps,
        weights=np.array(cells),
        verdicts=tuple(map(tuple, verdicts)),
        provenance=made.provenance(),
        notes=("odd",),
    )
