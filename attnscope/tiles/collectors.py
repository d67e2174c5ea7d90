"""Collectors that see each tile of a head once: top links and keys, heatmap blocks, measures.

Each head has one thread, since several threads per tile gain less: operations on a tile are short, and two
threads that wait for each other take a third longer. torch releases the GIL while it computes. Kept are a
head's strongest links and keys, its heatmap in blocks, and its measures, as a number per row that is
combined over keys and then over rows. Any measure by rows works unchanged; the classes of `pattern` need
column sums, which are kept too.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import add
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.measures import Measure, Tile
from attnscope.measures import rows as patterns
from attnscope.measures.apart import positivity
from attnscope.reference import EXACT, exact
from attnscope.tiles.softmax import Rows
from attnscope.tiles.stream import Stream, adds_nothing, largest

_MOST = 16  # heads at a time: each holds the logits of a block of its rows
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Collector(ABC):
    """Base class: sees the tiles of a head, all tiles of the same rows in turn, then `end` is called."""

    @abstractmethod
    def see(self, rows: slice, columns: slice, tile: Tile) -> None: ...

    def end(self, rows: slice) -> None:  # noqa: B027 - of use to some
        """Called after the last tile of these rows; does nothing by default."""


def collect(stream: Stream, collectors: Sequence[Collector]) -> Rows:
    """Shows every tile to every collector; returns each row's log denominator and output."""
    for rows, tiles in stream.blocks():
        for columns, tile in tiles:
            for each in collectors:
                each.see(rows, columns, tile)
        for each in collectors:
            each.end(rows)
    return stream.rows


class Halt(Collector):
    """A collector that raises `InterruptedError` after the current block, if halted."""

    def __init__(self) -> None:
        self.wanted = threading.Event()

    def see(self, rows: slice, columns: slice, tile: Tile) -> None:
        pass

    def end(self, rows: slice) -> None:
        if self.wanted.is_set():
            raise InterruptedError("the work on the other heads has ended")


def side_by_side(
    work: Callable[[Item, Halt], Answer], items: Sequence[Item], device: torch.device
) -> Iterator[Answer]:
    """Results of `work` for each item in order, in parallel threads on a CPU, one by one on a GPU.

    If an item fails, or the caller stops early, the other threads halt.
    """
    threads, halt = torch.get_num_threads(), Halt()
    workers = min(threads, len(items), _MOST)
    if device.type != "cpu" or workers < 2:
        yield from (work(item, halt) for item in items)
        return

    @torch.no_grad()
    def one(item: Item) -> Answer:
        return work(item, halt)

    with _threads(threads // workers, threads), ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(one, item) for item in items]
        try:
            for each in waiting:
                yield each.result()
        finally:
            halt.wanted.set()
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _threads(within: int, after: int) -> Iterator[None]:
    torch.set_num_threads(within)
    try:
        yield
    finally:
        torch.set_num_threads(after)


class ByKey(Collector):
    """Collects each key's largest weight over some queries, and its mean over all queries that have a key.

    If `apart`, weights of a token on itself are not among the largest but in `own`.
    """

    def __init__(self, queries: Bool[Tensor, " query"], keys: int, *, apart: bool) -> None:
        self.queries, self.apart, self.rows = queries, apart, 0
        self.most = torch.zeros(keys, dtype=EXACT)
        self.places = torch.full((keys,), -1)
        self.sums, self.own = torch.zeros(keys, dtype=EXACT), torch.zeros(keys, dtype=EXACT)
        self._counted = -1

    def see(self, rows: slice, columns: slice, tile: Tile) -> None:
        weights, lost = tile.weights, tile.weights[:, 0].isnan()
        if self._counted != rows.start:
            self._counted = rows.start
            self.rows += int((~lost).sum())
        if bool(lost.any()):
            weights = weights.nan_to_num(0.0)
        self.sums[columns] += exact(weights.sum(0)).cpu()
        mine, shift = self.queries[rows], rows.start - columns.start
        if not mine.all():
            weights = weights.masked_fill(~mine.to(weights.device)[:, None], 0.0)
        if self.apart and -weights.shape[0] < shift < weights.shape[1]:
            own = tile.weights.diagonal(shift).nan_to_num(0.0)
            first = max(rows.start, columns.start)
            self.own[first : first + len(own)] = exact(own).cpu()
            weights = weights.clone()
            weights.diagonal(shift).zero_()
        found, places = (each.cpu() for each in weights.max(0))
        better = exact(found) > self.most[columns]
        self.most[columns] = torch.where(better, exact(found), self.most[columns])
        self.places[columns] = torch.where(better, places + rows.start, self.places[columns])

    @property
    def means(self) -> Float[Tensor, " key"]:
        return self.sums / self.rows if self.rows else self.sums * torch.nan

    def strongest(self, keys: Bool[Tensor, " key"]) -> tuple[tuple[int, int], float]:
        """Place and size of the largest weight on some keys, the first of equals; else (-1, -1) and NaN."""
        most = float(self.most[keys].max()) if keys.any() else 0.0
        if most <= 0:
            return (-1, -1), float("nan")
        alike = (keys & (self.most == most)).nonzero().flatten().tolist()
        return min((int(self.places[key]), key) for key in alike), most


class TopKeys(Collector):
    """Collects each query's `count` keys with the largest weights, largest first.

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


class OnKeys(Collector):
    """Collects the mean weight on each of some keys, over queries that have a key."""

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

    @property
    def means(self) -> Float[Tensor, " key"]:
        return self.sums / self.rows if self.rows else self.sums * torch.nan


class Pooled(Collector):
    """Collects a heatmap of a window: mean and largest weight of each block of `steps` queries by keys.

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
    """The values padded with zeros to whole blocks, as `row step column other`."""
    (queries, keys), (up, left) = values.shape, lead
    down, right = -(queries + up) % steps[0], -(keys + left) % steps[1]
    if up or left or down or right:
        values = torch.nn.functional.pad(values, (left, right, up, down))
    return values.reshape(values.shape[0] // steps[0], steps[0], values.shape[1] // steps[1], steps[1])


def _summed(values: Tensor, lead: tuple[int, ...], steps: tuple[int, int]) -> Float[Tensor, "row column"]:
    return exact(_in_blocks(values, lead, steps).sum((1, 3)))


class Measured(Collector):
    """Collects one measure of a head; read `value` after the last tile."""

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
    """Collects a measure that does not depend on the tile."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.value = float("nan")
        self.seen = False

    def see(self, _rows: slice, _columns: slice, tile: Tile) -> None:
        if not self.seen:
            self.value, self.seen = self.measure.finish(self.measure.contribution(tile)), True


class Patterned(Collector):
    """Collects the sums for the measure `pattern` (columns, offsets, texts), and classifies the head."""

    def __init__(self, queries: int, keys: int) -> None:
        self.offsets = patterns.OFFSETS
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
        return patterns.classified(torch.cat([*features, self.counts]))


def collector_of(measure: Measure, queries: int, keys: int) -> "Measured | MeasuredOnce | Patterned":
    """The collector for one measure of a head; measures of `WITHOUT_FORM` have none."""
    if measure.contribution is patterns.features:
        return Patterned(queries, keys)
    if measure.contribution is positivity:
        return MeasuredOnce(measure)
    return Measured(measure)
