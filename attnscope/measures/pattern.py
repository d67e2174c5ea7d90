"""What a head's weights look like: a column, a diagonal, both, blocks, or none of these.

Kovaleva et al. 2019 had people and then a network sort maps into such classes; they give no formula. Here a
class is decided by three features, each over what evenly spread weights of the same shape would have, so that
0 is even and 1 is all of it:

    vertical   the largest mean weight of a column
    diagonal   the largest mean weight at one offset from -2 to +2, over the queries that have such a key
    block      the mean weight on the query's own text, where there are two

Both of the first two from `BESIDE` on is "v+d"; else the first of the three that reaches `ALONE` names it;
else it is mixed ("heterogeneous" there). The thresholds are ours.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from attnscope.measures.tile import Tile, known

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

CLASSES = ("mixed", "block", "diag", "v+d", "vert")
ALONE, BESIDE = 0.5, 0.25
ALL = 1 - 1e-6  # no even weights but all of them come so near
OFFSETS = range(-2, 3)
Features = Float[Tensor, " feature"]


def features(tile: Tile) -> Features:
    """Largest column mean; then sums over pairs at each offset and within a text, with their counts.

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
    """Features of two tiles of the same rows: the larger column, all else added."""
    joined, size = one + other, 2 + len(OFFSETS)
    for place in (0, size):
        joined[place] = max(one[place], other[place])
    return joined


def classified(of: Features) -> float:
    """The number of the class in `CLASSES`; NaN for a head without rows."""
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
    """How far a feature lies over that of even weights, 1 where it is all that there can be.

    Where even weights have all that there can be, 1 but for the rounding of their sum, nothing lies over it.
    """
    return (found - even) / (1 - even) if even < ALL else 0.0
