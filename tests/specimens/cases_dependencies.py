"""A result for every case and every optional part of what `dependencies` says."""

from collections.abc import Callable
from dataclasses import replace

import made_relations as made
import numpy as np

from attnscope.render.focus import Focus
from attnscope.render.sheets import dependencies
from attnscope.results import Dependencies
from attnscope.results.claims.relations import Case, Example, Z

SAID, CASES = dependencies.said, Case


def by_errors(*errors: float, counts: int = 30, shown: str = "", distance: int = 2) -> Dependencies:
    """Relations whose heads are so many standard errors above their distance, .1 each."""
    found = made.dependencies()
    first = found.relations[0]
    assert first.held_out is not None
    relations = tuple(
        replace(
            first,
            name=f"r{i}",
            count=counts,
            best=replace(first.best, layer=3, head=2),
            baseline=replace(first.baseline, accuracy=0.4, fixed_distance=distance),
            held_out=replace(
                first.held_out,
                accuracy=0.4 + each / 10,
                above_control=each / 10,
                low=(each - Z) / 10,
                high=(each + Z) / 10,
            ),
        )
        for i, each in enumerate(errors)
    )
    shape = (*found.accuracies.shape[:3], len(relations))
    offsets = np.zeros((len(found.fixed_distances), len(relations)))
    bank = replace(found.treebank, sentences=60, too_long=0, without_relation=0, unreadable=0)
    return replace(
        found,
        relations=relations,
        accuracies=np.zeros(shape),
        distance_accuracies=offsets,
        treebank=replace(bank, pairs_without_piece=0),
        shown=shown,
    )


def another() -> Dependencies:
    """A head that takes another word of the same name."""
    found = by_errors(4.0)
    missed = Example(("the", "door", "of", "the"), 1, 0, 3)
    return replace(found, relations=(replace(found.relations[0], examples=(missed,)),))


WHOLE = Focus(verbose=True)
EXAMPLES: dict[str, Callable[[], Dependencies] | tuple[Callable[[], Dependencies], Focus]] = {
    "found": (made.dependencies, WHOLE),
    "found, and no head looks ahead": lambda: made.dependencies(ahead=False),
    "found, one": lambda: by_errors(0.5, 4.0, -0.5),
    "found, several": lambda: by_errors(3.0, 3.5, -0.5),
    "found, another word": (another, WHOLE),
    "nearest": lambda: by_errors(2.0, -0.5, -4.0),
    "nearest of many": lambda: by_errors(*[0.1 * i for i in range(20)]),
    "nearest, three alone": lambda: by_errors(-2.3, 2.2, 2.5, *[0.0] * 9),
    "distance": lambda: by_errors(-0.5, -4.0),
    "few pairs": lambda: by_errors(4.0, counts=19),
    "few pairs, long sentences": lambda: replace(
        by_errors(4.0, counts=19), treebank=made.dependencies().treebank
    ),
    "one better": lambda: by_errors(4.0, shown="r0"),
    "one better than the next word": lambda: by_errors(4.0, shown="r0", distance=1),
    "one better than the word before": lambda: by_errors(4.0, shown="r0", distance=-1),
    "one worse": lambda: by_errors(-4.0, shown="r0", distance=-3),
    "one open": lambda: by_errors(0.5, shown="r0", distance=5),
    "one few": lambda: by_errors(4.0, counts=7, shown="r0"),
    "one of a treebank": lambda: made.dependencies("nsubj"),
}
