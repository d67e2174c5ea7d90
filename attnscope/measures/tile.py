"""What a measure sees of a head: weights, and what else it says that it needs.

A tile is a block of one head's weights with the positions of its rows and columns. The rest is None where no
measure needs it or nobody knows it; `Need` says what there is to be known, by the names of these fields.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any  # so that names and meanings are read without torch; axes are checked all the same

Known = TypeVar("Known")


class Need(StrEnum):
    """What a measure needs beside weights and positions: fields of a tile."""

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

    `allowed` says where its queries may look, None where that is not known or everywhere, and `visible`
    at how many keys of all; `special` and `punctuation` are the keys of that sort, `alike` the pairs of
    the same token, `together` those of one of several texts. `norms` are ||f(x)|| of the keys and `moved`
    what each query moves in all, the sum of weight x norm. `distances` of queries and keys are by cosine,
    `scaled` is what entered the softmax. `period` is the length of a sequence that stands twice;
    `circuit` is what the head makes of a token. `slope` is how an answer changes with the head's
    `output`, `direct` the same by the straight way alone, `gradient` how it changes with each of its
    weights.
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
        """How far each key stands behind its query in the text; negative for keys before it."""
        return self.keys[None, :] - self.queries[:, None]

    def at(self, offset: int, values: Float[Tensor, "query key"]) -> Float[Tensor, " pair"]:
        """Those of the pairs' `values` whose key stands `offset` behind its query."""
        return values[self.offsets == offset]

    @cached_property
    def by_norm(self) -> "Tile":
        """The tile with the share of each key in what its query moves, weight x norm, in place of weights.

        Rows sum to 1, also where a sink took a part of the weights; NaN where nothing is moved.
        """
        norms, moved = known(self.norms), known(self.moved)
        shares = self.weights * norms / moved.masked_fill(moved == 0, float("nan"))[:, None]
        made = replace(self, weights=shares)
        made.__dict__["offsets"] = self.offsets  # known already
        return made

    def once(self, contribution: "Callable[[Tile], Tensor]") -> Tensor:
        """What `contribution` makes of this tile, made once for all measures that begin with it."""
        made: dict[Any, Tensor] = self.__dict__.setdefault("_made", {})
        if contribution not in made:
            made[contribution] = contribution(self)
        return made[contribution]


def known(value: Known | None) -> Known:
    """A field of the tile that is there, since the measure said that it needs it."""
    assert value is not None, "a measure is asked only where what it needs is known"
    return value


def whole(weights: Float[Tensor, "query key"], **known: Any) -> list[Tile]:
    """A dense head as its one tile, with what else is `known` of it."""
    import torch

    queries, keys = (torch.arange(length) for length in weights.shape)
    return [Tile(weights, queries, keys, **known)]
