"""A result for every case and every optional part of what `heads --terms` says."""

import math
from collections.abc import Callable
from dataclasses import replace

import made_results as made
import numpy as np

from attnscope.render.sheets import Focus
from attnscope.render.sheets import terms as sheets
from attnscope.results import HeadTerms, Influence
from attnscope.results.score import CAP, CONTENT, MASK, SINK, Case

SAID, CASES = sheets.said, Case
LONG = [f"w{i}" for i in range(70)]


def terms(
    names=made.DOOR, causal: bool = True, sink: bool = True, capped: bool = True, **changed
) -> HeadTerms:
    """A head with a cap, two terms and a sink, its sums made here in NumPy."""
    plain = made.head(names, causal=causal, **changed)
    random = np.random.default_rng(5)
    added = {name: random.normal(size=plain.scores.shape) for name in ("content to position", "alibi")}
    scaled = plain.scores * plain.scale
    cap = 4 * np.tanh(scaled / 4) if capped else scaled
    score = np.where(plain.allowed, cap + sum(added.values()), np.nan)
    sinks = np.full(len(score), 0.5) if sink else None
    totals = np.nansum(np.exp(score), axis=1) + (np.exp(0.5) if sink else 0)
    normaliser = np.where(plain.allowed.any(1), np.log(totals), np.nan)
    weights = np.where(plain.allowed, np.exp(score - normaliser[:, None]), 0.0)
    weights[~plain.allowed.any(1)] = np.nan
    fields = {**vars(plain), "scaled": score, "weights": weights, "terms": added}
    head = type(plain)(**fields | {"softcap": 4.0 if capped else None, "sink": 0.5 if sink else None})
    parts = (CONTENT, *((CAP,) if capped else ()), *added, *((MASK,) if causal else ()))
    nan = math.nan
    influences = tuple(
        Influence(name, *((nan,) * 3 if name == MASK else (0.1, -2.5, 3.25)), 0.25, 0.75)
        for name in (*parts, *((SINK,) if sink else ()))
    )
    return HeadTerms(head, scaled, cap, sinks, normaliser, influences)


def moved(*shares: float) -> HeadTerms:
    """The product alone, and what else there is, by how far weights move without each."""
    names = (CONTENT, "alibi", MASK)
    parts = (Influence(name, 0.1, -1.0, 1.0, share, 0.9) for name, share in zip(names, shares, strict=False))
    return replace(terms(), influences=tuple(parts))


def bare() -> HeadTerms:
    """Nothing but the product of query and key."""
    made = terms(causal=False, sink=False, capped=False)
    return replace(made, head=replace(made.head, terms={}, scaled=made.scaled))


def at(query: int, key: int | None = None) -> Focus:
    return Focus(queries=(query,), key=key)


EXAMPLES: dict[str, Callable[[], HeadTerms] | tuple[Callable[[], HeadTerms], Focus]] = {
    "parts": lambda: moved(0.2, 0.41, 0.3),
    "one part": lambda: moved(0.25),
    "no key": lambda: moved(math.nan),
    "one query": (terms, at(4, 2)),
    "one query by the product alone": (bare, at(4, 2)),
    "one query without a key": (lambda: terms(empty=[3]), at(3)),
    "many keys": (lambda: terms(LONG), at(65, 3)),
    "many keys, a few masked": (lambda: terms(LONG), at(50)),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "parts": (Case.PARTS, "alibi matters most", ".41 of a query's", "without mask .30"),
    "one part": (Case.ONE_PART, "by q·k x scale alone", ".25 of a query's", "at most .90"),
    "one query": (Case.PARTS, "from “on” at “cat” with .47", "same: .20", "q·k 6.767 x .3536 = 2.392"),
}
