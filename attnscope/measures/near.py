"""Whether near means attends: rank correlation of the distance of query and key with their score."""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.tile import Tile, known

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Pairs = Float[Tensor, "2 pair"]


def pairs(tile: Tile) -> Pairs:
    """Cosine distance and scaled score of every query with every key that it may look at."""
    import torch

    allowed = known(tile.allowed)
    return torch.stack([known(tile.distances)[allowed], known(tile.scaled)[allowed]])


def more(one: Pairs, other: Float[Tensor, "2 other"]) -> Float[Tensor, "2 both"]:
    import torch

    return torch.cat([one, other], dim=1)


def rank_correlation(of: Pairs) -> float:
    """Spearman's, -1 to 1: -1 where the nearer always scores higher; NaN where there is nothing to rank."""
    if not of.isfinite().all():
        return float("nan")
    first, second = (_ranks(each) for each in of)
    size = float(first.norm() * second.norm())
    return float(first @ second) / size if size else float("nan")


def _ranks(values: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
    """Ranks around their mean; equal values share the mean of theirs."""
    import torch

    _, place, counts = torch.unique(values, return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
    ranks: Tensor = (counts.cumsum(0) - (counts - 1) / 2)[place].double()
    return ranks - ranks.mean()


def cosine_distances(
    queries: Float[Tensor, "query dim"], keys: Float[Tensor, "key dim"]
) -> Float[Tensor, "query key"]:
    """1 - cosine, 0 to 2; 1 for a vector without a direction."""
    tiny = 1e-300
    first, second = (each / each.norm(dim=-1, keepdim=True).clamp_min(tiny) for each in (queries, keys))
    distances: Tensor = 1 - first @ second.T
    return distances
