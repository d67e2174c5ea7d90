"""A result for every case and every optional part of what `verify` says."""

import math
from collections.abc import Callable
from dataclasses import replace

from made_results import verification

from attnscope.render.sheets import Focus
from attnscope.results import Kind, Verdict, Verification
from attnscope.verbs.verify import sheet as sheets
from attnscope.verbs.verify.result import Proved

SAID, CASES = sheets.said, Proved
EVERY = [(i, j) for i in range(4) for j in range(12)]


def of_all(verdict: Verdict) -> Verification:
    return verification(verdicts=dict.fromkeys(EVERY, verdict))


def without_numbers(reason: str = "no number") -> Verification:
    """One head failed for what is no number."""
    made = verification(1, 1, {(0, 0): Verdict.FAILED})
    (layer,) = made.layers
    one = replace(layer.certificates[0], weight_error=math.nan, output_error=math.nan, reason=reason)
    return replace(made, layers=(replace(layer, certificates=(one,)),))


def with_cross() -> Verification:
    made = verification(2, 3)
    cross = tuple(replace(layer, kind=Kind.CROSS, tower="decoder") for layer in made.layers)
    return replace(made, layers=(*made.layers, *cross, replace(cross[0], block=1)))


EXAMPLES: dict[str, Callable[[], Verification] | tuple[Callable[[], Verification], Focus]] = {
    "all": verification,
    "of two towers": (with_cross, Focus(verbose=True)),
    "the only one": lambda: verification(1, 1),
    "inconclusive": lambda: verification(
        verdicts={(0, 0): Verdict.INCONCLUSIVE, (0, 1): Verdict.INCONCLUSIVE}
    ),
    "none to the end": lambda: of_all(Verdict.INCONCLUSIVE),
    "of three kinds": lambda: verification(
        verdicts={(0, 0): Verdict.INCONCLUSIVE, (1, 1): Verdict.PARTIAL, (2, 2): Verdict.UNCERTIFIED}
    ),
    "unchecked": lambda: of_all(Verdict.UNCERTIFIED),
    "one failed": lambda: verification(verdicts={(1, 1): Verdict.FAILED}),
    "all failed": lambda: of_all(Verdict.FAILED),
    "failed and changed": lambda: verification(verdicts={(1, 1): Verdict.FAILED}, difference=1e-3),
    "no number": without_numbers,
    "no reason": lambda: without_numbers(""),
    "changed": lambda: verification(2, 3, difference=1e-3),
    "stored": lambda: of_all(Verdict.STORED),
    "nothing": lambda: verification(layers=0),
}
