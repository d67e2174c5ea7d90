"""Whether near means attends: rank correlation of the distance of query and key with their score."""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.tile import Tile, known

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Pairs = Float[Tensor, "2 pair"]
_EQUAL = 2.0**-44  # of the largest: 256 roundings of float64, where one token is met at two places


def pairs(tile: Tile) -> Pairs:
    """Cosine distance and scaled score of every query with every key that it may look at."""
    import torch

    allowed, both = known(tile.allowed), (known(tile.distances), known(tile.scaled))
    everywhere = bool(allowed.all())
    return torch.stack([each.flatten() if everywhere else each[allowed] for each in both])


def more(one: Pairs, other: Float[Tensor, "2 other"]) -> Float[Tensor, "2 both"]:
    import torch

    return torch.cat([one, other], dim=1)


def rank_correlation(of: Pairs) -> float:
    """Spearman's, -1 to 1: -1 where the nearer always scores higher; NaN where there is nothing to rank."""
    if of.shape[1] == 0 or not of.isfinite().all():
        return float("nan")
    first, second = (_ranks(each) for each in of)
    size = float(first.norm() * second.norm())
    return float(first @ second) / size if size else float("nan")


def _ranks(values: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
    """Ranks around their mean; values that are equal up to rounding share the mean of theirs."""
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
    """1 - cosine, 0 to 2; 1 for a vector without a direction."""
    tiny = 1e-300
    first, second = (each / each.norm(dim=-1, keepdim=True).clamp_min(tiny) for each in (queries, keys))
    distances: Tensor = 1 - first @ second.T
    return distances
