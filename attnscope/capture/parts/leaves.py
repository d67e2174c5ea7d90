"""What a run is cut into: parts, softmaxes, and what may be put in the place of a part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor

Site = tuple[str, int]  # an attention module by its path, and how often it had been called before
Key = tuple[str, str, int]  # module, function, how often that was cut there before: the same in every run


class Cut(Enum):
    """Why there is a leaf."""

    EMBEDDING = "looked up"
    INPUT = "what is read meets the first weight"
    ATTENTION = "weights of a softmax met values"
    NONLINEAR = "a function that is not linear"
    CONSTANT = "added, whatever is read"
    PRODUCT = "a product of two that are alive: queries and keys"
    TANGENT = "what is left over where a function behind the last layer is taken at its slope"


@dataclass(frozen=True, eq=False)
class Leaf:
    """A part of the run. `site` is the attention that runs or ran last, "" for none.

    `owner` names the weight that it is, or was looked up in. Of attention `pattern` gives rows of the
    weights, `values` are what they met and `axis` is the one of the heads; of a product `operands` are alive,
    `again` makes it of others. `source` is what was bounded or capped, for scores that are.
    """

    key: Key
    cut: Cut
    tensor: Tensor
    site: Site
    owner: str = ""
    pattern: Callable[[Tensor], Tensor] | None = None
    values: Tensor | None = None
    axis: int | None = None
    operands: tuple[Tensor, Tensor] | None = None
    again: Callable[[Tensor, Tensor], Tensor] = torch.matmul
    source: Tensor | None = None

    @property
    def tokens(self) -> int:
        """The axis of the positions."""
        return -3 if self.axis is not None and self.axis - self.tensor.ndim == -2 else -2


@dataclass(frozen=True, eq=False)
class Softmax:
    """Scores, alive, and their softmax: of these `queries`, None for all."""

    site: Site
    scores: Tensor
    weights: Tensor
    queries: Sequence[int] | None = None

    def row(self, query: int) -> int:
        """Which row is that of a query."""
        return query if self.queries is None else self.queries.index(query)


@dataclass(frozen=True, eq=False)
class Change:
    """Other numbers for some rows of parts: by key where (`mask`) and what."""

    parts: Mapping[Key, tuple[Tensor, Tensor]] = field(default_factory=dict)


def detached(values: Any, clone: bool = False) -> Any:
    if isinstance(values, Tensor):
        return values.detach().clone() if clone else values.detach()
    if isinstance(values, dict):
        return {name: detached(each, clone) for name, each in values.items()}
    if isinstance(values, list | tuple) and not hasattr(values, "_fields"):
        return type(values)(detached(each, clone) for each in values)
    return values
