"""A result for every case and every optional part of what `compare` says of two runs."""

import math
from collections.abc import Callable
from dataclasses import replace

import made_difference as made
import numpy as np

from attnscope.analysis.claims.comparison.difference import difference as difference_of
from attnscope.render.sheets import difference
from attnscope.results import Difference, Verdict
from attnscope.results.claims.difference import Case

SAID, CASES = difference.said, Case


def same() -> Difference:
    return difference_of(made.run(0), made.run(0), ("a.npz", "b.npz"), made.Picked())


def rounding(value: float) -> Difference:
    found = made.between()
    return replace(found, rounding=np.full_like(found.rounding, value))


def other_tokens(count: int) -> Difference:
    found = made.between()
    items = (replace(each, text="z", piece="") for each in found.b.query_tokens.items[1 : count + 1])
    tokens = replace(
        found.b.query_tokens,
        items=(found.b.query_tokens.items[0], *items, *found.b.query_tokens.items[count + 1 :]),
    )
    return replace(found, b=replace(found.b, query_tokens=tokens, key_tokens=tokens))


def nothing() -> Difference:
    found = made.between()
    return replace(found, divergences=np.full_like(found.divergences, math.nan))


EXAMPLES: dict[str, Callable[[], Difference]] = {
    "changed": made.between,
    "changed, one head": lambda: made.between(made.Picked((1,), (2,))),
    "changed, two heads": lambda: made.between(made.Picked((1,), (2,), 2, 3)),
    "changed, no tolerance": lambda: replace(rounding(math.nan), unlike=math.nan),
    "changed far beyond rounding": lambda: rounding(1e-9),
    "changed, one other token": lambda: other_tokens(1),
    "changed, many other tokens": lambda: other_tokens(7),
    "changed, one run is partial": lambda: replace(
        made.between(), b=replace(made.between().b, verdict=Verdict.PARTIAL)
    ),
    "same to the bit": same,
    "same but rounding": lambda: rounding(1.0),
    "no query": nothing,
}
