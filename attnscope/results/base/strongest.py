"""Which link of a head is called its strongest, and what is passed over for it.

Special tokens, the query itself, and a token that alone takes more than half of the head's weight, as the
first of a text does in many heads, take weight from nearly every query and say little of the text. One head
decides for itself, so that it has the same link alone, in a grid of heads and on a page.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attnscope.tokens import Tokens

MOST = 0.5  # of a head's weight: a token that takes more is passed over
FEWEST = 5  # queries of which that can be said

Weights = Float[np.ndarray, "query key"]
Pairs = Bool[np.ndarray, "query key"]


@dataclass(frozen=True, eq=False)
class Rest:
    """What of one head is left to have its strongest link, and what is passed over.

    `special` are the pairs on a special token, `sink` is the key that takes more than half of the weight, -1
    without one, and `own` are the pairs of a token with itself. `pairs` are all others of queries that are
    not special; where those are none, every pair of a query that has a choice, and then `whole` is true.
    """

    weights: Weights
    pairs: Pairs
    special: Pairs
    sink: int
    own: Pairs
    whole: bool

    @property
    def parts(self) -> tuple[Pairs, Pairs, Pairs]:
        """What is passed over, each pair once: on special tokens, on the sink, on the query itself."""
        on_sink = np.zeros(self.pairs.shape, dtype=bool)
        if self.sink >= 0:
            on_sink[:, self.sink] = True
        return self.special, on_sink, self.own & ~self.special & ~on_sink

    def share(self, pairs: Pairs) -> float:
        """The share of the weight on some pairs, mean over the queries that have a key; NaN without any."""
        answered = ~np.isnan(self.weights).any(axis=1)
        return float((self.weights * pairs)[answered].sum(axis=1).mean()) if answered.any() else float("nan")

    @property
    def aside(self) -> float:
        """The share of the weight that is passed over."""
        return sum(self.share(each) for each in self.parts) if not self.whole else 0.0 * self.share(self.own)

    @property
    def strongest(self) -> tuple[int, int]:
        """The query and the key of the largest weight of the rest; (-1, -1) where no query has a key."""
        if not self.pairs.any():
            return -1, -1
        query, key = np.unravel_index(np.where(self.pairs, self.weights, -1.0).argmax(), self.pairs.shape)
        return int(query), int(key)


def rest_of(weights: Weights, queries: Tokens, keys: Tokens, *, crosses: bool, every: bool = False) -> Rest:
    """What is left of a head; with `every` all pairs of queries that have a choice, special tokens too.

    A weight of exactly 0 is that of a masked pair. A query that sees one key alone gives it 1 in every head.
    """
    there = weights > 0
    asking, asked = (
        np.array([token.special for token in side.items], dtype=bool) for side in (queries, keys)
    )
    own = np.zeros(there.shape, dtype=bool)
    if not crosses:
        own = np.array(queries.positions)[:, None] == np.array(keys.positions)
    special = np.broadcast_to(asked, there.shape)
    rows = weights[~np.isnan(weights).any(axis=1)]
    sink = sink_of(np.where(asked, 0.0, rows.sum(axis=0) / max(len(rows), 1)), len(rows))
    rest = Rest(weights, there, special, sink, own, whole=False)
    free = there & (there.sum(axis=1, keepdims=True) > 1)
    left = free & ~asking[:, None] & ~np.logical_or.reduce(rest.parts)
    whole = every or not left.any()
    pairs = left if not whole else free if free.any() else there
    return Rest(weights, pairs, special, -1 if whole else sink, own, whole)


def sink_of(shares: Float[np.ndarray, " key"], queries: int) -> int:
    """The key that takes more than half of the weight of so many queries; -1 without one."""
    key = int(np.nan_to_num(shares).argmax())
    return key if queries >= FEWEST and shares[key] > MOST else -1
