"""Defines a measure: the tile of a head it sees, how tiles become one number, and its description.

A tile is a block of one head's weights with the positions of its rows and columns. Its other fields are None
where no measure needs them or they are unknown; `Need` lists these fields.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, reduce
from math import inf, isinf, isnan, log
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.results import MeasureDescription

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any  # so that names and meanings are read without torch; axes are checked all the same

Known = TypeVar("Known")
OnKeys = Float[Tensor, "2 query"]


class Need(StrEnum):
    """Tile fields that a measure may need beside weights and positions."""

    ALLOWED = "allowed"
    SPECIAL = "special"
    PUNCTUATION = "punctuation"
    ALIKE = "alike"
    NORMS = "norms"
    SCORES = "scaled"
    PERIOD = "period"
    CIRCUIT = "circuit"
    SLOPE = "slope"
    GRADIENT = "gradient"
    DIRECT = "direct"


@dataclass(frozen=True, eq=False)
class Tile:
    """A block of one head's weights with the token positions of its rows and columns.

    `allowed` is the mask (None: unknown or everywhere), and `visible` the number of keys that a query may
    attend to in all; `special` and `punctuation` are True for such keys, `alike` for pairs of equal tokens,
    `together` for pairs within one of several texts. `norms` are ||f(x)|| of the keys and `moved` is each
    query's sum of weight x norm. `distances` of queries and keys are by cosine, `scaled` is the softmax
    input. `period` is the length of a repeated sequence; `circuit` is the head's W_O W_U W_E W_V. `slope` is
    the answer's gradient by the head's `output`, `direct` that by the direct path alone, `gradient` that by
    each of its weights.
    """

    weights: Float[Tensor, "query key"]
    queries: Int[Tensor, " query"]
    keys: Int[Tensor, " key"]
    allowed: Bool[Tensor, "query key"] | None = None
    visible: Int[Tensor, " query"] | None = None
    special: Bool[Tensor, " key"] | None = None
    punctuation: Bool[Tensor, " key"] | None = None
    alike: Bool[Tensor, "query key"] | None = None
    together: Bool[Tensor, "query key"] | None = None
    norms: Float[Tensor, " key"] | None = None
    moved: Float[Tensor, " query"] | None = None
    distances: Float[Tensor, "query key"] | None = None
    scaled: Float[Tensor, "query key"] | None = None
    period: int | None = None
    circuit: Float[Tensor, "value_dim value_dim"] | None = None
    output: Float[Tensor, "query value_dim"] | None = None
    slope: Float[Tensor, "query value_dim"] | None = None
    direct: Float[Tensor, "query value_dim"] | None = None
    gradient: Float[Tensor, "query key"] | None = None

    @cached_property
    def offsets(self) -> Int[Tensor, "query key"]:
        """Key position less query position; negative for keys before the query."""
        return self.keys[None, :] - self.queries[:, None]

    def at(self, offset: int, values: Float[Tensor, "query key"]) -> Float[Tensor, " pair"]:
        """Those `values` whose key is `offset` after its query."""
        return values[self.offsets == offset]

    @cached_property
    def by_norm(self) -> "Tile":
        """The tile with weight x norm, as a share of its sum over keys, in place of weights.

        Rows sum to 1, also where a sink took a part of the weights; NaN where nothing is moved.
        """
        norms, moved = known(self.norms), known(self.moved)
        shares = self.weights * norms / moved.masked_fill(moved == 0, float("nan"))[:, None]
        made = replace(self, weights=shares)
        made.__dict__["offsets"] = self.offsets  # known already
        return made

    def once(self, contribution: "Callable[[Tile], Tensor]") -> Tensor:
        """The result of `contribution` on this tile, cached for all measures that share it."""
        made: dict[Any, Tensor] = self.__dict__.setdefault("_made", {})
        if contribution not in made:
            made[contribution] = contribution(self)
        return made[contribution]


def known(value: Known | None) -> Known:
    """The field, which a measure declared in its needs; asserts that it is not None."""
    assert value is not None, "a measure is asked only where what it needs is known"
    return value


def whole(weights: Float[Tensor, "query key"], **known: Any) -> list[Tile]:
    """A dense head as one tile, with the other fields `known`."""
    import torch

    queries, keys = (torch.arange(length) for length in weights.shape)
    return [Tile(weights, queries, keys, **known)]


def larger(first: Tensor, second: Tensor) -> Tensor:
    return first.maximum(second)


def mean(rows: Tensor) -> float:
    """The mean over rows that are not NaN; NaN where none is left."""
    every = float(rows.mean())
    return float(rows.nanmean()) if isnan(every) else every


def weight_on(tile: Tile, keys: Bool[Tensor, "#query key"]) -> OnKeys:
    """Each query's summed weight on some keys, and how many of these it may attend to."""
    import torch

    seen = keys if tile.allowed is None else keys & tile.allowed
    mass = (tile.weights * keys).sum(-1)
    return torch.stack([mass, seen.sum(-1).to(mass).expand_as(mass)])


def mean_on_keys(rows: OnKeys) -> float:
    """Mean weight over the queries that may attend to one of the keys; NaN where none may."""
    return mean(rows[0].masked_fill(rows[1] == 0, float("nan")))


@dataclass(frozen=True, eq=False)
class Measure:
    """A measure: turns contributions of tiles into one number per head.

    A `positional` measure has no meaning where queries and keys are different tokens; `needs` are the tile
    fields that it reads beside weights. `combine` merges contributions of the tiles of a row, and `finish`
    makes a number from all rows, by default the mean over those that have a key. A `brief` measure has a
    line in reports, which have room for few.
    """

    description: MeasureDescription
    contribution: Callable[[Tile], Tensor]
    combine: Callable[[Tensor, Tensor], Tensor] = add
    positional: bool = False
    needs: frozenset[Need] = frozenset()
    finish: Callable[[Tensor], float] = mean
    brief: bool = False

    @property
    def name(self) -> str:
        return self.description.name

    def limits(self, keys: int) -> tuple[float, float]:
        """The smallest and largest possible value for so many keys; infinite where unbounded."""
        ends = {"any": inf, "-any": -inf, "ln keys": log(keys), "keys - 1": keys - 1, "1 - keys": 1 - keys}
        least, most = self.description.least, self.description.most
        return float(ends.get(least, least)), float(ends.get(most, most))

    def limits_of(self, values: Float[np.ndarray, "layer head"], keys: int) -> tuple[float, float]:
        """The limits; an unbounded end is replaced by the largest size among `values`."""
        least, most = self.limits(keys)
        if isinf(most):
            most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
            least = -most if isinf(least) else least
        return least, most

    def __call__(self, tiles: Iterable[Tile]) -> float:
        """The measure of one head whose `tiles` share the same rows; NaN when no row counts."""
        return self.finish(reduce(self.combine, (tile.once(self.contribution) for tile in tiles)))


def by_norm(measure: Measure) -> Measure:
    """The measure with weights replaced by shares of weight x ||f(x)||, named with `-norm`."""
    plain, contribution = measure.description, measure.contribution
    described = replace(
        plain,
        name=f"{plain.name}-norm",
        unit="share" if plain.unit == "weight" else plain.unit,
        meaning=f"{plain.meaning.removesuffix('.')}, by shares of weight x ||f(x)||.",
        paper=f"{plain.paper}; Kobayashi et al. 2020, Attention is Not Only a Weight",
        label=f"{plain.label}, by norm" if plain.label else "",
        strongest=f"{plain.strongest} by norm",
    )
    return replace(
        measure,
        description=described,
        contribution=lambda tile: tile.by_norm.once(contribution),
        needs=measure.needs | {Need.NORMS},
        brief=False,
    )


def mass_on(
    on: str,
    name: str,
    contribution: Callable[[Tile], Tensor],
    paper: str,
    *,
    meaning: str = "",
    apart: str = "",
    **more: Any,
) -> Measure:
    """A measure of the mean weight on some keys, over queries that may attend to one."""
    described = MeasureDescription(
        name=name,
        unit="weight",
        meaning=meaning or f"Mean weight on {on}, of the queries that may look there.",
        paper=paper,
        label=f"weight on {on}",
        strongest=f"head of each layer strongest on {on}",
        apart=apart,
    )
    return Measure(described, contribution, finish=mean_on_keys, **more)
