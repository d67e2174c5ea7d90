"""A result for every case and every optional part of what is said of heads in small: random weights."""

from collections.abc import Callable
from dataclasses import replace

import cases_media
import made_results as made
import numpy as np

from attnscope.analysis.heads.overview import pooled, steps_for
from attnscope.render.sheets import Focus
from attnscope.render.sheets import thumbnails as sheets
from attnscope.results import Kind, Thumbnails, Verdict
from attnscope.results.overview import InSmall
from attnscope.vocabulary import Scaling

SAID, CASES = sheets.said, InSmall


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


def of_patches() -> Thumbnails:
    patches = cases_media.patch_tokens()
    return replace(thumbnails(tokens=len(patches), step=1), query_tokens=patches, key_tokens=patches)


EXAMPLES: dict[str, Callable[[], Thumbnails] | tuple[Callable[[], Thumbnails], Focus]] = {
    "several heads": (thumbnails, Focus(scale=Scaling.LOG)),
    "one head": lambda: thumbnails(1, 1),
    "in larger cells": lambda: thumbnails(tokens=40, step=4),
    "of patches": of_patches,
    "one token": lambda: thumbnails(causal=True, tokens=1),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "several heads": (InSmall.LARGEST, "L2 H1", "“.” at “tired”", "of 12 heads"),
    "one head": (InSmall.LARGEST, "L2 H0", ".957", "its largest"),
    "in larger cells": (InSmall.LARGEST, "one of the 4 queries at", "one of the 4 keys at"),
    "one token": (InSmall.NO_CHOICE,),
}
