"""Measures of one head: pure maths on weights, one number per head.

A measure sees a tile of true weights and returns one contribution per row. Contributions of the tiles of a
row are combined (added, or the largest taken), then finished over the rows: so the same function serves a
10-token head in one tile and a long one in many. A new measure is one function, one entry in `MEASURES` and
one test; what screens and files say of it stands in that entry.

Rows sum to 1 unless the head has a sink, which takes a part of every row and is no key. Nothing is scaled
up for it: `entropy` adds up the keys alone, a mass is a share of all the weight, the sink's included, and
`distance` counts what went to the sink as no way at all.

Positional measures compare where query and key stand, so both must be the same tokens. A query whose next
or previous token does not exist still counts, with 0 (Clark et al. 2019). Where words are looked at, or
special tokens left out, positions count what is left.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from jaxtyping import Float, Int

from attnscope.errors import InputError
from attnscope.results import MeasureDescription
from attnscope.tokens import printable

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any  # so that names and meanings are read without torch; axes are checked all the same


@dataclass(frozen=True, eq=False)
class Tile:
    """A block of one head's weights with the token positions of its rows and columns."""

    weights: Float[Tensor, "query key"]
    queries: Int[Tensor, " query"]
    keys: Int[Tensor, " key"]

    @property
    def offsets(self) -> Int[Tensor, "query key"]:
        """How far each key stands behind its query in the text; negative for keys before it."""
        return self.keys[None, :] - self.queries[:, None]


Rows = Float[Tensor, " query"]


def entropy(tile: Tile) -> Rows:
    """Entropy of a query's weights in nats: 0 looks at one key, ln(keys) at all alike (Clark et al. 2019)."""
    import torch

    each: Tensor = torch.special.entr(tile.weights)
    return each.sum(-1)


def confidence(tile: Tile) -> Rows:
    """Largest weight of a query, 0 to 1 (Voita et al. 2019)."""
    return tile.weights.amax(-1)


def distance(tile: Tile) -> Rows:
    """|query - key| in tokens, weighted by attention (Vig and Belinkov 2019, there for decoders)."""
    return (tile.weights * tile.offsets.abs()).sum(-1)


def on_offset(offset: int) -> Callable[[Tile], Rows]:
    """The weight on the key `offset` tokens behind the query, 0 where there is none (Clark et al. 2019)."""

    def mass(tile: Tile) -> Rows:
        return (tile.weights * (tile.offsets == offset)).sum(-1)

    return mass


def on_first(tile: Tile) -> Rows:
    """The weight on the first key, of the first query too (Xiao et al. 2023 leave that one out)."""
    return (tile.weights * (tile.keys == 0)).sum(-1)


def larger(first: Tensor, second: Tensor) -> Tensor:
    return first.maximum(second)


def unit_interval(keys: int) -> tuple[float, float]:
    return 0.0, 1.0


@dataclass(frozen=True, eq=False)
class Measure:
    """How a per-row contribution becomes one number per head: the mean over the rows that have a key.

    `limits` are the least and the largest value for a number of keys. A `positional` measure has no meaning
    where queries and keys are not the same tokens.
    """

    description: MeasureDescription
    contribution: Callable[[Tile], Rows]
    limits: Callable[[int], tuple[float, float]] = unit_interval
    combine: Callable[[Tensor, Tensor], Tensor] = add
    positional: bool = False

    @property
    def name(self) -> str:
        return self.description.name

    def __call__(self, tiles: Iterable[Tile]) -> float:
        """The measure of one head whose `tiles` share the same rows; NaN when no row has a key."""
        return float(reduce(self.combine, map(self.contribution, tiles)).nanmean())


def mass_on(
    on: str,
    name: str,
    contribution: Callable[[Tile], Rows],
    paper: str,
    *,
    positional: bool,
    missing: str = "",
) -> Measure:
    """A measure of the mean weight on one key of every query; `missing` says what one without it counts."""
    described = MeasureDescription(
        name=name,
        unit="weight",
        meaning=f"Mean weight of a query on {on}{missing}.",
        paper=paper,
        label=f"weight on {on}",
        strongest=f"head of each layer strongest on {on}",
    )
    return Measure(described, contribution, positional=positional)


_CLARK = "Clark et al. 2019, What Does BERT Look At?"
_XIAO = "Xiao et al. 2023, Efficient Streaming Language Models with Attention Sinks"
_NONE = ", 0 where it has none"

MEASURES = {
    measure.name: measure
    for measure in (
        Measure(
            MeasureDescription(
                name="entropy",
                unit="nats",
                meaning="How evenly a query spreads its weight over the keys.",
                paper=_CLARK,
                most="ln keys",
                low="looks at one key",
                high="at all alike",
                strong="low",
                strongest="most focused head of each layer",
            ),
            entropy,
            lambda keys: (0.0, math.log(keys)),
        ),
        Measure(
            MeasureDescription(
                name="confidence",
                unit="weight",
                meaning="Mean of the largest weight of each query.",
                paper="Voita et al. 2019, Analyzing Multi-Head Self-Attention",
                label="largest weight",
                low="spread thin",
                high="all on one key",
                strongest="most confident head of each layer",
            ),
            confidence,
            combine=larger,
        ),
        Measure(
            MeasureDescription(
                name="distance",
                unit="tokens",
                meaning="Mean distance from a query to its keys, weighted by attention.",
                paper="Vig and Belinkov 2019, Analyzing the Structure of Attention",
                most="keys - 1",
                low="on the query itself",
                high="from end to end",
                strongest="head of each layer that looks farthest",
            ),
            distance,
            lambda keys: (0.0, keys - 1.0),
            positional=True,
        ),
        mass_on("itself", "self", on_offset(0), _CLARK, positional=True),
        mass_on("the previous token", "previous", on_offset(-1), _CLARK, positional=True, missing=_NONE),
        mass_on("the next token", "next", on_offset(1), _CLARK, positional=True, missing=_NONE),
        mass_on("the first key", "first", on_first, _XIAO, positional=False),
    )
}


def parse_measures(text: str) -> tuple[str, ...]:
    """Names of measures with commas between them, or `all`; `InputError` for one that there is not."""
    names = [name.strip() for name in text.split(",")]
    if names == ["all"]:
        return tuple(MEASURES)
    for name in names:
        if name not in MEASURES:
            raise InputError(f"no measure '{printable(name)}': all, or some of {', '.join(MEASURES)}")
    return tuple(dict.fromkeys(names))


def whole(weights: Float[Tensor, "query key"]) -> list[Tile]:
    """A dense head as its one tile."""
    import torch

    queries, keys = (torch.arange(length) for length in weights.shape)
    return [Tile(weights, queries, keys)]
