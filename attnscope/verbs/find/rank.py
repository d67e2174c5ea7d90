"""Scores that rank heads: weight on a pair or a pattern of keys, likeness to a head; control scores."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.analysis.controls import ControlTexts, is_punctuation, jensen_shannon
from attnscope.analysis.rows import AnyRows, Layer, Lens, check_numbers
from attnscope.analysis.scores.supplies import alike, is_picture
from attnscope.results import Contents, Pattern
from attnscope.results.claims.ranking import STEADIEST, beyond
from attnscope.tiles.tiling import LongCall
from attnscope.tokens import Patches, Tokens
from attnscope.verbs.find.result import Controls

Weights = Float[np.ndarray, "head query key"]
Numbers = Float[np.ndarray, " head"]


@dataclass(frozen=True, eq=False)
class Target:
    """Query-key links to score: a head's score is its weight on them per query, averaged over queries.

    `own` is True at the target keys of each of the `queries`; every row has at least one.
    """

    queries: tuple[int, ...]
    own: Bool[np.ndarray, "row key"]

    @classmethod
    def of(cls, keys: Bool[np.ndarray, "query key"]) -> "Target":
        """Make a target from a query-by-key mask, dropping queries without target keys."""
        queries = np.flatnonzero(keys.any(axis=1))
        return cls(tuple(queries.tolist()), keys[queries])

    @property
    def links(self) -> Int[np.ndarray, "link 2"]:
        """Query and key position of every target link."""
        row, key = np.nonzero(self.own)
        return np.stack([np.array(self.queries, dtype=int)[row], key], axis=1)

    def number(self, rows: Float[np.ndarray, "head row key"]) -> Numbers:
        """Score of each head from its rows of `queries`; NaN where all rows are NaN."""
        return _mean(np.where(self.own, rows, 0.0).sum(axis=2) + 0.0 * rows.sum(axis=2), axis=1)

    def elsewhere(
        self,
        rows: Float[np.ndarray, "head row key"],
        visible: Bool[np.ndarray, "row key"],
        queries: Sequence[int],
    ) -> Numbers:
        """Mean weight that other queries give to the target keys, those for which the key is no target.

        `visible` marks the keys that a query may look at; NaN where no other query may.
        """
        others = self.others(visible, queries)
        count = others.sum(axis=0)
        given = np.where(others & ~np.isnan(rows), rows, 0.0).sum(axis=1) / np.maximum(count, 1)
        return _mean(np.where(self.own, np.where(count > 0, given, np.nan)[:, None], 0.0).sum(axis=2), axis=1)

    def others(
        self, visible: Bool[np.ndarray, "row key"], queries: Sequence[int]
    ) -> Bool[np.ndarray, "row key"]:
        """True where one of `queries` may look at a key that is not its target."""
        others, place = visible.copy(), {query: i for i, query in enumerate(queries)}
        others[[place[query] for query in self.queries]] &= ~self.own
        return others

    def rank(self, rows: Float[np.ndarray, "head row key"]) -> Numbers:
        """Rank of the strongest target key in its row (1 is the largest weight), averaged over queries."""
        strongest = np.where(self.own, rows, -np.inf).max(axis=2, keepdims=True)
        return _mean(1.0 + (rows > strongest).sum(axis=2) + 0.0 * rows.sum(axis=2), axis=1)


@dataclass(frozen=True, eq=False)
class Likeness:
    """Target of ranking by likeness: the head to compare with; `layer` indexes the chosen layers."""

    layer: int
    head: int


def pair(query: int, key: int, keys: int) -> Target:
    """Target with a single query-key link."""
    return Target((query,), np.arange(keys)[None] == key)


def pattern_keys(pattern: Pattern, tokens: Tokens, keys: Tokens) -> Bool[np.ndarray, "query key"]:
    """True at the keys of each query that match `pattern`, masked or not.

    But for special tokens, punctuation and the first key, queries and keys must be the same tokens. In a
    picture `previous` is the patch to the left, `next` the patch to the right.
    """
    behind = np.arange(len(keys))[None, :] - np.arange(len(tokens))[:, None]
    same = alike(tokens, keys).numpy()
    followed = np.concatenate([np.zeros((len(tokens), 1), dtype=bool), same[:, :-1]], axis=1)
    special = np.array([token.special for token in keys.items])
    words = ~np.array([token.special for token in tokens.items])[:, None] & ~special
    beside, sensed = in_rows(tokens), {place for each in keys.stretches for place in each.positions}
    marks = np.array([i not in sensed and is_punctuation(each) for i, each in enumerate(keys.items)])
    makes: dict[Pattern, Callable[[], Bool[np.ndarray, "query key"]]] = {
        Pattern.PREVIOUS: lambda: (behind == -1) if beside is None else beside == -1,
        Pattern.NEXT: lambda: (behind == 1) if beside is None else beside == 1,
        Pattern.SELF: lambda: behind == 0,
        Pattern.FIRST: lambda: np.broadcast_to(np.arange(len(keys)) == 0, behind.shape),
        Pattern.SAME: lambda: same & (behind != 0) & words,
        # the token after an earlier copy of the query's token, not after the query
        Pattern.INDUCTION: lambda: followed & (behind <= 0) & words,
        Pattern.PUNCTUATION: lambda: np.broadcast_to(marks & ~special, behind.shape),
        Pattern.SPECIAL: lambda: np.broadcast_to(special, behind.shape),
    }
    return np.asarray(makes[pattern]())


def in_rows(tokens: Tokens) -> Int[np.ndarray, "query key"] | None:
    """Column offset from each patch to every other patch of its row; None where the tokens are no picture.

    Other rows and tokens that are no patches get an offset larger than any in a row.
    """
    if not is_picture(tokens):
        return None
    patches, far = tokens.stretches[0], len(tokens) + 1
    assert isinstance(patches, Patches), "a picture has patches"
    row, column = np.full(len(tokens), -1), np.full(len(tokens), -1)
    for number, place in enumerate(patches.positions):
        if place >= 0:
            row[place], column[place] = divmod(number, patches.columns)
    together = (row[:, None] == row) & (row >= 0)
    return np.where(together, column[None, :] - column[:, None], far)


def divergence(rows: Weights, given: Float[np.ndarray, "query key"]) -> Numbers:
    """Mean Jensen-Shannon divergence of each head's rows from a `given` head's, 0 to ln 2 nats (Lin 1991).

    Averaged over queries with a key in both. Mass missing from a row (a sink's) counts as one more key.
    """
    other = _with_rest(given)
    return _mean(np.stack([jensen_shannon(_with_rest(each), other) for each in rows]), axis=1)


def _with_rest(rows: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query more"]:
    rest = np.clip(1.0 - rows.sum(axis=1, keepdims=True), 0.0, None)
    return np.concatenate([rows, rest], axis=1)


ByHead = Float[np.ndarray, "layer head"]
LeftOut = Bool[np.ndarray, "layer head"] | None
_OTHERS = 16  # sampled queries that stand for all others in a long text
OUTER = 0.05  # share of the controls that `low` and `high` leave out at either end


def numbers(
    target: Target | Likeness,
    layers: Sequence[AnyRows],
    heads: Sequence[int],
    seen: Lens,
    left_out: LeftOut = None,
) -> ByHead:
    """Score of every head in one text; NaN for heads in `left_out` and for the head compared with."""
    if isinstance(target, Target):
        found = np.array([target.number(seen.rows(each, heads, target.queries)) for each in layers])
    else:
        given = seen.rows(layers[target.layer], [target.head])[0]
        found = np.array([divergence(seen.rows(each, heads), given) for each in layers])
        if target.head in heads:
            found[target.layer, list(heads).index(target.head)] = np.nan
    return found if left_out is None else np.where(left_out, np.nan, found)


def beside(
    target: Target | Likeness,
    layers: Sequence[Layer],
    heads: Sequence[int],
    seen: Lens,
    *,
    crosses: bool = False,
) -> dict[str, Any]:
    """Comparison numbers by field of `Finding`: rank, norm, share of norms, even attention, other queries.

    None where a number has no meaning. A token's weight on itself is left out of `elsewhere`, except in
    cross-attention (`crosses`). `sampled` is the number of queries behind `elsewhere`, 0 where all others
    were read.
    """
    if isinstance(target, Likeness):
        return dict.fromkeys(("ranks", "norms", "shares", "even_attention", "elsewhere")) | {"sampled": 0}
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
    return {
        "ranks": np.array([target.rank(seen.rows(each, heads, target.queries)) for each in layers]),
        "norms": np.array(norms) if known else None,
        "shares": np.array(shares) if known else None,
        "even_attention": np.array(
            [target.number(seen.even(each, heads, target.queries)) for each in layers]
        ),
        "elsewhere": np.array(
            [target.elsewhere(seen.rows(each, heads, queries), visible(each), queries) for each in layers]
        ),
        "sampled": sampled,
    }


def beside_controls(
    target: Target | Likeness,
    own: ByHead,
    runs: Iterable[Sequence[AnyRows]],
    heads: Sequence[int],
    seen: Lens,
    away: tuple[Sequence[Sequence[int]], Bool[np.ndarray, " control"]] | None,
    left_out: LeftOut = None,
    wider: Float[np.ndarray, " control"] | None = None,
) -> "tuple[Summary, ByHead | None, ByHead | None]":
    """Summary of the scores in control texts (`runs`); mean weight on the key's position and on its token.

    `away` holds where the key's own tokens stand in each control, and in which controls another token stands
    at the key's position. Both means are over these controls. They are None where there is no single key or
    it never changes; the second also where its token always went to positions that the query cannot see.
    """
    found, followed = list[ByHead](), list[ByHead]()
    went, changed = away or ((), np.zeros(0, dtype=bool))
    for number, layers in enumerate(runs):
        check_numbers(layers)
        found.append(numbers(target, layers, heads, seen, left_out))
        if away is not None and changed[number] and isinstance(target, Target):
            there = (seen.on_tokens(each, heads, target.queries[0], went[number]) for each in layers)
            followed.append(np.array(list(there)))
    every = np.array(found)
    stayed = _mean(every[changed]) if changed.any() else None
    mean = _mean(np.array(followed)) if followed else np.array(np.nan)
    return (
        summary(own, every, isinstance(target, Likeness), wider),
        stayed,
        None if np.isnan(mean).all() else mean,
    )


@dataclass(frozen=True, eq=False)
class Summary:
    """The numeric fields of `Controls`."""

    mean: ByHead
    low: ByHead
    high: ByHead
    spread: ByHead
    below: ByHead
    best: Float[np.ndarray, " control"]
    best_excess: Float[np.ndarray, " control"]

    def described(self, texts: ControlTexts, name: str) -> Controls:
        """Make `Controls`: this summary and the control texts, read as the model's input `name`."""
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
    """Summarise control scores: mean, 5 and 95 % quantiles, spread, each control's best score and excess.

    `wider` says how much farther chance moves scores in the text than in each control. Deviations of
    controls from their mean are multiplied by it where the text is compared with them, as permutation tests
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
    """Standard deviation of each head's scores over the controls, ignoring NaN; NaN where all are NaN."""
    apart = np.where(np.isnan(values), np.nan, values - _mean(values)) ** 2
    return np.asarray(np.sqrt(_mean(apart)))


def best_excess(texts: Float[np.ndarray, "text layer head"], smaller: bool) -> Float[np.ndarray, " text"]:
    """Largest z-score of any head in each text, against the same head's scores in all other texts.

    The first text is the real one, the rest are controls: their maxima over heads are the null distribution
    of the best head (max-T, Westfall and Young 1993). Minus infinity where no z-score exists.
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


def _mean(values: Float[np.ndarray, "..."], axis: int = 0) -> Float[np.ndarray, "..."]:
    """Mean along `axis`, ignoring NaN; NaN where all values are NaN."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
