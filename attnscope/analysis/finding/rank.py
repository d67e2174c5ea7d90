"""Every head by one number, and the same number of control texts beside it.

The best of many heads is a maximum: it is held against the best head of every control text as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnscope.analysis.finding.rows import Layer, allowed_rows, moved, rows_of
from attnscope.analysis.finding.sought import Likeness, Target, divergence
from attnscope.results import Controls
from attnscope.results.claims.finding import beyond

ByHead = Float[np.ndarray, "layer head"]
OUTER = 0.05  # share of the controls that `low` and `high` leave out at either end


def numbers(target: Target | Likeness, layers: Sequence[Layer], heads: Sequence[int]) -> ByHead:
    """The number of every head in one text; NaN for the head that others are likened to."""
    if isinstance(target, Target):
        return np.array([target.number(rows_of(each, heads, target.queries)) for each in layers])
    given = rows_of(layers[target.layer], [target.head])[0]
    found = np.array([divergence(rows_of(each, heads), given) for each in layers])
    if target.head in heads:
        found[target.layer, list(heads).index(target.head)] = np.nan
    return found


@dataclass(frozen=True, eq=False)
class Beside:
    """What stands beside the number of every head in the text itself; None where it has no meaning."""

    ranks: ByHead | None = None
    norms: ByHead | None = None
    shares: ByHead | None = None
    even: ByHead | None = None


def beside(target: Target | Likeness, layers: Sequence[Layer], heads: Sequence[int]) -> Beside:
    """Rank, weight by norm, its share of the row, and what even attention would have."""
    if isinstance(target, Likeness):
        return Beside()
    rows = [rows_of(each, heads, target.queries) for each in layers]
    lengths = [moved(each) for each in layers]
    norms = shares = None
    if all(each is not None for each in lengths):
        by_norm = [
            each * length[list(heads)][:, None]
            for each, length in zip(rows, lengths, strict=True)
            if length is not None
        ]
        norms = np.array([target.number(each) for each in by_norm])
        shares = np.array([target.number(each / each.sum(axis=2, keepdims=True)) for each in by_norm])
    return Beside(
        ranks=np.array([target.rank(each) for each in rows]),
        norms=norms,
        shares=shares,
        even=np.array([_even(target, each, heads) for each in layers]),
    )


def _even(target: Target, layer: Layer, heads: Sequence[int]) -> Float[np.ndarray, " head"]:
    """The number of heads that weigh all keys alike that they may look at."""
    allowed = np.array([allowed_rows(layer, head, target.queries).numpy() for head in heads], dtype=float)
    with np.errstate(invalid="ignore"):
        return target.number(allowed / allowed.sum(axis=2, keepdims=True))


def beside_controls(
    target: Target | Likeness,
    own: ByHead,
    runs: Iterable[Sequence[Layer]],
    heads: Sequence[int],
    went: Int[np.ndarray, " control"] | None,
) -> "tuple[Summary, ByHead | None]":
    """The numbers of control texts, which `runs` are, in few words, and what the query gave its key's token.

    `went` says where that token is in each control; None where no single token is asked for. Where it always
    went to a place that the query may not look at, nothing is said of it.
    """
    found, followed = list[ByHead](), list[ByHead]()
    for number, layers in enumerate(runs):
        found.append(numbers(target, layers, heads))
        if went is not None and isinstance(target, Target):
            followed.append(_on(target, layers, heads, int(went[number])))
    smaller = isinstance(target, Likeness)
    mean = _mean(np.array(followed)) if followed else np.array(np.nan)
    return summary(own, np.array(found), smaller), None if np.isnan(mean).all() else mean


def _on(target: Target, layers: Sequence[Layer], heads: Sequence[int], key: int) -> ByHead:
    """What the query gives to `key`; NaN where it may not look at it."""
    given = np.array([rows_of(each, heads, target.queries)[:, 0, key] for each in layers])
    seen = [[bool(allowed_rows(each, head, target.queries)[0, key]) for head in heads] for each in layers]
    return np.where(np.array(seen), given, np.nan)


@dataclass(frozen=True, eq=False)
class Summary:
    """The fields of `Controls` that are numbers."""

    mean: ByHead
    low: ByHead
    high: ByHead
    percentile: ByHead
    best: Float[np.ndarray, " control"]

    def described(self, how: str, seed: int, asked: int) -> Controls:
        return Controls(self.mean, self.low, self.high, self.percentile, self.best, how, seed, asked)


def summary(own: ByHead, controls: Float[np.ndarray, "control layer head"], smaller: bool) -> Summary:
    """Mean, middle nine tenths, percentile and the best head of each control text."""
    worst = np.inf if smaller else -np.inf
    filled = np.where(np.isnan(controls), worst, controls)
    best = filled.min(axis=(1, 2)) if smaller else filled.max(axis=(1, 2))
    low, high = (_quantile(controls, each) for each in (OUTER, 1 - OUTER))
    return Summary(_mean(controls), low, high, beyond(own, controls, smaller), best)


def _mean(values: Float[np.ndarray, "control layer head"]) -> ByHead:
    there = ~np.isnan(values)
    count = there.sum(axis=0)
    total = np.where(there, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _quantile(values: Float[np.ndarray, "control layer head"], share: float) -> ByHead:
    """The quantile of each head; NaN where one of its numbers is."""
    return np.asarray(np.quantile(values, share, axis=0))
