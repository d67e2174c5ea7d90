"""Tiles of a long head know shorter ways to what some measures ask: the same numbers, a fraction of the work.

A measure is written once, in `attnscope.measures`; where its contribution stands in `QUICK` a tile of
consecutive positions answers by another way. tests/tiles hold every one against the plain form. A rank
correlation of all pairs has none over tiles.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.measures import MEASURES, Tile, near
from attnscope.measures.tile import known
from attnscope.tiles.softmax import Weighted

Rows = Float[Tensor, " query"]
OnKeys = Float[Tensor, "2 query"]
_SEGMENT = 32  # keys among which the largest weight is looked for first


@dataclass(frozen=True, eq=False)
class QuickTile(Tile):
    """A tile whose queries and keys are consecutive positions, from `first_query` and `first_key` on.

    Where its weights came from logarithms these are known, a finite number where a weight is 0.
    """

    first_query: int = 0
    first_key: int = 0

    def know(self, logs: Float[Tensor, "query key"] | None, rows: Weighted | None) -> None:
        """The logarithms of these weights, or what was summed by them; no tile made of this one has it."""
        self.__dict__.update(_logs=logs, _summed=rows)

    @property
    def summed(self) -> Weighted | None:
        """What the first pass has summed over each row, where it has."""
        return self.__dict__.get("_summed")

    def take_logs(self) -> Float[Tensor, "query key"]:
        """The logarithms, for once: whoever asks may write over them."""
        logs: Tensor | None = self.__dict__.pop("_logs", None)
        return self.weights.clamp_min(torch.finfo(self.weights.dtype).tiny).log_() if logs is None else logs

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


def no_such_keys(tile: Tile) -> OnKeys:
    """No weight on keys that are not among these, and none that could be looked at."""
    none = tile.once(nothing)
    return torch.stack([none, torch.zeros_like(none)])


def adds_nothing(tile: Tile, contribution: Tensor) -> bool:
    """Whether that is what a contribution is known to be, without a look at its numbers."""
    return contribution is tile.once(nothing) or contribution is tile.once(no_such_keys)


def entropy(tile: QuickTile) -> Rows:
    """-sum w ln w, by logarithms that are known or taken of many at once."""
    if tile.summed is not None:
        return tile.summed.entropy
    return -tile.take_logs().mul_(tile.weights).sum(-1)


def total(tile: Tile) -> Rows:
    """All weight on these keys."""
    summed = tile.summed if isinstance(tile, QuickTile) else None
    return summed.total if summed is not None else tile.weights.sum(-1)


def distance(tile: QuickTile) -> Rows:
    """Where all keys lie on one side of all queries, by the mean place of the keys alone."""
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
    """|query - key| of a tile whose first query is `start` positions behind its first key."""
    queries, keys = torch.arange(start, start + rows, device=device), torch.arange(columns, device=device)
    return (queries[:, None] - keys[None, :]).abs().to(dtype)


def on_offset(offset: int) -> Callable[[QuickTile], OnKeys]:
    """The weight on one diagonal."""

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
    """One column."""
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
    """The weight on all keys of a sort."""

    def mass(tile: Tile) -> OnKeys:
        of_sort = known(keys(tile)).to(tile.weights.dtype)
        found = tile.weights @ of_sort
        seen = of_sort.sum() if tile.allowed is None else tile.allowed.to(of_sort) @ of_sort
        return torch.stack([found, seen.expand_as(found)])

    return mass


def moved(tile: Tile) -> Rows:
    return tile.weights @ known(tile.norms).to(tile.weights.dtype)


def in_segments(tile: Tile) -> Float[Tensor, "query segment"]:
    """The largest weight of each of `_SEGMENT` keys, and of those that are left."""
    weights = tile.weights
    whole = weights.shape[1] - weights.shape[1] % _SEGMENT
    found = weights[:, :whole].reshape(len(weights), -1, _SEGMENT).amax(-1)
    return found if whole == weights.shape[1] else torch.cat([found, weights[:, whole:].amax(-1, True)], 1)


def confidence(tile: Tile) -> Rows:
    return tile.once(in_segments).amax(-1)


def strongest(tile: Tile) -> Float[Tensor, "2 query"]:
    """The largest weight of each query and its offset, looked for in one segment of its keys alone.

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
    if each.contribution is near.pairs
}
