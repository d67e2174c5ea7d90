"""A result for every case and every optional part of what `explain` says."""

from collections.abc import Callable
from dataclasses import replace

import cases_find
import made_ablation
import made_why
from cases_why import changed
from made_explanation import KEY, explanation, replaced

from attnscope.render.sheets import explanation_words
from attnscope.results import Explanation
from attnscope.results.claims.explanation import Case, Lost, Replaced

SAID, CASES = explanation_words.said, Case


def lost(own: float, *others: float) -> Replaced:
    parts = (Lost((KEY,), own), *(Lost((i + 4, i + 5), other) for i, other in enumerate(others)))
    return Replaced("[MASK]", "door", 0.25, 8, tuple(sorted(parts, key=lambda part: -part.change)))


def _one(asked: int) -> Explanation:
    """One head stands out, of twelve or of itself, and has a reason at one end."""
    found = cases_find.EXAMPLES["one that follows the word"]()
    if asked == 1:
        found = replace(found, apart=((1, 2),))
    whys = (replace(changed(made_why.why(), "L0 H2", contrast=2.9), layer=1, head=2, query=8, key=2),)
    taken = made_ablation.ablation(heads=(made_ablation.effect(1, 2, -0.5, below=0, controls=0),), group=None)
    made = explanation("shown", finding=found, heads=((1, 2),), taken=taken, cut=None, whys=whys)
    return replace(made, composition=None, unasked=())


def _nobody(like: str) -> Explanation:
    return explanation("nobody", finding=cases_find.EXAMPLES[like]())


def _few() -> Explanation:
    """A circuit of a head that too few controls are held against."""
    whys = (replace(made_why.why(), layer=1, head=2, query=8, key=2),)
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
    "along paths": lambda: explanation(paths=(made_ablation.along(), made_ablation.along())),
    "reads nobody": _unread,
}
