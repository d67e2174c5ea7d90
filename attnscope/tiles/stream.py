"""Second pass over tiles: yields tiles of true weights, with faster forms of some measures.

A measure is written once, in `attnscope.measures`. If its contribution is in `QUICK`, a tile of consecutive
positions computes the same numbers by a faster function; tests/tiles compare both. The rank correlation of
all pairs has no form over tiles.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.measures import MEASURES, Need, Tile
from attnscope.measures.measure import known
from attnscope.measures.rows import pairs
from attnscope.tiles.softmax import (
    Head,
    Held,
    Rows,
    Weighted,
    block_of,
    exponents,
    joined,
    told_apart_,
    values_of,
)
from attnscope.tiles.tiling import Room, laid_out

OfRows = Float[Tensor, " query"]
OnKeys = Float[Tensor, "2 query"]
_SEGMENT = 32  # keys among which the largest weight is looked for first


@dataclass(frozen=True, eq=False)
class QuickTile(Tile):
    """A tile whose queries and keys are consecutive positions, from `first_query` and `first_key`.

    Logarithms of its weights, where kept, are finite also where a weight is 0.

    """

    first_query: int = 0
    first_key: int = 0

    def know(self, logs: Float[Tensor, "query key"] | None, rows: Weighted | None) -> None:
        """Stores the logarithms of the weights or their row sums; copies of the tile do not have them."""
        self.__dict__.update(_logs=logs, _summed=rows)

    @property
    def summed(self) -> Weighted | None:
        """Row sums from the first pass, or None."""
        return self.__dict__.get("_summed")

    def take_logs(self) -> Float[Tensor, "query key"]:
        """The logarithms of the weights, as a tensor that the caller may overwrite; only once."""
        logs: Tensor | None = self.__dict__.pop("_logs", None)
        return self.weights.clamp_min(torch.finfo(self.weights.dtype).tiny).log_() if logs is None else logs

    def once(self, contribution: Callable[[Tile], Tensor]) -> Tensor:
        made: dict[Any, Tensor] = self.__dict__.setdefault("_made", {})
        if contribution not in made:
            made[contribution] = QUICK.get(contribution, contribution)(self)
        return made[contribution]

    def diagonal(self, offset: int) -> int:
        """The index of the diagonal whose keys are `offset` after their queries."""
        return self.first_query + offset - self.first_key

    def at(self, offset: int, values: Float[Tensor, "query key"]) -> Float[Tensor, " pair"]:
        return values.diagonal(self.diagonal(offset))


def nothing(tile: Tile) -> OfRows:
    """0 for every query, NaN for a query without a key."""
    return tile.weights[:, 0] * 0


def no_such_keys(tile: Tile) -> OnKeys:
    """Zero weight on zero keys, for tiles without any of the keys in question."""
    none = tile.once(nothing)
    return torch.stack([none, torch.zeros_like(none)])


def adds_nothing(tile: Tile, contribution: Tensor) -> bool:
    """Whether a contribution is known to be zero without reading its values."""
    return contribution is tile.once(nothing) or contribution is tile.once(no_such_keys)


def entropy(tile: QuickTile) -> OfRows:
    """Entropy of each row in nats, from stored logarithms or row sums where available."""
    if tile.summed is not None:
        return tile.summed.entropy
    return -tile.take_logs().mul_(tile.weights).sum(-1)


def total(tile: Tile) -> OfRows:
    """The sum of weights of each query in this tile."""
    summed = tile.summed if isinstance(tile, QuickTile) else None
    return summed.total if summed is not None else tile.weights.sum(-1)


def distance(tile: QuickTile) -> OfRows:
    """Mean |query - key|, by the mean key position where all keys are on one side of all queries."""
    weights, start = tile.weights, tile.diagonal(0)
    rows, columns = weights.shape
    before = start >= columns - 1
    if not before and start > -rows:
        return (weights * _apart(start, rows, columns, weights.dtype, weights.device)).sum(-1)
    beyond = weights @ (tile.keys - tile.first_key).to(weights.dtype)
    from_first = (tile.queries - tile.first_key).to(weights.dtype) * tile.once(total) - beyond
    return from_first if before else -from_first


@lru_cache(maxsize=8)
def _apart(start: int, rows: int, columns: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """|query - key| of a tile whose first query is `start` positions after its first key."""
    queries, keys = torch.arange(start, start + rows, device=device), torch.arange(columns, device=device)
    return (queries[:, None] - keys[None, :]).abs().to(dtype)


def on_offset(offset: int) -> Callable[[QuickTile], OnKeys]:
    """The weight on one diagonal of the tile."""

    def mass(tile: QuickTile) -> OnKeys:
        start = tile.diagonal(offset)
        rows, columns = tile.weights.shape
        if not -rows < start < columns:
            return tile.once(no_such_keys)
        values, found, row = tile.weights.diagonal(start), tile.once(no_such_keys).clone(), max(0, -start)
        found[0, row : row + len(values)] += values
        found[1, row : row + len(values)] = 1 if tile.allowed is None else tile.allowed.diagonal(start)
        return found

    return mass


def on_first(tile: QuickTile) -> OnKeys:
    """The weight on the first key: one column, in the first tile only."""
    if tile.first_key:
        return tile.once(no_such_keys)
    first = tile.weights[:, 0]
    return torch.stack(
        [first, torch.ones_like(first) if tile.allowed is None else tile.allowed[:, 0].to(first)]
    )


def on_sink(tile: QuickTile) -> OnKeys:
    mass = tile.once(MEASURES["first"].contribution)
    return mass if tile.first_query else mass.masked_fill(tile.queries == 0, float("nan"))


def on_sort(keys: Callable[[Tile], Tensor | None]) -> Callable[[Tile], OnKeys]:
    """The weight on all keys of one kind."""

    def mass(tile: Tile) -> OnKeys:
        of_sort = known(keys(tile)).to(tile.weights.dtype)
        found = tile.weights @ of_sort
        seen = of_sort.sum() if tile.allowed is None else tile.allowed.to(of_sort) @ of_sort
        return torch.stack([found, seen.expand_as(found)])

    return mass


def moved(tile: Tile) -> OfRows:
    return tile.weights @ known(tile.norms).to(tile.weights.dtype)


def in_segments(tile: Tile) -> Float[Tensor, "query segment"]:
    """The largest weight in each segment of `_SEGMENT` keys, and in the rest."""
    weights = tile.weights
    whole = weights.shape[1] - weights.shape[1] % _SEGMENT
    found = weights[:, :whole].reshape(len(weights), -1, _SEGMENT).amax(-1)
    return found if whole == weights.shape[1] else torch.cat([found, weights[:, whole:].amax(-1, True)], 1)


def confidence(tile: Tile) -> OfRows:
    return tile.once(in_segments).amax(-1)


def strongest(tile: Tile) -> Float[Tensor, "2 query"]:
    """The largest weight of each query and its offset, searched within its best segment only.

    NaN for a query without a key.
    """
    weights, segment = tile.weights, tile.once(in_segments).argmax(-1, keepdim=True)
    places = torch.arange(_SEGMENT, device=weights.device) + segment * _SEGMENT
    places.clamp_max_(weights.shape[1] - 1)  # the last key once more, where a segment is shorter
    inside = weights.gather(1, places)
    best = inside.argmax(-1, keepdim=True)
    offsets = tile.keys[places.gather(1, best)[:, 0]] - tile.queries
    return torch.stack([inside.gather(1, best)[:, 0], offsets.to(weights.dtype)])


def largest(weights: Float[Tensor, "query key"], count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest weights of each row and their places, largest first.

    They lie in those segments of the keys whose own largest weights are the largest.
    """
    rows, keys = weights.shape
    whole = keys - keys % _SEGMENT
    if whole < (count + 1) * _SEGMENT:
        return _top(weights, torch.arange(keys, device=weights.device).expand(rows, keys), count)
    segments = weights[:, :whole].reshape(rows, -1, _SEGMENT)
    chosen = segments.amax(-1).topk(count, dim=-1).indices.sort(-1).values
    places = chosen[:, :, None] * _SEGMENT + torch.arange(_SEGMENT, device=weights.device)
    rest = torch.arange(whole, keys, device=weights.device).expand(rows, keys - whole)
    candidates = torch.cat([places.flatten(1), rest], 1)
    return _top(weights.gather(1, candidates), candidates, count)


def _top(weights: Tensor, places: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest weights and places; of equal weights the first come first."""
    found = weights.topk(min(count, weights.shape[1]), dim=-1)
    ordered, order = found.values.sort(dim=-1, descending=True, stable=True)
    return ordered, places.gather(1, found.indices.gather(1, order))


QUICK: dict[Callable[[Tile], Tensor], Callable[[Any], Tensor]] = {
    MEASURES[name].contribution: quick
    for name, quick in {
        "entropy": entropy,
        "distance": distance,
        "self": on_offset(0),
        "previous": on_offset(-1),
        "next": on_offset(1),
        "first": on_first,
        "sink": on_sink,
        "special-tokens": on_sort(lambda tile: tile.special),
        "punctuation": on_sort(lambda tile: tile.punctuation),
        "moved": moved,
        "confidence": confidence,
        "fixed": strongest,
    }.items()
}


WITHOUT_FORM: Mapping[str, str] = {
    name: "it ranks all pairs of queries and keys at once, which a long text has too many of"
    for name, each in MEASURES.items()
    if each.contribution is pairs
}


@dataclass(frozen=True, eq=False)
class Beside:
    """The tensors that measures need beside a head's weights, by query and by key; None if not needed.

    Pairs are made of these for one tile at a time: `query_names` and `key_names` are equal where a token is
    the same, `query_parts` and `key_parts` where it is of the same text. The rest is as in `Tile`.
    """

    special: Bool[Tensor, " key"] | None = None
    punctuation: Bool[Tensor, " key"] | None = None
    query_names: Int[Tensor, " query"] | None = None
    key_names: Int[Tensor, " key"] | None = None
    query_parts: Int[Tensor, " query"] | None = None
    key_parts: Int[Tensor, " key"] | None = None
    norms: Float[Tensor, " key"] | None = None
    period: int | None = None
    circuit: Float[Tensor, "value_dim value_dim"] | None = None
    slope: Float[Tensor, "query value_dim"] | None = None
    direct: Float[Tensor, "query value_dim"] | None = None


NOTHING = Beside()


@dataclass(frozen=True, eq=False)
class Stream:
    """Streams the tiles of a head; `rows` are complete afterwards; `needs` are tile fields to fill."""

    head: Head
    beside: Beside = NOTHING
    needs: Collection[Need] = ()
    done: list[Rows] = field(default_factory=list)

    def blocks(self) -> Iterator[tuple[slice, Iterator[tuple[slice, Tile]]]]:
        """Yields blocks of queries, each with an iterator over its tiles."""
        tiles, values = self.head.tiles, values_of(self.head, self.beside.norms)
        room = Room(self.head.q, tiles.sizes)
        self.done.clear()
        for rows in tiles.rows():
            block, held = block_of(self.head, rows, values, room, tiles.sizes.held)
            self.done.append(block)
            here, spare = block.to(self.head.q), (room.take(), room.take())
            yield (
                rows,
                (
                    (columns, self._tile(rows, columns, here, held.pop(columns.start, None), spare))
                    for columns in tiles.columns(rows)
                ),
            )

    @property
    def rows(self) -> Rows:
        """The rows of all queries; complete after the last block."""
        return joined(self.done)

    def _tile(
        self, rows: slice, columns: slice, block: Rows, held: Held | None, spare: tuple[Tensor, Tensor]
    ) -> Tile:
        weighted = None if held is None else held.weights(block.log_sum)
        if held is not None and weighted is not None:
            weights, mask, logs = weighted.weights, held.mask, None
        else:
            first, second = (laid_out(each, rows, columns) for each in spare)
            logits, mask = self.head.logits(rows, columns, first)
            logs = exponents(logits, block.log_sum)
            weights = told_apart_(torch.exp(logs, out=second))
            if mask is not None:
                weights.mul_(mask.factor)
        needs, beside, rates = self.needs, self.beside, self._rates
        allowed = None if mask is None else mask.allowed
        everywhere = mask is None and Need.ALLOWED in needs
        made = QuickTile(
            weights,
            self._places[rows],
            self._places[columns],
            allowed=weights.new_ones((), dtype=torch.bool).expand(weights.shape) if everywhere else allowed,
            visible=self.head.tiles.visible[rows] if Need.ALLOWED in needs else None,
            special=_cut(beside.special, columns),
            punctuation=_cut(beside.punctuation, columns),
            alike=_same(_cut(beside.query_names, rows), _cut(beside.key_names, columns)),
            together=_same(_cut(beside.query_parts, rows), _cut(beside.key_parts, columns)),
            norms=_cut(rates.norms, columns),
            moved=_moved(block),
            period=beside.period,
            circuit=beside.circuit,
            output=block.output,
            slope=_cut(rates.slope, rows),
            direct=_cut(rates.direct, rows),
            gradient=self._gradient(rows, columns) if Need.GRADIENT in needs else None,
            first_query=rows.start,
            first_key=columns.start,
        )
        made.know(logs, weighted)
        return made

    @cached_property
    def _places(self) -> Int[Tensor, " position"]:
        return torch.arange(max(self.head.shape), dtype=torch.int32, device=self.head.q.device)

    @cached_property
    def _rates(self) -> "_Rates":
        given = self.beside.norms, self.beside.slope, self.beside.direct
        return _Rates(*(None if each is None else each.to(self.head.q) for each in given))

    def _gradient(self, rows: slice, columns: slice) -> Float[Tensor, "query key"]:
        """The gradient of the answer by each weight: the slope of the output times the key's value."""
        assert self._rates.slope is not None, "where a gradient is needed, the slope is known"
        return self._rates.slope[rows] @ self.head.v[columns].T


@dataclass(frozen=True, eq=False)
class _Rates:
    """Norms and slopes in the tiles' dtype and on their device."""

    norms: Float[Tensor, " key"] | None
    slope: Float[Tensor, "query value_dim"] | None
    direct: Float[Tensor, "query value_dim"] | None


def _moved(block: Rows) -> Tensor | None:
    """The sum of weight x norm of each query; 0 where it is too small to be precise."""
    if block.moved is None:
        return None
    return block.moved.masked_fill(block.moved < 1e8 * torch.finfo(block.moved.dtype).tiny, 0.0)


def _cut(values: Tensor | None, part: slice) -> Tensor | None:
    return None if values is None else values[part]


def _same(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    return None if first is None or second is None else first[:, None] == second[None, :]
