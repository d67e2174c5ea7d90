"""A result for every case and every optional part of what `find` without a pair says."""

from collections.abc import Callable
from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.results import Kind, Links, Verdict
from attnscope.results.base.evidence import Link
from attnscope.verbs.find import links_sheet as sheets
from attnscope.verbs.find.result import LinksCase as Case

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


SAID, CASES = sheets.said, Case


def explained_by(name: str) -> Links:
    """Links of which this explains most."""
    made = links(more=3)
    return replace(made, links=tuple(replace(each, **{name: 0.3}) for each in made.links))


EXAMPLES: dict[str, Callable[[], Links]] = {
    "several": links,
    "one": lambda: links(found=1),
    "one that few texts have as well": lambda: links(found=1, controls=40, as_clear=1),
    "cannot tell": lambda: links(as_clear=7),
    "few controls": lambda: links(controls=18),
    "nothing": lambda: links(found=0),
    "distance": lambda: explained_by("distance"),
    "others": lambda: explained_by("others"),
    "even": lambda: explained_by("even"),
}
CLEAREST = "L2 H1", "“it”", "“the”@5", ".75"
NUMBERS: dict[str, tuple[str, ...]] = {  # what of numbers and heads the answer has
    "several": (Case.SEVERAL, *CLEAREST, ".25", "2 links", "any of 20"),
    "one": (Case.ONE, *CLEAREST, ".25", "any of 20"),
    "one that few texts have as well": (Case.ONE, *CLEAREST, "1 of 40"),
    "cannot tell": (Case.CANNOT_TELL, *CLEAREST, ".25", "7 of 20"),
    "few controls": (Case.FEW_CONTROLS, *CLEAREST, ".25", "18", "19"),
    "nothing": (Case.NOTHING, "12 heads", ".10"),
    "distance": (Case.SEVERAL, *CLEAREST, ".30", "distance"),
    "others": (Case.SEVERAL, *CLEAREST, ".30", "other words"),
    "even": (Case.SEVERAL, *CLEAREST, ".30", "the same"),
}
