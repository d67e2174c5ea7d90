"""Where queries may look, as a rule that is asked for a block of pairs: none is held of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

Queries = Int[Tensor, " query"]
Keys = Int[Tensor, " key"]
Asked = Callable[[int, Queries, Keys], Bool[Tensor, "query key"]]


@runtime_checkable
class Rule(Protocol):
    """`per_head` says whether heads differ; where they do not, any head may be asked."""

    @property
    def per_head(self) -> bool: ...

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        """Whether each of these queries may look at each of these keys."""
        ...


@dataclass(frozen=True)
class Everywhere:
    """Every query may look at every key."""

    per_head: bool = False

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        return torch.ones(len(queries), len(keys), dtype=torch.bool, device=queries.device)


@dataclass(frozen=True, eq=False)
class Written:
    """What somebody has written out already: a model that makes its masks itself, or a small example."""

    allowed: Bool[Tensor, "#head query key"]

    @property
    def per_head(self) -> bool:
        return len(self.allowed) > 1

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        one = self.allowed[head if self.per_head else 0]
        return one[queries][:, keys].to(queries.device)


@dataclass(frozen=True, eq=False)
class Symbolic:
    """A rule that some code holds, `asked(head, queries, keys)`; one for all heads unless `per_head`."""

    asked: Asked
    per_head: bool = False

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        return self.asked(head, queries, keys)


EVERYWHERE = Everywhere()
