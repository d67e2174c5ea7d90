"""A t-SNE map for every case and every optional part of what is said of it."""

import math
from collections.abc import Callable
from dataclasses import replace

import made_results as made
import made_stored

from attnscope.render.sheets import projection as sheet
from attnscope.results import Projection
from attnscope.results.projection import Case

SAID, CASES = sheet.said, Case


def near(**figures: object) -> Projection:
    """A map of which every nearest key is the strongest."""
    found = made.projection(**{"correlation": -0.98, "trustworthiness": 0.9} | figures)
    return replace(found, distance=-found.weights)


EXAMPLES: dict[str, Callable[[], Projection]] = {
    "readable": near,
    "readable, of few points": lambda: near(trustworthiness=math.nan, perplexity=3.3),
    "readable, of two clouds": lambda: near(apart=True),
    "readable, not settled": lambda: near(settled=False, iterations=1_000),
    "readable, not settled and of two clouds": lambda: near(settled=False, iterations=20_000, apart=True),
    "readable, of words": made_stored.projection_of_words,
    "few of the nearest are strongest": lambda: made.projection(correlation=-0.98, trustworthiness=0.9),
    "nearness says little": lambda: made.projection(correlation=0.3),
    "nearness says nothing": lambda: made.projection(correlation=0.1),
    "weak correlation": lambda: near(correlation=-0.79),
    "plane loses": lambda: near(trustworthiness=0.79),
    "plane loses and distances mislead": lambda: made.projection(correlation=-0.98, trustworthiness=0.5),
    "cannot tell": lambda: near(correlation=math.nan, trustworthiness=math.nan),
    "one point": lambda: near(correlation=math.nan, trustworthiness=math.nan, iterations=0),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "readable": (Case.READABLE, "L3 H11", "for 13 of 13 queries", "luck: 1", "−.98", "trustworthiness .90"),
    "readable, of two clouds": (Case.READABLE, "lie apart"),
    "readable, not settled": (Case.READABLE, "1,000 iterations", "--max-iter 20000"),
    "few of the nearest are strongest": (
        Case.MISLEADS,
        "only 6 of 13 queries",
        "−.98",
        "trustworthiness .90",
    ),
    "weak correlation": (Case.MISLEADS, "−.79", "13 of 13 queries", "trustworthiness .90"),
    "plane loses": (Case.PLANE_LOSES, "trustworthiness .79", "13 of 13 queries", "−.98"),
    "plane loses and distances mislead": (Case.PLANE_LOSES, "trustworthiness .50", "only 6 of 13", "−.98"),
    "cannot tell": (Case.CANNOT_TELL, "L3 H11", "cannot be judged"),
}
