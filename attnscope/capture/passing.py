"""What a batch shows of a layer beside its weights: the values, and where queries may look.

For a corpus, whose texts are filled up to one length; like `attnscope.capture.weights`, from which it reads,
it keeps nothing and certifies nothing.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.capture.following.takeover import KernelInputs
from attnscope.capture.kernel_masks import terms_and_allowed
from attnscope.capture.weights import Source, Weights


@dataclass(frozen=True, eq=False)
class Passed:
    """One layer's attention over all rows of a batch, of the heads that were selected.

    `allowed` is None where every query may look everywhere. `values` are by key head, of which `shared` heads
    read each; `heads` are the numbers of the selected ones.
    """

    weights: Float[Tensor, "row head query key"]
    allowed: Bool[Tensor, "row mask_head query key"] | None
    values: Float[Tensor, "row kv_head key value_dim"]
    heads: tuple[int, ...]
    shared: int


class Passing(Weights):
    """Reads batch after batch as `Weights` does; what is made of a layer gets a `Passed`."""

    _mask: tuple[object, Bool[Tensor, "row mask_head query key"] | None] | None = None

    def _handed(self, source: Source, weights: Tensor) -> Any:
        count = source.query.shape[1]
        chosen = self.selection.heads
        heads = tuple(range(count)) if chosen is None else tuple(head % count for head in chosen)
        allowed = self._allowed(source)
        if allowed is not None and allowed.shape[1] > 1:
            allowed = allowed[:, list(heads)]
        return Passed(weights, allowed, source.value.detach(), heads, count // source.value.shape[1])

    def _allowed(self, source: Source) -> Bool[Tensor, "row mask_head query key"] | None:
        if not isinstance(source, KernelInputs):
            return None if source.allowed is None else _four_axes(source.allowed, source.query.shape[0])
        if isinstance(source.mask, Tensor) and self._mask is not None and self._mask[0] is source.mask:
            return self._mask[1]  # one mask serves most layers
        rows = source.query.shape[0]
        each = [terms_and_allowed(source, row)[1] for row in range(rows)]
        found = None if all(one is None for one in each) else _stacked(each)
        self._mask = (source.mask, found)
        return found


def _four_axes(allowed: Tensor, rows: int) -> Bool[Tensor, "row mask_head query key"]:
    full = allowed.detach().reshape((1,) * (4 - allowed.ndim) + tuple(allowed.shape))
    return full.expand(rows, -1, -1, -1)


def _stacked(each: list[Tensor | None]) -> Bool[Tensor, "row mask_head query key"]:
    """Those of all rows; None stands for a row that may look everywhere."""
    known = next(one for one in each if one is not None)
    return torch.stack([torch.ones_like(known) if one is None else one for one in each])
