"""Measures made row by row: each takes a tile and returns one contribution per query.

Contributions of the tiles of a row are added, or the largest is taken. NaN rows do not count. `pairs`
rank-correlates the distance of query and key with their score.

The pattern of a head (`features`, `classified`) is a column, a diagonal, both, blocks, or none of these.
Kovaleva et al. 2019 had people and then a network sort maps into such classes, without a formula. Here three
features decide, each relative to uniform weights of the same shape, so that 0 is uniform and 1 is the
largest possible:

    vertical   the largest mean weight of a column
    diagonal   the largest mean weight at one offset from -2 to +2, over the queries that have such a key
    block      the mean weight on the query's own text, where there are two

Both of the first two at `BESIDE` or more is "v+d"; else the first of the three at `ALONE` or more; else it
is mixed ("heterogeneous" there). The thresholds are ours.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.measure import OnKeys, Tile, known, weight_on

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Rows = Float[Tensor, " query"]
Strongest = Float[Tensor, "2 query"]
Pairs = Float[Tensor, "2 pair"]
_EQUAL = 2.0**-44  # of the largest: 256 roundings of float64, where one token is met at two places
CLASSES = ("mixed", "block", "diag", "v+d", "vert")
ALONE, BESIDE = 0.5, 0.25
ALL = 1 - 1e-6  # no even weights but all of them come so near
OFFSETS = range(-2, 3)
Features = Float[Tensor, " feature"]


def entropy(tile: Tile) -> Rows:
    """Entropy of each query's weights in nats: 0 for one key, ln(keys) for uniform (Clark et al. 2019)."""
    import torch

    each: Tensor = torch.special.entr(tile.weights)
    return each.sum(-1)


def evenness(tile: Tile) -> Rows:
    """Normalised entropy of each query, 0 to 1: entropy over ln of the number of keys it may attend to.

    Pielou's evenness (1966). A query that sees one key has no choice, and does not count.
    """
    visible = known(tile.visible)
    return tile.once(entropy) / visible.to(tile.weights.dtype).log().masked_fill(visible < 2, float("nan"))


def confidence(tile: Tile) -> Rows:
    """Largest weight of each query, 0 to 1 (Voita et al. 2019)."""
    return tile.weights.amax(-1)


def distance(tile: Tile) -> Rows:
    """Mean |query - key| of each query in tokens, weighted by attention (Vig and Belinkov 2019)."""
    return (tile.weights * tile.offsets.abs()).sum(-1)


def on_offset(offset: int) -> Callable[[Tile], OnKeys]:
    """A measure of the weight on the key `offset` after the query (Clark et al. 2019)."""

    def mass(tile: Tile) -> OnKeys:
        return weight_on(tile, tile.offsets == offset)

    return mass


def on_first(tile: Tile) -> OnKeys:
    """Weight on the first key, the first query included (Xiao et al. 2023 leave that one out)."""
    return weight_on(tile, tile.keys[None] == 0)


def on_sink(tile: Tile) -> OnKeys:
    """Weight on the first key of every query but the first (Xiao et al. 2023)."""
    return on_first(tile).masked_fill(tile.queries == 0, float("nan"))


def on_special(tile: Tile) -> OnKeys:
    """Weight on special tokens such as [CLS] and [SEP] (Clark et al. 2019)."""
    return weight_on(tile, known(tile.special)[None])


def on_punctuation(tile: Tile) -> OnKeys:
    """Weight on punctuation tokens (Clark et al. 2019, there of "." and ",")."""
    return weight_on(tile, known(tile.punctuation)[None])


def on_alike(tile: Tile) -> OnKeys:
    """Weight on other occurrences of the query's token (Olsson et al. 2022)."""
    return weight_on(tile, known(tile.alike) & (tile.offsets != 0))


def moved(tile: Tile) -> Rows:
    """Sum over keys of weight x ||f(x)||, in units of the hidden state (Kobayashi et al. 2020)."""
    return (tile.weights * known(tile.norms)).sum(-1)


def moved_norms(
    values: Float[Tensor, "kv_head key value_dim"], projection: Float[Tensor, "head value_dim hidden"]
) -> Float[Tensor, "head key"]:
    """||f(x)|| of every key in each head, in units of the hidden state, in float64.

    A weight says how much of a key's value is taken, not how large the value is: weight times ||f(x)|| is
    what arrives (Kobayashi et al. 2020, Attention is Not Only a Weight). f is the value with its bias, times
    the head's part of the output projection, without the projection's bias, which belongs to no key. Heads
    that share a value head share values. At most one head's `key hidden` matrix is in memory.
    """
    import torch

    from attnscope.reference import exact

    shared = len(projection) // len(values)
    norms = (
        (exact(values[head // shared]) @ exact(matrix)).norm(dim=-1) for head, matrix in enumerate(projection)
    )
    return torch.stack(list(norms))


def strongest(tile: Tile) -> Strongest:
    """The largest weight of each query, and the offset of its key (the first key of equals)."""
    import torch

    weights = tile.weights.amax(-1)  # NaN for a query without a key
    place = (tile.weights == weights[:, None]).int().argmax(-1)  # the first of several
    offsets = tile.offsets.gather(1, place[:, None])[:, 0].to(weights.dtype)
    return torch.stack([weights, offsets])


def stronger(one: Strongest, other: Strongest) -> Strongest:
    """Merges two tiles of the same rows: the larger weight, or of equals the first key in the text."""
    larger = (other[0] > one[0]) | ((other[0] == one[0]) & (other[1] < one[1]))
    return one.where(~larger, other)


def share_at_one_offset(rows: Strongest) -> float:
    """The share of queries, 0 to 1, whose strongest key is at the most frequent offset.

    Voita et al. 2019 call a head positional where that is nine of ten.
    """
    return _most_frequent(rows)[0]


def most_frequent_offset(rows: Strongest) -> float:
    """The most frequent offset of the strongest key, in tokens, negative before the query."""
    return _most_frequent(rows)[1]


def _most_frequent(rows: Strongest) -> tuple[float, float]:
    counts = Counter(rows[1][~rows[0].isnan()].tolist())
    if not counts:
        return float("nan"), float("nan")
    most = max(counts.values())
    best = min((abs(offset), offset) for offset, count in counts.items() if count == most)[1]
    return most / counts.total(), best


def pairs(tile: Tile) -> Pairs:
    """Cosine distance and scaled score of every allowed query-key pair."""
    import torch

    allowed, both = known(tile.allowed), (known(tile.distances), known(tile.scaled))
    everywhere = bool(allowed.all())
    return torch.stack([each.flatten() if everywhere else each[allowed] for each in both])


def more(one: Pairs, other: Float[Tensor, "2 other"]) -> Float[Tensor, "2 both"]:
    import torch

    return torch.cat([one, other], dim=1)


def rank_correlation(of: Pairs) -> float:
    """Spearman's rank correlation, -1 to 1; NaN where values are constant, missing or not finite."""
    if of.shape[1] == 0 or not of.isfinite().all():
        return float("nan")
    first, second = (_ranks(each) for each in of)
    size = float(first.norm() * second.norm())
    return float(first @ second) / size if size else float("nan")


def _ranks(values: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
    """Centred ranks; values equal up to rounding share their mean rank."""
    import numpy as np
    import torch

    plain = values.numpy()
    order = np.argsort(plain)  # torch takes four times as long
    ordered = plain[order]
    differs, ranks = np.diff(ordered) > _EQUAL * np.abs(plain).max(), np.empty(len(plain))
    if differs.all():
        ranks[order] = np.arange(len(plain))
    else:
        group = np.concatenate([[0], differs.cumsum()])
        counts = np.bincount(group)
        ranks[order] = (counts.cumsum() - (counts - 1) / 2)[group]
    return torch.from_numpy(ranks - ranks.mean())


def cosine_distances(
    queries: Float[Tensor, "query dim"], keys: Float[Tensor, "key dim"]
) -> Float[Tensor, "query key"]:
    """1 - cosine of each query and key, 0 to 2; 1 for a zero vector."""
    tiny = 1e-300
    first, second = (each / each.norm(dim=-1, keepdim=True).clamp_min(tiny) for each in (queries, keys))
    distances: Tensor = 1 - first @ second.T
    return distances


def features(tile: Tile) -> Features:
    """Features for `classified`: largest column mean, mass within texts, sums at each offset, pair counts.

    Each stands first for the weights, then for evenly spread ones.
    """
    import torch

    from attnscope.reference import exact

    allowed, visible = known(tile.allowed), known(tile.visible)
    answered = ~tile.weights.isnan().any(-1) & (visible > 0)
    rows, beyond = answered.sum(), len(OFFSETS) // 2 + 1
    places = (tile.offsets.clamp(-beyond, beyond) + beyond).flatten()

    def at_offsets(pairs: Tensor) -> Tensor:
        return places.bincount(pairs.flatten(), 2 * beyond + 1)[1:-1]

    found = []
    for weights in (tile.weights, allowed / visible[:, None]):
        mine = exact(weights).where(answered[:, None], 0.0)
        block = mine.sum() if tile.together is None else (mine * tile.together).sum()
        ends = torch.stack([mine.sum(0).amax() / rows, block / rows])
        found += [ends, at_offsets(mine)]
    return torch.cat([*found, at_offsets(exact(answered[:, None].expand_as(allowed)))])


def both(one: Features, other: Features) -> Features:
    """Merges features of two tiles of the same rows: the larger column mean, all others added."""
    joined, size = one + other, 2 + len(OFFSETS)
    for place in (0, size):
        joined[place] = max(one[place], other[place])
    return joined


def classified(of: Features) -> float:
    """The index in `CLASSES` of the head's pattern; NaN for a head without rows."""
    size, last = 2 + len(OFFSETS), len(OFFSETS)
    real, even, counts = of[:size], of[size:-last], of[-last:]
    if real.isnan().any():
        return float("nan")
    vertical, block = (_over(float(real[i]), float(even[i])) for i in (0, 1))
    shifted = [
        _over(float(a / n), float(b / n))
        for a, b, n in zip(real[2:], even[2:], counts, strict=True)
        if n > 1  # one pair is no diagonal
    ]
    diagonal = max(shifted, default=0.0)
    if min(vertical, diagonal) >= BESIDE:
        return float(CLASSES.index("v+d"))
    reached = {"vert": vertical, "diag": diagonal, "block": block}
    return float(CLASSES.index(next((name for name, each in reached.items() if each >= ALONE), "mixed")))


def _over(found: float, even: float) -> float:
    """The excess of a feature over its value for uniform weights: 0 is uniform, 1 the largest possible.

    0 also where uniform weights have the largest possible value, up to rounding.

    """
    return (found - even) / (1 - even) if even < ALL else 0.0
