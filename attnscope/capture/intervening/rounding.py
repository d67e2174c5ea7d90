"""A model moved by its own precision: what any other installation's rounding does to its numbers, measured.

Two installations add the same products in another order, and make exp and roots by other means. A sum of K
products then comes out otherwise by about epsilon times the root of their summed squares. Moving every weight
by epsilon, up or down by lot, moves the sum by as much, and every norm and embedding by epsilon too; from
there on the model itself says how far that carries: a peaked softmax or a small vector under a norm amplify
it, a residual stream carries it from layer to layer.
"""

import torch
from torch import nn

from attnscope.capture.arithmetic import epsilon_of


@torch.no_grad()
def move_weights(model: nn.Module, seed: int) -> None:
    """Every weight that has a fraction moved by its machine epsilon, up or down by lot; it stays so.

    The same `seed` gives the same lots. Weights that several modules share are moved once.
    """
    random = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        if weight.is_floating_point():
            lots = torch.randint(0, 2, weight.shape, generator=random) * 2 - 1
            weight.mul_((1 + epsilon_of(weight) * lots).to(weight))
