"""Every head by one number, and the same number of control texts beside it.

The best of many heads is a maximum: it is held against the best head of every control text as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attnscope.analysis.claims.controls import ControlTexts
from attnscope.analysis.claims.finding.rows import AnyRows, Layer, Lens, check_numbers
from attnscope.analysis.claims.finding.sought import Likeness, Numbers, Target, divergence
from attnscope.results import Contents, Controls
from attnscope.results.claims.ranking import STEADIEST, beyond
from attnscope.tiles.call import LongCall

ByHead = Float[np.ndarray, "layer head"]
LeftOut = Bool[np.ndarray, "layer head"] | None
_OTHERS = 16  # queries of a text that is read in rows, which stand for all others
OUTER = 0.05  # share of the controls that `low` and `high` leave out at either end


def numbers(
    target: Target | Likeness,
    layers: Sequence[AnyRows],
    heads: Sequence[int],
    seen: Lens,
    left_out: LeftOut = None,
) -> ByHead:
    """The number of every head in one text; NaN for those that are `left_out`, and the one likened to."""
    found = _every_number(target, layers, heads, seen)
    return found if left_out is None else np.where(left_out, np.nan, found)


def _every_number(
    target: Target | Likeness, layers: Sequence[AnyRows], heads: Sequence[int], seen: Lens
) -> ByHead:
    if isinstance(target, Target):
        return np.array([target.number(seen.rows(each, heads, target.queries)) for each in layers])
    given = seen.rows(layers[target.layer], [target.head])[0]
    found = np.array([divergence(seen.rows(each, heads), given) for each in layers])
    if target.head in heads:
        found[target.layer, list(heads).index(target.head)] = np.nan
    return found


@dataclass(frozen=True, eq=False)
class Beside:
    """What stands beside the number of every head in the text itself; None where it has no meaning.

    `sampled` is how many queries `elsewhere` is of where these are not all others, 0 where they are.
    """

    ranks: ByHead | None = None
    norms: ByHead | None = None
    shares: ByHead | None = None
    even: ByHead | None = None
    elsewhere: ByHead | None = None
    sampled: int = 0


def beside(
    target: Target | Likeness,
    layers: Sequence[Layer],
    heads: Sequence[int],
    seen: Lens,
    *,
    crosses: bool = False,
) -> Beside:
    """Rank, weight by norm, its share of the row, and what even attention and the other queries would have.

    What a key gives itself is no other query's weight, unless keys are of the other side of two (`crosses`).
    """
    if isinstance(target, Likeness):
        return Beside()
    norms, shares = list[Numbers](), list[Numbers]()
    for each in layers:
        if (found := seen.moved(each, heads, target.queries)) is None:
            break
        by_norm, whole = found
        norms.append(target.number(by_norm))
        with np.errstate(invalid="ignore", divide="ignore"):
            shares.append(target.number(by_norm / whole[..., None]))
    known = len(norms) == len(layers)
    count = len(seen.queries)
    some = _OTHERS if any(isinstance(each, LongCall) for each in layers) else count
    spaced = np.linspace(0, count - 1, min(count, some)).astype(int)
    queries = sorted({*target.queries, *spaced.tolist()})

    def visible(layer: Layer) -> Bool[np.ndarray, "row key"]:
        there = seen.visible(layer, heads, queries)
        return there if crosses else there & (np.array(queries)[:, None] != np.arange(there.shape[1]))

    sampled = 0
    if len(queries) < count:
        others = target.others(visible(layers[0]), queries)[:, target.own.any(axis=0)]
        sampled = int(others.sum(axis=0).max())
    return Beside(
        ranks=np.array([target.rank(seen.rows(each, heads, target.queries)) for each in layers]),
        norms=np.array(norms) if known else None,
        shares=np.array(shares) if known else None,
        even=np.array([target.number(seen.even(each, heads, target.queries)) for each in layers]),
        elsewhere=np.array(
            [target.elsewhere(seen.rows(each, heads, queries), visible(each), queries) for each in layers]
        ),
        sampled=sampled,
    )


@dataclass(frozen=True, eq=False)
class Away:
    """Where the tokens of the one key that is asked for stand in each control.

    `changed` says in which of these another token than in the text stands in their place.
    """

    went: Sequence[Sequence[int]]
    changed: Bool[np.ndarray, " control"]


def beside_controls(
    target: Target | Likeness,
    own: ByHead,
    runs: Iterable[Sequence[AnyRows]],
    heads: Sequence[int],
    seen: Lens,
    away: Away | None,
    left_out: LeftOut = None,
    wider: Float[np.ndarray, " control"] | None = None,
) -> "tuple[Summary, ByHead | None, ByHead | None]":
    """The numbers of control texts, which `runs` are, in few words; what stayed with the place, and the word.

    These two are means over the controls that have another word at the key: what the query gave to the place
    of the key, and what to the key's own token. None where no single key is asked for, or it never changes;
    where its token always went to places that the query may not look at, nothing is said of that.
    """
    found, followed = list[ByHead](), list[ByHead]()
    for number, layers in enumerate(runs):
        check_numbers(layers)
        found.append(numbers(target, layers, heads, seen, left_out))
        if away is not None and away.changed[number] and isinstance(target, Target):
            there = (seen.on_tokens(each, heads, target.queries[0], away.went[number]) for each in layers)
            followed.append(np.array(list(there)))
    every = np.array(found)
    stayed = _mean(every[away.changed]) if away is not None and away.changed.any() else None
    mean = _mean(np.array(followed)) if followed else np.array(np.nan)
    return (
        summary(own, every, isinstance(target, Likeness), wider),
        stayed,
        None if np.isnan(mean).all() else mean,
    )


@dataclass(frozen=True, eq=False)
class Summary:
    """The fields of `Controls` that are numbers."""

    mean: ByHead
    low: ByHead
    high: ByHead
    spread: ByHead
    below: ByHead
    best: Float[np.ndarray, " control"]
    best_excess: Float[np.ndarray, " control"]

    def described(self, texts: ControlTexts, name: str) -> Controls:
        """The summary with the controls themselves, which the model read as its input `name`."""
        ids = texts.ids if texts.of is Contents.TEXT else texts.sources
        numbers = (self.mean, self.low, self.high, self.spread, self.below)
        return Controls(
            *numbers, self.best, self.best_excess, texts.how, texts.seed, texts.wanted, texts.of, ids, name
        )


def summary(
    own: ByHead,
    controls: Float[np.ndarray, "control layer head"],
    smaller: bool,
    wider: Float[np.ndarray, " control"] | None = None,
) -> Summary:
    """Mean, middle nine tenths, spread, and the best head of each control by its number and its excess.

    `wider` says how many times as far as in each control chance moves numbers of the text itself. How far the
    controls lie from their mean is multiplied by it where the text is held against them, as permutation tests
    of samples of unequal variance are studentized (Chung and Romano 2013).
    """
    worst = np.inf if smaller else -np.inf
    filled = np.where(np.isnan(controls), worst, controls)
    best = filled.min(axis=(1, 2)) if smaller else filled.max(axis=(1, 2))
    low, high = (np.asarray(np.quantile(controls, each, axis=0)) for each in (OUTER, 1 - OUTER))
    mean, as_own = _mean(controls), controls
    if wider is not None:
        as_own = mean + (controls - mean) * wider[:, None, None]
    clear = best_excess(np.concatenate([own[None], as_own]), smaller)[1:]
    return Summary(mean, low, high, spread(as_own), beyond(own, controls, smaller), best, clear)


def spread(values: Float[np.ndarray, "control layer head"]) -> ByHead:
    """The standard deviation of each head's numbers, over those that are there; NaN where none is."""
    apart = np.where(np.isnan(values), np.nan, values - _mean(values)) ** 2
    return np.asarray(np.sqrt(_mean(apart)))


def best_excess(texts: Float[np.ndarray, "text layer head"], smaller: bool) -> Float[np.ndarray, " text"]:
    """How far, in each text, the head that does so most stands clear of its own others, in their spread.

    The first is the text itself, held against its controls, and each control is held against the text and
    the other controls: the largest of all heads, and so the distribution under which the best of many is
    judged (Westfall and Young 1993). Minus infinity where there is nothing to hold it against.
    """
    centred = np.where(np.isnan(texts), np.nan, texts - _mean(texts))
    there = ~np.isnan(centred)
    own = np.where(there, centred, 0.0)
    others = there.sum(axis=0) - there
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (own.sum(axis=0) - own) / others
        square = ((own**2).sum(axis=0) - own**2) / others
        apart = np.sqrt(np.maximum(square - mean**2, 0.0))
        clear = (centred - mean) / np.maximum(apart, STEADIEST)
    clear = -clear if smaller else clear
    return np.asarray(np.where(np.isnan(clear), -np.inf, clear).max(axis=(1, 2)))


def _mean(values: Float[np.ndarray, "control layer head"]) -> ByHead:
    there = ~np.isnan(values)
    count = there.sum(axis=0)
    total = np.where(there, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
