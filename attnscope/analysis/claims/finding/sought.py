"""What heads are ranked by, as functions of weights: one pair, a pattern of keys, likeness to another head.

Each is a target that scores one head's weights, and says which rank its keys have. A row without any allowed
key is NaN and counts for nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.analysis.claims.comparison.difference import jensen_shannon
from attnscope.analysis.claims.controls import is_punctuation
from attnscope.analysis.scores.sorts import alike, is_picture
from attnscope.results import Pattern
from attnscope.tokens import Patches, Tokens

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
        return _mean(np.where(self.own, rows, 0.0).sum(axis=2) + 0.0 * rows.sum(axis=2))

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
        return _mean(np.where(self.own, np.where(count > 0, given, np.nan)[:, None], 0.0).sum(axis=2))

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
        return _mean(1.0 + (rows > strongest).sum(axis=2) + 0.0 * rows.sum(axis=2))


def _mean(values: Float[np.ndarray, "head row"]) -> Numbers:
    there = ~np.isnan(values)
    count = there.sum(axis=1)
    total = np.where(there, values, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


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
    beside = in_rows(tokens)
    makes: dict[Pattern, Callable[[], Bool[np.ndarray, "query key"]]] = {
        Pattern.PREVIOUS: lambda: (behind == -1) if beside is None else beside == -1,
        Pattern.NEXT: lambda: (behind == 1) if beside is None else beside == 1,
        Pattern.SELF: lambda: behind == 0,
        Pattern.FIRST: lambda: np.broadcast_to(np.arange(len(keys)) == 0, behind.shape),
        Pattern.SAME: lambda: same & (behind != 0) & words,
        # the token behind an earlier one of the query's own: its place is at most the query's
        Pattern.INDUCTION: lambda: followed & (behind <= 0) & words,
        Pattern.PUNCTUATION: lambda: np.broadcast_to(_punctuation(keys) & ~special, behind.shape),
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


def _punctuation(tokens: Tokens) -> Bool[np.ndarray, " key"]:
    sensed = {place for stretch in tokens.stretches for place in stretch.positions}
    return np.array([i not in sensed and is_punctuation(token) for i, token in enumerate(tokens.items)])


def divergence(rows: Weights, given: Float[np.ndarray, "query key"]) -> Numbers:
    """Jensen-Shannon divergence of each head's rows from those of a `given` head, 0 to ln 2 nats (Lin 1991).

    The mean over the queries that have a key in both. What a sink takes of a row counts as one more key.
    """
    other = _with_rest(given)
    return _mean(np.stack([jensen_shannon(_with_rest(each), other) for each in rows]))


def _with_rest(rows: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query more"]:
    rest = np.clip(1.0 - rows.sum(axis=1, keepdims=True), 0.0, None)
    return np.concatenate([rows, rest], axis=1)
