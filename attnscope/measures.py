"""Measures of one head: pure maths on weights, one number per head.

A measure sees a tile of true weights (rows sum to 1) and returns one contribution per row. Contributions
of the tiles of a row are combined (added, or the largest taken), then finished over the rows: so the same
function serves a 10-token head in one tile and a long one in many. A new measure is one function, one
line in `MEASURES` and one test.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Tile:
    """A block of one head's weights with the token positions of its rows and columns."""

    weights: Float[Tensor, "query key"]
    queries: Int[Tensor, " query"]
    keys: Int[Tensor, " key"]


Rows = Float[Tensor, " query"]


def entropy(tile: Tile) -> Rows:
    """Entropy of a query's weights in nats: 0 looks at one key, ln(keys) at all alike (Clark et al. 2019)."""
    each: Tensor = torch.special.entr(tile.weights)
    return each.sum(-1)


def confidence(tile: Tile) -> Rows:
    """Largest weight of a query, 0 to 1 (Voita et al. 2019)."""
    return tile.weights.amax(-1)


@dataclass(frozen=True)
class Measure:
    """How a per-row contribution becomes one number per head: the mean over the rows that have a key."""

    name: str
    unit: str
    contribution: Callable[[Tile], Rows]
    combine: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, tiles: Iterable[Tile]) -> float:
        """The measure of one head whose `tiles` share the same rows; NaN when no row has a key."""
        return float(reduce(self.combine, map(self.contribution, tiles)).nanmean())


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("entropy", "nats", entropy, torch.add),
        Measure("confidence", "weight", confidence, torch.maximum),
    )
}


def whole(weights: Float[Tensor, "query key"]) -> list[Tile]:
    """A dense head as its one tile."""
    queries, keys = (torch.arange(length) for length in weights.shape)
    return [Tile(weights, queries, keys)]
