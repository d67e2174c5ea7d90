"""A result for every case and every optional part of what `compare` says of two runs."""

import math
from collections.abc import Callable
from dataclasses import replace

import made_results
import numpy as np

from attnscope.results import Difference, Verdict
from attnscope.verbs.compare import difference_sheet as sheet
from attnscope.verbs.compare.difference import Matrices, Picked, difference, matrices_in
from attnscope.verbs.compare.result import RunsCase as Case


def run(seed: int = 0, layers: int = 3, heads: int = 4, name: str = "a.npz") -> Matrices:
    """A made overview whose weights are drawn by lot."""
    plain = matrices_in(made_results.overview(layers, heads), name)
    random = np.random.default_rng(seed)
    weights = {}
    for place, each in plain.weights.items():
        raw = random.exponential(size=each.shape)
        weights[place] = raw / raw.sum(axis=1, keepdims=True)
    return replace(plain, weights=weights)


def between(picked: Picked = Picked()) -> Difference:  # noqa: B008
    return difference(run(0), run(1, name="b.npz"), picked)


SAID, CASES = sheet.said, Case


def same() -> Difference:
    return difference(run(0), run(0, name="b.npz"))


def rounding(value: float) -> Difference:
    found = between()
    return replace(found, rounding=np.full_like(found.rounding, value))


def other_tokens(count: int) -> Difference:
    found = between()
    items = (replace(each, text="z", piece="") for each in found.b.query_tokens.items[1 : count + 1])
    tokens = replace(
        found.b.query_tokens,
        items=(found.b.query_tokens.items[0], *items, *found.b.query_tokens.items[count + 1 :]),
    )
    return replace(found, b=replace(found.b, query_tokens=tokens, key_tokens=tokens))


def nothing() -> Difference:
    found = between()
    return replace(found, divergences=np.full_like(found.divergences, math.nan))


EXAMPLES: dict[str, Callable[[], Difference]] = {
    "changed": between,
    "changed, one head": lambda: between(Picked((1,), (2,))),
    "changed, two heads": lambda: between(Picked((1,), (2,), 2, 3)),
    "changed, no tolerance": lambda: replace(rounding(math.nan), unlike=math.nan),
    "changed far beyond rounding": lambda: rounding(1e-9),
    "changed, one other token": lambda: other_tokens(1),
    "changed, many other tokens": lambda: other_tokens(7),
    "changed, one run is partial": lambda: replace(
        between(), b=replace(between().b, verdict=Verdict.PARTIAL)
    ),
    "same to the bit": same,
    "same but rounding": lambda: rounding(1.0),
    "no query": nothing,
}
