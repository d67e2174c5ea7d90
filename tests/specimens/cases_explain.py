"""A result for every case and every optional part of what `explain` says."""

from collections.abc import Callable
from dataclasses import replace

import cases_ablate
import cases_compose
import cases_find
import cases_why
import numpy as np
from cases_why import changed

from attnscope.results import Ablation, Composition, Explanation, Why
from attnscope.results.claims.effect import Effect, Group
from attnscope.verbs.explain.result import Asked, Case, Lost, Replaced, Unasked
from attnscope.verbs.explain.sheet import said

HEADS = ((3, 1), (0, 1), (2, 4))  # of layers and heads that the finding has
QUERY, KEY = 8, 2


def explanation(case: str = "circuit", **other: object) -> Explanation:
    """`circuit`, `shown`, `none` (a head looks there, and no control tells) or `nobody`."""
    found = cases_find.finding()
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
    return replace(cases_why.why(weight_left=weight_left), layer=layer, head=head, query=QUERY, key=KEY)


def _without(heads: tuple[tuple[int, int], ...], change: float) -> Ablation:
    each = tuple(
        cases_ablate.effect(*head, 0.1 * change / (1 + i), typical=0.01, below=3, controls=3)
        for i, head in enumerate(heads)
    )
    effect = Effect(0.25, 0.25 * float(np.exp(change)), change, 0.5)
    return cases_ablate.ablation(heads=each, group=Group(heads, effect, 0.03, 11, 12))


def _composition() -> Composition:
    """Of the head that is told of, L3 H1: by its queries it reads L0 H2, and others by weights alone."""
    made = cases_compose.composition()
    scores = made.scores.copy()
    scores[0, (made.pairs == (0, 2, 3, 1)).all(1)] = 0.9
    return replace(made, scores=scores, shown=(3, 1))


def replaced(answer: str = "door") -> Replaced:
    lost = ((2, 1.25), (6, 0.4), (4, 0.02), (1, -0.01))
    return Replaced(
        "[MASK]", answer, 0.25 if answer else float("nan"), 8, tuple(Lost((at,), by) for at, by in lost)
    )


SAID, CASES = said, Case


def lost(own: float, *others: float) -> Replaced:
    parts = (Lost((KEY,), own), *(Lost((i + 4, i + 5), other) for i, other in enumerate(others)))
    return Replaced("[MASK]", "door", 0.25, 8, tuple(sorted(parts, key=lambda part: -part.change)))


def _one(asked: int) -> Explanation:
    """One head stands out, of twelve or of itself, and has a reason at one end."""
    found = cases_find.EXAMPLES["one that follows the word"]()
    if asked == 1:
        found = replace(found, apart=((1, 2),))
    whys = (replace(changed(cases_why.why(), "L0 H2", contrast=2.9), layer=1, head=2, query=8, key=2),)
    taken = cases_ablate.ablation(heads=(cases_ablate.effect(1, 2, -0.5, below=0, controls=0),), group=None)
    made = explanation("shown", finding=found, heads=((1, 2),), taken=taken, cut=None, whys=whys)
    return replace(made, composition=None, unasked=())


def _nobody(like: str) -> Explanation:
    return explanation("nobody", finding=cases_find.EXAMPLES[like]())


def _few() -> Explanation:
    """A circuit of a head that too few controls are held against."""
    whys = (replace(cases_why.why(), layer=1, head=2, query=8, key=2),)
    made = explanation(finding=cases_find.EXAMPLES["few controls"](), heads=((1, 2),), whys=whys)
    return replace(made, taken=None, cut=None, composition=None)


def _unread() -> Explanation:
    """By its weights the head reads nobody."""
    made = explanation()
    assert made.composition is not None
    return replace(made, composition=replace(made.composition, scores=0 * made.composition.scores))


EXAMPLES: dict[str, Callable[[], Explanation]] = {
    "circuit": explanation,
    "shown": lambda: explanation("shown"),
    "none": lambda: explanation("none"),
    "nobody": lambda: explanation("nobody"),
    "most": lambda: explanation(replaced=lost(1.2, 0.4)),
    "little": lambda: explanation(replaced=lost(0.05, 0.01)),
    "gains": lambda: explanation(replaced=lost(-0.5, 0.01)),
    "among many": lambda: explanation(replaced=lost(0.2, 0.4, 0.5, 0.6)),
    "a tenth of it": lambda: explanation(replaced=lost(0.15, 0.004, 0.002)),
    "as another": lambda: explanation(replaced=lost(1.2, 1.4, 0.1)),
    "no answer": lambda: explanation(replaced=replaced(answer="")),
    "no answer, as others": lambda: explanation(replaced=replace(lost(0.2, 0.4, 0.1), answer="")),
    "no answer, alone": lambda: explanation(replaced=replace(lost(0.2), answer="")),
    "left": lambda: explanation(replaced=Replaced("[MASK]", "door", 0.25, 8, (Lost((4,), 0.1),))),
    "one of twelve": lambda: _one(12),
    "the one that was asked": lambda: _one(1),
    "by its place": lambda: _nobody("position only"),
    "from elsewhere too": lambda: _nobody("key only"),
    "no number": lambda: _nobody("unranked"),
    "few controls": _few,
    "along paths": lambda: explanation(paths=(cases_ablate.along(), cases_ablate.along())),
    "reads nobody": _unread,
}
