"""Tiles of a long head know shorter ways to what some measures ask: the same numbers, a fraction of the work.

A measure is written once, in `attnscope.measures`; where its contribution stands in `QUICK` a tile of
consecutive positions answers by another way. tests/tiles hold every one against the plain form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.measures import MEASURES, Tile
from attnscope.measures.tile import known

Rows = Float[Tensor, " query"]
_SEGMENT = 32  # keys among which the largest weight is looked for first


@dataclass(frozen=True, eq=False)
class QuickTile(Tile):
    """A tile whose queries and keys are consecutive positions, from `first_query` and `first_key` on.

    Where its weights came from logarithms these are known, a finite number where a weight is 0.
    """

    first_query: int = 0
    first_key: int = 0

    @property
    def logs(self) -> Float[Tensor, "query key"]:
        logs: Tensor | None = self.__dict__.get("_logs")
        weights = self.weights
        return weights.clamp_min(torch.finfo(weights.dtype).tiny).log_() if logs is None else logs

    def know(self, logs: Float[Tensor, "query key"]) -> None:
        """The logarithms of these weights; no other tile that is made of this one has them."""
        self.__dict__["_logs"] = logs

    def once(self, contribution: Callable[[Tile], Tensor]) -> Tensor:
        made: dict[Any, Tensor] = self.__dict__.setdefault("_made", {})
        if contribution not in made:
            made[contribution] = QUICK.get(contribution, contribution)(self)
        return made[contribution]

    def diagonal(self, offset: int) -> int:
        """Which diagonal of the tile has its keys `offset` behind their queries."""
        return self.first_query + offset - self.first_key

    def at(self, offset: int, values: Float[Tensor, "query key"]) -> Float[Tensor, " pair"]:
        return values.diagonal(self.diagonal(offset))


def nothing(tile: Tile) -> Rows:
    """0 for every query, NaN for one without a key."""
    return tile.weights[:, 0] * 0


def adds_nothing(tile: Tile, contribution: Rows) -> bool:
    """Whether that is what a contribution is known to be, without a look at its numbers."""
    return contribution is tile.once(nothing)


def entropy(tile: QuickTile) -> Rows:
    """-sum w ln w, by logarithms that are known or taken of many at once."""
    return -(tile.weights * tile.logs).sum(-1)


def total(tile: Tile) -> Rows:
    """All weight on these keys."""
    return tile.weights.sum(-1)


def distance(tile: QuickTile) -> Rows:
    """Where all keys lie on one side of all queries, by the mean place of the keys alone."""
    weights, (rows, columns) = tile.weights, tile.weights.shape
    before = tile.first_key + columns <= tile.first_query
    if not before and tile.first_key < tile.first_query + rows:
        return (weights * tile.offsets.abs()).sum(-1)
    beyond = weights @ (tile.keys - tile.first_key).to(weights.dtype)
    from_first = (tile.queries - tile.first_key).to(weights.dtype) * tile.once(total) - beyond
    return from_first if before else -from_first


def on_offset(offset: int) -> Callable[[QuickTile], Rows]:
    """The weight on one diagonal."""

    def mass(tile: QuickTile) -> Rows:
        start = tile.diagonal(offset)
        rows, columns = tile.weights.shape
        if not -rows < start < columns:
            return tile.once(nothing)
        values = tile.weights.diagonal(start)
        found, row = tile.once(nothing).clone(), max(0, -start)
        found[row : row + len(values)] += values
        return found

    return mass


def on_first(tile: QuickTile) -> Rows:
    """One column."""
    return tile.once(nothing) if tile.first_key else tile.weights[:, 0].clone()


def on_sink(tile: QuickTile) -> Rows:
    mass = tile.once(MEASURES["first"].contribution)
    return mass if tile.first_query else mass.masked_fill(tile.queries == 0, float("nan"))


def on_special(tile: Tile) -> Rows:
    return tile.weights @ known(tile.special).to(tile.weights.dtype)


def on_punctuation(tile: Tile) -> Rows:
    return tile.weights @ known(tile.punctuation).to(tile.weights.dtype)


def moved(tile: Tile) -> Rows:
    return tile.weights @ known(tile.norms).to(tile.weights.dtype)


def strongest(tile: Tile) -> Float[Tensor, "2 query"]:
    """The largest weight of each query and its offset; NaN for one without a key."""
    weights = tile.weights
    places = first_largest(weights)
    offsets = tile.keys[places] - tile.queries
    return torch.stack([weights.gather(1, places[:, None])[:, 0], offsets.to(weights.dtype)])


def first_largest(weights: Float[Tensor, "query key"]) -> Int[Tensor, " query"]:
    """The first place of the largest weight of each row, looked for in one segment of its keys alone."""
    rows, keys = weights.shape
    whole = keys - keys % _SEGMENT
    if whole < 2 * _SEGMENT:
        return weights.argmax(-1)
    segments = weights[:, :whole].reshape(rows, -1, _SEGMENT)
    segment = segments.amax(-1).argmax(-1)
    inside = segments[torch.arange(rows, device=weights.device), segment].argmax(-1)
    places = segment * _SEGMENT + inside
    if whole < keys:
        rest = weights[:, whole:].argmax(-1) + whole
        larger = weights.gather(1, rest[:, None]) > weights.gather(1, places[:, None])
        places = rest.where(larger[:, 0], places)
    return places


def largest(weights: Float[Tensor, "query key"], count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest weights of each row with their places, largest first.

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
    """Of equal weights those that come first; `places` are in order."""
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
        "special-tokens": on_special,
        "punctuation": on_punctuation,
        "moved": moved,
        "fixed": strongest,
    }.items()
}
