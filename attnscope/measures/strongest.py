"""Where the strongest key of a query stands from it, and for how many queries that is one and the same.

Voita et al. 2019 call a head positional where it is for nine of ten. Of equal weights the first key counts,
of equally frequent offsets the shortest.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.tile import Tile

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Strongest = Float[Tensor, "2 query"]


def strongest(tile: Tile) -> Strongest:
    """The largest weight of each query, and how far behind the query its key stands."""
    import torch

    weights = tile.weights.amax(-1)  # NaN for a query without a key
    place = (tile.weights == weights[:, None]).int().argmax(-1)  # the first of several
    offsets = tile.offsets.gather(1, place[:, None])[:, 0].to(weights.dtype)
    return torch.stack([weights, offsets])


def stronger(one: Strongest, other: Strongest) -> Strongest:
    """Of two tiles of a row that with the larger weight; of equal ones the first in the text."""
    larger = (other[0] > one[0]) | ((other[0] == one[0]) & (other[1] < one[1]))
    return one.where(~larger, other)


def share(rows: Strongest) -> float:
    """The share of queries, 0 to 1, whose strongest key stands at the most frequent offset."""
    return _most(rows)[0]


def offset(rows: Strongest) -> float:
    """The most frequent offset in tokens, negative before the query."""
    return _most(rows)[1]


def _most(rows: Strongest) -> tuple[float, float]:
    counts = Counter(rows[1][~rows[0].isnan()].tolist())
    if not counts:
        return float("nan"), float("nan")
    most = max(counts.values())
    best = min((abs(each), each) for each, count in counts.items() if count == most)[1]
    return most / counts.total(), best
