"""What a question costs in memory, held whole or computed in tiles, and how long a text may be for that."""

import math
from dataclasses import dataclass, replace

_GIGABYTE = 10**9
WORTH = _GIGABYTE  # bytes from which squares are worth avoiding
_STAGES = 9  # float64 copies of one head that are alive while it is recomputed and certified
_KERNEL = 12  # bytes that an eager kernel takes for a pair in every head: scores, weights and their mask
_RUN = 3 * 10**8  # of torch and the model's code themselves


@dataclass(frozen=True)
class Cost:
    """A question about `heads` heads in `layers` layers of a model that has `width` heads of `dim` each.

    `hidden` is how wide the stream is. With `biased` the model makes a term of queries by keys by itself.
    """

    queries: int
    keys: int
    layers: int
    heads: int
    width: int
    dim: int
    hidden: int
    biased: bool = False

    @property
    def pairs(self) -> int:
        return self.queries * self.keys

    @property
    def dense(self) -> int:
        """Bytes with all queries by all keys at once."""
        kept = 12 * self.layers * self.heads  # captured weights, and the same in float64
        return self.pairs * (_KERNEL * self.width + kept + 8 * _STAGES) + self._run

    @property
    def tiled(self) -> int:
        """Bytes in tiles: what grows with the text, and what a model makes of pairs by itself."""
        length = self.queries + self.keys
        captured = 4 * 4 * self.layers * self.width * self.dim * length // 2
        sample = 4 * 16 * self.keys * self.heads * self.layers
        own = 8 * self.width * self.pairs if self.biased else 0
        return captured + sample + own + self._run

    @property
    def _run(self) -> int:
        return _RUN + 4 * 16 * self.hidden * max(self.queries, self.keys)

    def longest(self, room: int, *, tiled: bool) -> int:
        """How many tokens would fit in `room` bytes, about."""
        low, high = 1, max(self.queries, self.keys)
        while low < high:
            middle = (low + high + 1) // 2
            share = middle / max(self.queries, self.keys)
            sized = replace(self, queries=math.ceil(self.queries * share), keys=math.ceil(self.keys * share))
            low, high = (
                (middle, high) if (sized.tiled if tiled else sized.dense) <= room else (low, middle - 1)
            )
        return low


def gigabytes(size: float) -> str:
    """`0.4 GB`, `14 GB`, `6,900 GB`."""
    amount = size / _GIGABYTE
    return f"{amount:.1f} GB" if amount < 10 else f"{amount:,.0f} GB"
