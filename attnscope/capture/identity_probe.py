"""A kernel that shows no weights is made to print them: its answers to the identity in place of V."""

from collections.abc import Callable

import torch
from torch import Tensor


def weights_by_identity(answer: Callable[[Tensor], Tensor], blank: Tensor) -> Tensor:
    """The weights `... query key` of a kernel whose `answer` to values is `... query value_dim`.

    `blank` are zeros laid out like the values, `... key value_dim`: each block of the identity is as wide as
    they are, so that the same variant of the kernel is chosen.
    """
    keys, width = blank.shape[-2:]
    blocks, identity = [], blank.clone()
    for start in range(0, keys, width):
        columns = torch.arange(min(width, keys - start), device=identity.device)
        identity[..., start + columns, columns] = 1
        blocks.append(answer(identity)[..., : len(columns)].clone())
        identity[..., start + columns, columns] = 0
    return torch.cat(blocks, dim=-1)
