"""A measure: how what tiles contribute becomes one number per head, and what is said of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from math import inf, isinf, isnan, log
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attnscope.measures.tile import Need, Tile
from attnscope.results import MeasureDescription

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

OnKeys = Float[Tensor, "2 query"]


def larger(first: Tensor, second: Tensor) -> Tensor:
    return first.maximum(second)


def mean(rows: Tensor) -> float:
    """Over the rows that count; NaN when none does."""
    every = float(rows.mean())
    return float(rows.nanmean()) if isnan(every) else every


def weight_on(tile: Tile, keys: Bool[Tensor, "#query key"]) -> OnKeys:
    """The weight of each query on some keys, and at how many of them it may look, as far as is known."""
    import torch

    seen = keys if tile.allowed is None else keys & tile.allowed
    mass = (tile.weights * keys).sum(-1)
    return torch.stack([mass, seen.sum(-1).to(mass).expand_as(mass)])


def mean_on_keys(rows: OnKeys) -> float:
    """The mean weight on some keys over the queries that may look at one; NaN where none may."""
    return mean(rows[0].masked_fill(rows[1] == 0, float("nan")))


@dataclass(frozen=True, eq=False)
class Measure:
    """How a contribution, of each row or of a whole tile, becomes one number per head.

    A `positional` measure has no meaning where queries and keys are not the same tokens; `needs` are what a
    tile must know beside. Contributions of the tiles of a row are put together by `combine`, and `finish`
    makes a number of all rows, by default the mean over those that have a key. One that is `brief` has a line
    in reports, which have room for few.
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
        """The least and the largest value for so many keys, infinite where there is none."""
        ends = {"any": inf, "-any": -inf, "ln keys": log(keys), "keys - 1": keys - 1, "1 - keys": 1 - keys}
        least, most = self.description.least, self.description.most
        return float(ends.get(least, least)), float(ends.get(most, most))

    def limits_of(self, values: Float[np.ndarray, "layer head"], keys: int) -> tuple[float, float]:
        """The limits; where there is no largest possible value the largest size that there is bounds them."""
        least, most = self.limits(keys)
        if isinf(most):
            most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
            least = -most if isinf(least) else least
        return least, most

    def __call__(self, tiles: Iterable[Tile]) -> float:
        """The measure of one head whose `tiles` share the same rows; NaN when no row counts."""
        return self.finish(reduce(self.combine, (tile.once(self.contribution) for tile in tiles)))


def by_norm(measure: Measure) -> Measure:
    """The same measure with the share of weight x ||f(x)|| in what a query moves in place of its weights."""
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
    """A measure of the mean weight on some keys, of the queries that may look at one."""
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
