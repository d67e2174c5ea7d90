"""Second pass: tiles of true weights, with what is known of their queries and keys."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.measures import Need, Tile
from attnscope.tiles.quick import QuickTile
from attnscope.tiles.softmax import Head, Rows, exponents_


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
    """The tiles of a head whose `rows` are known; `needs` says what they hold beside weights."""

    head: Head
    rows: Rows
    beside: Beside = NOTHING
    needs: Collection[Need] = ()

    def blocks(self) -> Iterator[tuple[slice, Iterator[tuple[slice, Tile]]]]:
        """Blocks of queries, each with its blocks of keys one after the other."""
        for rows in self.head.tiles.rows():
            yield rows, ((columns, self.tile(rows, columns)) for columns in self.head.tiles.columns(rows))

    def tile(self, rows: slice, columns: slice) -> Tile:
        weights, logs = self.weights(rows, columns)
        needs, beside, rates = self.needs, self.beside, self._rates
        mask = self.head.tiles.mask(rows, columns) if Need.ALLOWED in needs else None
        everywhere = mask is None and Need.ALLOWED in needs
        made = QuickTile(
            weights,
            self._places[rows],
            self._places[columns],
            allowed=weights.new_ones((), dtype=torch.bool).expand(weights.shape) if everywhere else mask,
            visible=self.head.tiles.visible[rows] if Need.ALLOWED in needs else None,
            special=_cut(beside.special, columns),
            punctuation=_cut(beside.punctuation, columns),
            alike=_same(_cut(beside.query_names, rows), _cut(beside.key_names, columns)),
            together=_same(_cut(beside.query_parts, rows), _cut(beside.key_parts, columns)),
            norms=_cut(rates.norms, columns),
            moved=_cut(rates.moved, rows),
            period=beside.period,
            circuit=beside.circuit,
            output=_cut(rates.output, rows),
            slope=_cut(rates.slope, rows),
            direct=_cut(rates.direct, rows),
            gradient=self._gradient(rows, columns) if Need.GRADIENT in needs else None,
            first_query=rows.start,
            first_key=columns.start,
        )
        made.know(logs)
        return made

    def weights(
        self, rows: slice, columns: slice
    ) -> tuple[Float[Tensor, "query key"], Float[Tensor, "query key"]]:
        """Rows of true weights and their logarithms; NaN where a query may look nowhere."""
        logits, mask = self.head.logits(rows, columns)
        logs = exponents_(logits, self.log_sum[rows])
        weights = logs.exp()
        return weights if mask is None else weights.mul_(mask), logs

    @cached_property
    def log_sum(self) -> Float[Tensor, " query"]:
        """In the dtype of the tiles."""
        return self.rows.log_sum.to(self.head.q)

    @cached_property
    def _places(self) -> Int[Tensor, " position"]:
        return torch.arange(max(self.head.shape), dtype=torch.int32, device=self.head.q.device)

    @cached_property
    def _rates(self) -> "_Rates":
        given = self.beside.norms, self.rows.moved, self.rows.output, self.beside.slope, self.beside.direct
        return _Rates(*(None if each is None else each.to(self.head.q) for each in given))

    def _gradient(self, rows: slice, columns: slice) -> Float[Tensor, "query key"]:
        """How the answer changes with each weight: its slope in the output, along the key's value."""
        assert self._rates.slope is not None, "where a gradient is needed, the slope is known"
        return self._rates.slope[rows] @ self.head.v[columns].T


@dataclass(frozen=True, eq=False)
class _Rates:
    """What is known in numbers of queries and keys, in the dtype and where the tiles are."""

    norms: Float[Tensor, " key"] | None
    moved: Float[Tensor, " query"] | None
    output: Float[Tensor, "query value_dim"] | None
    slope: Float[Tensor, "query value_dim"] | None
    direct: Float[Tensor, "query value_dim"] | None


def _cut(values: Tensor | None, part: slice) -> Tensor | None:
    return None if values is None else values[part]


def _same(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    return None if first is None or second is None else first[:, None] == second[None, :]
