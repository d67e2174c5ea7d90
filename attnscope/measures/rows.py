"""Measures that are made row by row: a tile in, one contribution for each of its queries out.

Contributions of the tiles of a row are added up, or the largest is taken. A row that is NaN does not count.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.measure import OnKeys, weight_on
from attnscope.measures.tile import Tile, known

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Rows = Float[Tensor, " query"]
Strongest = Float[Tensor, "2 query"]


def entropy(tile: Tile) -> Rows:
    """Entropy of a query's weights in nats: 0 looks at one key, ln(keys) at all alike (Clark et al. 2019)."""
    import torch

    each: Tensor = torch.special.entr(tile.weights)
    return each.sum(-1)


def evenness(tile: Tile) -> Rows:
    """Entropy over the largest that it could be, ln of the keys that the query may see; 0 to 1.

    Pielou's evenness (1966). A query that sees one key has no choice, and does not count.
    """
    visible = known(tile.visible)
    return tile.once(entropy) / visible.to(tile.weights.dtype).log().masked_fill(visible < 2, float("nan"))


def confidence(tile: Tile) -> Rows:
    """Largest weight of a query, 0 to 1 (Voita et al. 2019)."""
    return tile.weights.amax(-1)


def distance(tile: Tile) -> Rows:
    """|query - key| in tokens, weighted by attention (Vig and Belinkov 2019, there for decoders)."""
    return (tile.weights * tile.offsets.abs()).sum(-1)


def on_offset(offset: int) -> Callable[[Tile], OnKeys]:
    """The weight on the key `offset` tokens behind the query (Clark et al. 2019, there of all queries)."""

    def mass(tile: Tile) -> OnKeys:
        return weight_on(tile, tile.offsets == offset)

    return mass


def on_first(tile: Tile) -> OnKeys:
    """The weight on the first key, of the first query too (Xiao et al. 2023 leave that one out)."""
    return weight_on(tile, tile.keys[None] == 0)


def on_sink(tile: Tile) -> OnKeys:
    """The weight on the first key of every query but the first (Xiao et al. 2023)."""
    return on_first(tile).masked_fill(tile.queries == 0, float("nan"))


def on_special(tile: Tile) -> OnKeys:
    """The weight on special tokens, [CLS] and [SEP] or their likes (Clark et al. 2019)."""
    return weight_on(tile, known(tile.special)[None])


def on_punctuation(tile: Tile) -> OnKeys:
    """The weight on tokens that are punctuation alone (Clark et al. 2019, there of "." and ",")."""
    return weight_on(tile, known(tile.punctuation)[None])


def on_alike(tile: Tile) -> OnKeys:
    """The weight on other places of the query's own token (Olsson et al. 2022)."""
    return weight_on(tile, known(tile.alike) & (tile.offsets != 0))


def moved(tile: Tile) -> Rows:
    """Weight x ||f(x)|| added up over the keys, in units of the hidden state (Kobayashi et al. 2020)."""
    return (tile.weights * known(tile.norms)).sum(-1)


def moved_norms(
    values: Float[Tensor, "kv_head key value_dim"], projection: Float[Tensor, "head value_dim hidden"]
) -> Float[Tensor, "head key"]:
    """||f(x)|| of every key in each head, in units of the hidden state, in float64.

    A weight says how much of a key's value is taken, not how large that is: weight times ||f(x)|| is what
    arrives (Kobayashi et al. 2020, Attention is Not Only a Weight). f is the value, its offset included,
    times the head's part of the output projection, whose own offset belongs to no key and is left out. Heads
    that share a value head read the same values. Never more than one head's `key hidden` at once.
    """
    import torch

    from attnscope.reference import exact

    shared = len(projection) // len(values)
    norms = (
        (exact(values[head // shared]) @ exact(matrix)).norm(dim=-1) for head, matrix in enumerate(projection)
    )
    return torch.stack(list(norms))


def strongest(tile: Tile) -> Strongest:
    """The largest weight of each query, and how far behind the query its key stands; the first of equals."""
    import torch

    weights = tile.weights.amax(-1)  # NaN for a query without a key
    place = (tile.weights == weights[:, None]).int().argmax(-1)  # the first of several
    offsets = tile.offsets.gather(1, place[:, None])[:, 0].to(weights.dtype)
    return torch.stack([weights, offsets])


def stronger(one: Strongest, other: Strongest) -> Strongest:
    """Of two tiles of a row that with the larger weight; of equal ones the first in the text."""
    larger = (other[0] > one[0]) | ((other[0] == one[0]) & (other[1] < one[1]))
    return one.where(~larger, other)


def share_at_one_offset(rows: Strongest) -> float:
    """The share of queries, 0 to 1, whose strongest key stands at the most frequent offset.

    Voita et al. 2019 call a head positional where that is nine of ten.
    """
    return _most_frequent(rows)[0]


def most_frequent_offset(rows: Strongest) -> float:
    """The most frequent offset in tokens, negative before the query; of several the shortest."""
    return _most_frequent(rows)[1]


def _most_frequent(rows: Strongest) -> tuple[float, float]:
    counts = Counter(rows[1][~rows[0].isnan()].tolist())
    if not counts:
        return float("nan"), float("nan")
    most = max(counts.values())
    best = min((abs(offset), offset) for offset, count in counts.items() if count == most)[1]
    return most / counts.total(), best
