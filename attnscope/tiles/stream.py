"""Second pass, block of queries by block: tiles of true weights, with what is known of queries and keys."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.measures import Need, Tile
from attnscope.tiles.quick import QuickTile
from attnscope.tiles.softmax import (
    Head,
    Held,
    Rows,
    block_of,
    exponents,
    joined,
    told_apart_,
    values_of,
)
from attnscope.tiles.tiling import Room, laid_out


@dataclass(frozen=True, eq=False)
class Beside:
    """What measures need of a head beside its weights, by query and by key; None where nobody needs it.

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
    """The tiles of a head, its rows when all have passed; `needs` says what they hold beside weights."""

    head: Head
    beside: Beside = NOTHING
    needs: Collection[Need] = ()
    done: list[Rows] = field(default_factory=list)

    def blocks(self) -> Iterator[tuple[slice, Iterator[tuple[slice, Tile]]]]:
        """Blocks of queries, each with its blocks of keys one after the other."""
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
        """Those of all queries; they are there when every block has been asked for."""
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
        """How the answer changes with each weight: its slope in the output, along the key's value."""
        assert self._rates.slope is not None, "where a gradient is needed, the slope is known"
        return self._rates.slope[rows] @ self.head.v[columns].T


@dataclass(frozen=True, eq=False)
class _Rates:
    """What is known in numbers of queries and keys, in the dtype and where the tiles are."""

    norms: Float[Tensor, " key"] | None
    slope: Float[Tensor, "query value_dim"] | None
    direct: Float[Tensor, "query value_dim"] | None


def _moved(block: Rows) -> Tensor | None:
    """What each query moves; 0 where its weights are so small that they are no longer told apart."""
    if block.moved is None:
        return None
    return block.moved.masked_fill(block.moved < 1e8 * torch.finfo(block.moved.dtype).tiny, 0.0)


def _cut(values: Tensor | None, part: slice) -> Tensor | None:
    return None if values is None else values[part]


def _same(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    return None if first is None or second is None else first[:, None] == second[None, :]
