"""Large matrices that answer a sketch of their products: the same dependence on tokens, for less arithmetic.

Whether position i of a layer stands for token i does not hang on what a matrix makes of a position, only on
which positions it reads: and a product with a matrix reads each by itself, whatever its numbers are. So in a
muted run over a long text, where nothing but what changes is looked at, a few of a matrix's features are
computed, and the others are sums of these; and of many numbers the costly functions of one number each are
left out. Small products are computed as they are, and all else: what could bring positions to other places
runs as the model has it.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

LARGE = 2**26  # products of a number and a number in one multiplication: of fewer there is nothing to save
MANY = 2**20  # numbers that a function of one number is left out for
_FEATURES = 16  # that are computed of each position
_OF_ONE_NUMBER = F.gelu, F.silu


class Sketches(TorchFunctionMode):
    """While open, products of many positions with a large matrix of the model are sketches of themselves.

    Their activations are what they are made of. Nothing is while it is not `active`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.active = True

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if not self.active:
            return function(*args, **named)
        if function is F.linear and _is_large(*args[:2], **named):
            return _linear(*args, **named)
        if function is torch.addmm and len(args) == 3 and not named and _is_large(args[1], args[2].T):
            return _linear(args[1], args[2].T, args[0])
        if function in _OF_ONE_NUMBER and args and type(args[0]) is Tensor and args[0].numel() >= MANY:
            return args[0]
        return function(*args, **named)


def _is_large(input: Any = None, weight: Any = None, bias: Any = None) -> bool:
    if type(weight) not in (Tensor, nn.Parameter) or type(input) is not Tensor or weight.ndim != 2:
        return False
    positions = input.numel() // max(1, weight.shape[1])
    return weight.is_floating_point() and len(weight) > 2 * _FEATURES and positions * weight.numel() >= LARGE


def _linear(
    input: Float[Tensor, "*position dim"],
    weight: Float[Tensor, "feature dim"],
    bias: Float[Tensor, " feature"] | None = None,
) -> Float[Tensor, "*position feature"]:
    """Some features of every position, and the others as sums of these of the same size."""
    features = len(weight)
    some = F.linear(input, weight[:: features // _FEATURES][:_FEATURES])
    sums = _sums(features).to(weight)
    if bias is None or bias.ndim != 1:
        return F.linear(some, sums, bias)
    # an offset is one more sum, of a feature that is always one: as such it takes no pass over the result
    one = some.new_ones((*some.shape[:-1], 1))
    return F.linear(torch.cat([some, one], -1), torch.cat([sums, bias.expand(features)[:, None]], -1))


@cache
def _sums(features: int) -> Float[Tensor, "feature sketched"]:
    drawn = torch.randn(features, _FEATURES, generator=torch.Generator().manual_seed(0))
    sums: Tensor = drawn / _FEATURES**0.5
    return sums
