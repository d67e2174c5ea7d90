"""The strongest links of a head: the largest weight of all, and the largest of every query."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.measures import Tile
from attnscope.measures.rows import confidence
from attnscope.reference import EXACT, exact
from attnscope.tiles.quick import largest


class Strongest:
    """The largest weight among some queries and keys, the first of equals; (-1, -1) and NaN without any."""

    def __init__(self, queries: Bool[Tensor, " query"], keys: Bool[Tensor, " key"]) -> None:
        self.queries, self.keys = queries, keys
        self.place, self.weight = (-1, -1), float("nan")

    def see(self, rows: slice, columns: slice, tile: Tile) -> None:
        weights, highest = tile.weights, tile.once(confidence)
        mine, those = self.queries[rows], self.keys[columns]
        if not (mine.all() and those.all()):
            there = mine.to(weights.device)[:, None] & those.to(weights.device)[None, :]
            weights = weights.masked_fill(~there, -1.0)
            highest = weights.amax(-1)
        if bool(highest.isnan().any()):  # a query without a key
            weights, highest = weights.nan_to_num(-1.0), highest.nan_to_num(-1.0)
        row = int(highest.argmax())
        found, column = float(highest[row]), int(weights[row].argmax())
        at = rows.start + row, columns.start + column
        if found >= 0 and (not found <= self.weight or (found == self.weight and at < self.place)):
            self.place, self.weight = at, found

    def end(self, _rows: slice) -> None:
        pass


class TopKeys:
    """The `count` keys of every query with the largest weights, largest first.

    -1 and NaN where there are fewer; of equal weights the first key counts.
    """

    def __init__(self, count: int, queries: int) -> None:
        self.count = count
        self.keys: Int[Tensor, "query rank"] = torch.full((queries, count), -1)
        self.weights: Float[Tensor, "query rank"] = torch.full((queries, count), torch.nan, dtype=EXACT)
        self._best: tuple[Tensor, Tensor] | None = None

    def see(self, _rows: slice, columns: slice, tile: Tile) -> None:
        weights, keys = largest(tile.weights, self.count)
        keys = keys + columns.start
        if self._best is not None:
            weights, keys = torch.cat([self._best[0], weights], 1), torch.cat([self._best[1], keys], 1)
            weights, order = weights.sort(dim=-1, descending=True, stable=True)
            keys = keys.gather(1, order)
        self._best = weights[:, : self.count], keys[:, : self.count]

    def end(self, rows: slice) -> None:
        assert self._best is not None, "every row has a tile"
        weights, keys = (each.cpu() for each in self._best)
        self._best = None
        there = weights > 0
        self.keys[rows, : keys.shape[1]] = keys.masked_fill(~there, -1)
        self.weights[rows, : keys.shape[1]] = exact(weights).masked_fill(~there, torch.nan)


class OnKeys:
    """The mean weight, over queries that have a key, on each of some keys."""

    def __init__(self, keys: Bool[Tensor, " key"]) -> None:
        self.keys = keys
        self.sums = torch.zeros(int(keys.sum()), dtype=EXACT)
        self.before = torch.cat([torch.zeros(1, dtype=torch.long), keys.cpu().cumsum(0)])
        self.rows, self._counted = 0, -1

    def see(self, rows: slice, columns: slice, tile: Tile) -> None:
        answered = ~tile.weights[:, 0].isnan()
        if self._counted != rows.start:
            self._counted = rows.start
            self.rows += int(answered.sum())
        mine = self.keys[columns].to(tile.weights.device)
        if mine.any():
            place = slice(int(self.before[columns.start]), int(self.before[columns.stop]))
            self.sums[place] += exact(tile.weights[answered][:, mine].sum(0)).cpu()

    def end(self, _rows: slice) -> None:
        pass

    @property
    def means(self) -> Float[Tensor, " key"]:
        return self.sums / self.rows if self.rows else self.sums * torch.nan
