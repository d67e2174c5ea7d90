"""A heatmap of a long head in blocks: the mean and the largest weight of each."""

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.measures import Tile
from attnscope.reference import EXACT, exact


class Pooled:
    """Blocks of `steps` queries by keys, of the pairs in a window of the head.

    A mean is over the pairs that are allowed; NaN where there is none.
    """

    def __init__(self, queries: range, keys: range, steps: tuple[int, int]) -> None:
        self.window, self.steps = (queries, keys), steps
        shape = tuple(-(-len(side) // step) for side, step in zip(self.window, steps, strict=True))
        self.sums = torch.zeros(shape, dtype=EXACT)
        self.counts = torch.zeros(shape, dtype=EXACT)
        self.largest = torch.full(shape, -1.0, dtype=EXACT)

    def see(self, rows: slice, columns: slice, tile: Tile) -> None:
        assert tile.visible is not None, "a mean needs to know what is allowed"
        parts = [
            range(max(part.start, side.start), min(part.stop, side.stop))
            for part, side in zip((rows, columns), self.window, strict=True)
        ]
        if not all(parts):
            return
        mine, those = (
            slice(part.start - whole.start, part.stop - whole.start)
            for part, whole in zip(parts, (rows, columns), strict=True)
        )
        weights = tile.weights[mine, those]
        allowed = _allowed(tile, mine, those)
        weights = weights.masked_fill(~allowed, 0.0) if bool(weights[:, 0].isnan().any()) else weights
        first = [part.start - side.start for part, side in zip(parts, self.window, strict=True)]
        place = tuple(
            slice(start // step, (start + len(part) - 1) // step + 1)
            for start, part, step in zip(first, parts, self.steps, strict=True)
        )
        lead = tuple(start % step for start, step in zip(first, self.steps, strict=True))
        self.sums[place] += _summed(weights, lead, self.steps).cpu()
        self.counts[place] += _summed(allowed.to(weights.dtype), lead, self.steps).cpu()
        highest = exact(_in_blocks(weights, lead, self.steps).amax((1, 3))).cpu()
        self.largest[place] = torch.maximum(self.largest[place], highest)

    def end(self, _rows: slice) -> None:
        pass

    @property
    def mean(self) -> Float[Tensor, "row column"]:
        return self.sums / self.counts.masked_fill(self.counts == 0, torch.nan)

    @property
    def maximum(self) -> Float[Tensor, "row column"]:
        return self.largest.masked_fill(self.counts == 0, torch.nan)


def _allowed(tile: Tile, mine: slice, those: slice) -> Tensor:
    if tile.allowed is not None:
        return tile.allowed[mine, those]
    return torch.ones_like(tile.weights[mine, those], dtype=torch.bool)


def _in_blocks(
    values: Tensor, lead: tuple[int, ...], steps: tuple[int, int]
) -> Float[Tensor, "row step column other"]:
    """The values with a whole number of blocks on either side, zeros where there is nothing."""
    (queries, keys), (up, left) = values.shape, lead
    down, right = -(queries + up) % steps[0], -(keys + left) % steps[1]
    if up or left or down or right:
        values = torch.nn.functional.pad(values, (left, right, up, down))
    return values.reshape(values.shape[0] // steps[0], steps[0], values.shape[1] // steps[1], steps[1])


def _summed(values: Tensor, lead: tuple[int, ...], steps: tuple[int, int]) -> Float[Tensor, "row column"]:
    return exact(_in_blocks(values, lead, steps).sum((1, 3)))
