"""What one layer was given and returned for a long text: an `AttentionCall` without its squares.

Where queries may look is a rule (`Rule`) that is asked for a block of pairs: none is held of all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.arithmetic import Operands
from attnscope.attention import AttentionCall
from attnscope.errors import InputError

Queries = Int[Tensor, " query"]
Keys = Int[Tensor, " key"]
MayLook = Callable[[int, Queries, Keys], Bool[Tensor, "query key"]]


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
    """Some code says whether queries may look at keys; the same for all heads unless `per_head`."""

    may_look: MayLook
    per_head: bool = False

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        return self.may_look(head, queries, keys)


EVERYWHERE = Everywhere()


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the rows, in full: what the model's own kernel gave as their `weights`, by head.

    `rows` are positions of queries, in order.
    """

    rows: Int[Tensor, " row"]
    weights: Mapping[int, Float[Tensor, "row key"]]


@dataclass(frozen=True, eq=False)
class LongCall(AttentionCall):
    """An attention of which nothing of queries by keys is held, unless the model itself wrote it out.

    `rule` says where queries may look, and `allowed` is None; `weights` are empty, those of a `sample` of
    rows aside. Tensors stay on the device of the model.
    """

    rule: Rule = EVERYWHERE
    sample: Sample | None = field(default=None)

    def rows(self, queries: Sequence[int]) -> AttentionCall:
        """Some of its queries in full; with the model's own weights if they are all in the `sample`."""
        places = torch.tensor([*queries], dtype=torch.long, device=self.q.device)
        every = torch.arange(self.k.shape[1], device=places.device)
        heads = range(self.heads if self.rule.per_head else 1)
        allowed = None
        if not isinstance(self.rule, Everywhere):
            allowed = torch.stack([self.rule.block(head, places, every) for head in heads])
        sampled = {} if self.sample is None else {row: i for i, row in enumerate(self.sample.rows.tolist())}
        mine = [sampled.get(query, -1) for query in queries]
        own = self.sample.weights if self.sample is not None and -1 not in mine else {}
        plain = {each.name: getattr(self, each.name) for each in fields(AttentionCall)}
        return replace(
            AttentionCall(**plain).rows(queries),
            allowed=None if allowed is None or bool(allowed.all()) else allowed,
            weights={head: weights[mine] for head, weights in own.items()},
        )

    def operands(self, head: int) -> Operands:
        raise InputError(f"layer {self.layer} was read in tiles: what needs its whole scores is not there")

    def added(self, head: int) -> dict[str, Float[Tensor, "query key"]]:
        """Refused, as `operands` is."""
        raise InputError(f"layer {self.layer} was read in tiles: what is added to its scores is not there")

    def allowed_matrix(self, head: int) -> Bool[Tensor, "query key"]:
        """Refused, as `operands` is."""
        raise InputError(f"layer {self.layer} was read in tiles: where its queries may look is a rule")
