"""How much a head can move of each key: the length of its value as it arrives in the hidden state.

A weight says how much of a key's value is taken, not how large that is: weight times ||f(x)|| is what arrives
(Kobayashi et al. 2020, Attention is Not Only a Weight). f is the value, its offset included, times the head's
part of the output projection; that one's own offset belongs to no key and is left out.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any


def moved_norms(
    values: Float[Tensor, "kv_head key value_dim"], projection: Float[Tensor, "head value_dim hidden"]
) -> Float[Tensor, "head key"]:
    """||f(x)|| of every key in each head, in units of the hidden state, in float64.

    Heads that share a value head read the same values. Never more than one head's `key hidden` at once.
    """
    import torch

    from attnscope.reference import exact

    shared = len(projection) // len(values)
    each = (
        (exact(values[head // shared]) @ exact(matrix)).norm(dim=-1) for head, matrix in enumerate(projection)
    )
    return torch.stack(list(each))
