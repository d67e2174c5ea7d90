"""Explanations of a link as they could have come out: a circuit, heads that look there, nothing shown."""

from dataclasses import replace

import made_ablation
import made_composition
import made_finding
import made_why
import numpy as np

from attnscope.results import Ablation, Composition, Explanation, Why
from attnscope.results.claims.effect import Effect, Group
from attnscope.results.claims.explanation import Asked, Lost, Replaced, Unasked

HEADS = ((3, 1), (0, 1), (2, 4))  # of layers and heads that the finding has
QUERY, KEY = 8, 2


def explanation(case: str = "circuit", **other: object) -> Explanation:
    """`circuit`, `shown`, `none` (a head looks there, and no control tells) or `nobody`."""
    found = made_finding.finding()
    if case in ("none", "circuit"):  # controls in which heads stand as clear
        clear = np.full(len(found.controls.best_excess), 50.0)
        found = replace(found, controls=replace(found.controls, best_excess=clear))
    if case == "nobody":
        found = replace(found, weights=np.full(found.weights.shape, 0.02))
    heads = () if case == "nobody" else HEADS
    weight_left = 0.04 if case == "circuit" else 0.9
    whys = tuple(_why(*head, weight_left) for head in heads[:2])
    taken = _without(heads, -0.9) if heads else None
    made = Explanation(
        finding=found,
        heads=heads,
        taken=taken,
        cut=None if taken is None else _without(heads, -0.01),
        whys=whys,
        composition=_composition() if heads else None,
        replaced=replaced(),
        unasked=(Unasked(Asked.LINK, "as it is"),) if case == "shown" else (),
    )
    return replace(made, **other)  # type: ignore[arg-type]


def _why(layer: int, head: int, weight_left: float) -> Why:
    return replace(made_why.why(weight_left=weight_left), layer=layer, head=head, query=QUERY, key=KEY)


def _without(heads: tuple[tuple[int, int], ...], change: float) -> Ablation:
    each = tuple(
        made_ablation.effect(*head, 0.1 * change / (1 + i), typical=0.01, below=3, controls=3)
        for i, head in enumerate(heads)
    )
    effect = Effect(0.25, 0.25 * float(np.exp(change)), change, 0.5)
    return made_ablation.ablation(heads=each, group=Group(heads, effect, 0.03, 11, 12))


def _composition() -> Composition:
    """Of the head that is told of, L3 H1: by its queries it reads L0 H2, and others by weights alone."""
    made = made_composition.composition()
    scores = made.scores.copy()
    scores[0, (made.pairs == (0, 2, 3, 1)).all(1)] = 0.9
    return replace(made, scores=scores, shown=(3, 1))


def replaced(answer: str = "door") -> Replaced:
    lost = ((2, 1.25), (6, 0.4), (4, 0.02), (1, -0.01))
    return Replaced(
        "[MASK]", answer, 0.25 if answer else float("nan"), 8, tuple(Lost((at,), by) for at, by in lost)
    )
