"""What one layer was given and returned for a long text: an `AttentionCall` without its squares."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.errors import InputError
from attnscope.sdpa import Operands
from attnscope.tiles.rules import EVERYWHERE, Rule


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

    def operands(self, head: int) -> Operands:
        raise InputError(f"layer {self.layer} was read in tiles: what needs its whole scores is not there")

    def added(self, head: int) -> dict[str, Float[Tensor, "query key"]]:
        """Refused, as `operands` is."""
        raise InputError(f"layer {self.layer} was read in tiles: what is added to its scores is not there")

    def allowed_matrix(self, head: int) -> Bool[Tensor, "query key"]:
        """Refused, as `operands` is."""
        raise InputError(f"layer {self.layer} was read in tiles: where its queries may look is a rule")
