"""What heads are ranked by: a pair, a pattern of keys, likeness to a head; each beside its control texts."""

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
    """Keys of some queries: the number of a head is the mean weight on them, over the queries.

    `own` is True where a key of one of the `queries` is meant; each has one. Of one pair it is one entry.
    """

    queries: tuple[int, ...]
    own: Bool[np.ndarray, "row key"]

    @classmethod
    def of(cls, keys: Bool[np.ndarray, "query key"]) -> "Target":
        """Of the keys of every query, those queries that have some."""
        queries = np.flatnonzero(keys.any(axis=1))
        return cls(tuple(queries.tolist()), keys[queries])

    @property
    def links(self) -> Int[np.ndarray, "link 2"]:
        """Every query and key that are meant."""
        row, key = np.nonzero(self.own)
        return np.stack([np.array(self.queries, dtype=int)[row], key], axis=1)

    def number(self, rows: Float[np.ndarray, "head row key"]) -> Numbers:
        """The number of each head from the rows of `queries`; NaN where none of them has a key."""
        return _mean(np.where(self.own, rows, 0.0).sum(axis=2) + 0.0 * rows.sum(axis=2), axis=1)

    def elsewhere(
        self,
        rows: Float[np.ndarray, "head row key"],
        visible: Bool[np.ndarray, "row key"],
        queries: Sequence[int],
    ) -> Numbers:
        """What other queries give to the same keys: the mean over those for which they are not meant.

        `visible` says which may look at them; NaN where none may.
        """
        others = self.others(visible, queries)
        count = others.sum(axis=0)
        given = np.where(others & ~np.isnan(rows), rows, 0.0).sum(axis=1) / np.maximum(count, 1)
        return _mean(np.where(self.own, np.where(count > 0, given, np.nan)[:, None], 0.0).sum(axis=2), axis=1)

    def others(
        self, visible: Bool[np.ndarray, "row key"], queries: Sequence[int]
    ) -> Bool[np.ndarray, "row key"]:
        """Which of `queries` may look at a key that is not meant of them."""
        others, place = visible.copy(), {query: i for i, query in enumerate(queries)}
        others[[place[query] for query in self.queries]] &= ~self.own
        return others

    def rank(self, rows: Float[np.ndarray, "head row key"]) -> Numbers:
        """Which of a query's keys the strongest one meant is, 1 for the first: the mean over queries."""
        strongest = np.where(self.own, rows, -np.inf).max(axis=2, keepdims=True)
        return _mean(1.0 + (rows > strongest).sum(axis=2) + 0.0 * rows.sum(axis=2), axis=1)


@dataclass(frozen=True, eq=False)
class Likeness:
    """The divergence of every head from one: `layer` is its place among the layers."""

    layer: int
    head: int


def pair(query: int, key: int, keys: int) -> Target:
    """One query and one key."""
    return Target((query,), np.arange(keys)[None] == key)


def pattern_keys(pattern: Pattern, tokens: Tokens, keys: Tokens) -> Bool[np.ndarray, "query key"]:
    """Which keys of each query are those of `pattern`; nothing is said of whether it may see them.

    But for special tokens, punctuation and the first key, both sides must be the same tokens. In a picture
    the previous one is the patch to the left, the next one that to the right.
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
        # the token behind an earlier one of the query's own: its place is at most the query's
        Pattern.INDUCTION: lambda: followed & (behind <= 0) & words,
        Pattern.PUNCTUATION: lambda: np.broadcast_to(marks & ~special, behind.shape),
        Pattern.SPECIAL: lambda: np.broadcast_to(special, behind.shape),
    }
    return np.asarray(makes[pattern]())


def in_rows(tokens: Tokens) -> Int[np.ndarray, "query key"] | None:
    """How many columns to the right of a patch another one of its row stands; None unless all are patches.

    What is in another row, or no patch, is as far away as no patch is.
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
    """Jensen-Shannon divergence of each head's rows from those of a `given` head, 0 to ln 2 nats (Lin 1991).

    The mean over the queries that have a key in both. What a sink takes of a row counts as one more key.
    """
    other = _with_rest(given)
    return _mean(np.stack([jensen_shannon(_with_rest(each), other) for each in rows]), axis=1)


def _with_rest(rows: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query more"]:
    rest = np.clip(1.0 - rows.sum(axis=1, keepdims=True), 0.0, None)
    return np.concatenate([rows, rest], axis=1)


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
    """Rank, weight by norm, its share of the row, and what even attention and the other queries would have.

    As `Finding` calls them, each None where it has no meaning. What a key gives itself is no other query's
    weight, unless keys are of the other side of two (`crosses`). `sampled` is how many queries `elsewhere` is
    of where these are not all others, 0 where they are.
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
    """The numbers of control texts, which `runs` are, in few words; what stayed with the place, and the word.

    `away` is where the tokens of the one key that is asked for stand in each control, and in which of these
    another token than in the text stands in their place.
    These two are means over the controls that have another word at the key: what the query gave to the place
    of the key, and what to the key's own token. None where no single key is asked for, or it never changes;
    where its token always went to places that the query may not look at, nothing is said of that.
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


def _mean(values: Float[np.ndarray, "..."], axis: int = 0) -> Float[np.ndarray, "..."]:
    """The mean along `axis` of the values that are there, NaN where there is none."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
