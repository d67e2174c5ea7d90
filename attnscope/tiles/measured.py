"""The measures of the registry over tiles: a number per row, put together over keys and then over rows.

Every measure that makes its number from rows has this form as it is written. Of the others the classes of
`pattern` need the sums of whole columns, which are kept; a rank correlation of all pairs has none.
"""

from collections.abc import Mapping
from operator import add

import torch
from torch import Tensor

from attnscope.measures import MEASURES, Measure, Tile, near, pattern
from attnscope.measures.apart import positivity
from attnscope.reference import EXACT, exact
from attnscope.tiles.collectors import Collector
from attnscope.tiles.quick import adds_nothing

WITHOUT_FORM: Mapping[str, str] = {
    name: "it ranks all pairs of queries and keys at once, which a long text has too many of"
    for name, each in MEASURES.items()
    if each.contribution is near.pairs
}


class Measured(Collector):
    """One measure of a head; `value` when all tiles have been seen."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.block: Tensor | None = None
        self.blocks: list[Tensor] = []

    def see(self, _rows: slice, _columns: slice, tile: Tile) -> None:
        made = tile.once(self.measure.contribution)
        if self.block is None:
            self.block = exact(made)
        elif self.measure.combine is not add or not adds_nothing(tile, made):
            self.block = self.measure.combine(self.block, exact(made))

    def end(self, _rows: slice) -> None:
        assert self.block is not None, "every row has a tile"
        self.blocks.append(self.block)
        self.block = None

    @property
    def value(self) -> float:
        return self.measure.finish(torch.cat(self.blocks, dim=-1).cpu())


class MeasuredOnce(Collector):
    """A measure that is the same in every tile."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.value = float("nan")
        self.seen = False

    def see(self, _rows: slice, _columns: slice, tile: Tile) -> None:
        if not self.seen:
            self.value, self.seen = self.measure.finish(self.measure.contribution(tile)), True


class Patterned(Collector):
    """The class of a head by its columns, its offsets and its texts, whose sums are kept over all tiles."""

    def __init__(self, queries: int, keys: int) -> None:
        self.offsets = pattern.OFFSETS
        self.columns = torch.zeros(2, keys, dtype=EXACT)
        self.sums = torch.zeros(2, 1 + len(self.offsets), dtype=EXACT)  # own text, then each offset
        self.counts = torch.zeros(len(self.offsets), dtype=EXACT)
        self.rows, self.keys = 0, keys
        self.counted = -1  # the first of the rows that were counted last

    def see(self, rows: slice, columns: slice, tile: Tile) -> None:
        assert tile.allowed is not None, "the measure needs it"
        assert tile.visible is not None, "it comes with the same need"
        answered = tile.visible > 0
        even = tile.allowed / tile.visible.clamp_min(1)[:, None].to(tile.weights.dtype)
        for i, each in enumerate((tile.weights.where(answered[:, None], 0.0), even)):
            of_columns = exact(each.sum(0)).cpu()
            self.columns[i, columns] += of_columns
            within = of_columns.sum() if tile.together is None else exact((each * tile.together).sum())
            diagonals = [exact(tile.at(offset, each).sum()) for offset in self.offsets]
            self.sums[i] += torch.stack([torch.as_tensor(v).cpu() for v in (within, *diagonals)])
        if self.counted != rows.start:
            self._count(rows, answered)

    def _count(self, rows: slice, answered: Tensor) -> None:
        self.counted = rows.start
        places = torch.arange(rows.start, rows.stop, device=answered.device)[answered]
        self.rows += len(places)
        for i, offset in enumerate(self.offsets):
            self.counts[i] += int(((places + offset >= 0) & (places + offset < self.keys)).sum())

    @property
    def value(self) -> float:
        features = []
        for i in range(2):
            ends = torch.stack([self.columns[i].max(), self.sums[i, 0]]) / self.rows
            features += [ends, self.sums[i, 1:]]
        return pattern.classified(torch.cat([*features, self.counts]))


def collector_of(measure: Measure, queries: int, keys: int) -> "Measured | MeasuredOnce | Patterned":
    """What collects one measure of a head; none of `WITHOUT_FORM` may be asked for."""
    if measure.contribution is pattern.features:
        return Patterned(queries, keys)
    if measure.contribution is positivity:
        return MeasuredOnce(measure)
    return Measured(measure)
