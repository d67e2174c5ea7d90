"""How much of each key all heads of a layer move together, by length (Kobayashi et al. 2020)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.reference import exact
from attnscope.sdpa import attend


def moved_together(call: AttentionCall, heads: Sequence[int]) -> Float[Tensor, "query key"] | None:
    """||sum over heads of a_ij f(x_j)||, in float64; None where the output projection is not known.

    Heads may pull against each other, so this is less than the sum of their lengths. Never more than one
    query's `key hidden` at once.
    """
    if call.projection is None:
        return None
    values = torch.stack(
        [exact(call.v[call.key_head(head)]) @ exact(call.projection[head]) for head in heads]
    )
    weights = torch.stack([attend(call.operands(head)).weights[0] for head in heads])
    rows = [torch.einsum("hk,hkd->kd", row, values).norm(dim=-1) for row in weights.unbind(1)]
    return torch.stack(rows)
