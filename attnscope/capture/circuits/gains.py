"""What a norm does to the direction of its input: centres it, weighs it by feature. Found by reading back.

A norm divides each token by a number of its own, which changes no direction, adds an offset, which comes from
no head, and multiplies by a weight. Which of `weight` and `1 + weight` it is, and whether the mean is taken
away first, is tried on what the module was seen to read and make; with the weights of other features, or
with the mean treated the other way, it must not fit.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.model.anatomy.placed import weight_of
from attnscope.reference import EXACT, exact

_ROWS, _ROUNDINGS = 16, 32


@dataclass(frozen=True, eq=False)
class Gain:
    """`scale * (x - mean) * weight + offset`, without the mean where it is not `centred`.

    `scales` says that the scale differs from token to token, as in every norm; `part` is the module.
    """

    centred: bool
    weight: Float[Tensor, " hidden"]
    scales: bool
    offset: bool
    part: nn.Module

    def forward(self, x: Float[Tensor, "*token hidden"]) -> Float[Tensor, "*token hidden"]:
        """What becomes of directions: no scale, no offset."""
        x = x - x.mean(-1, keepdim=True) if self.centred else x
        return x * self.weight.to(x)

    def backward(self, x: Float[Tensor, "*token hidden"]) -> Float[Tensor, "*token hidden"]:
        """The transposed map."""
        x = x * self.weight.to(x)
        return x - x.mean(-1, keepdim=True) if self.centred else x


def gain_of(part: nn.Module, given: Tensor, made: Tensor) -> Gain | None:
    """What `part` does to the directions of its input, where that is all it does; else None.

    It must hold for what it read in the run and for other numbers, whose mean is far from 0: the mean of what
    it reads may happen to be taken away already.
    """
    epsilon = max(torch.finfo(each.dtype).eps for each in (given, made))
    pairs = [(given, made), _other(part, given)]
    given, made = (torch.cat([_some(pair[side]) for pair in pairs if pair]) for side in (0, 1))
    for weight, offset in _hypotheses(part, given.shape[1]):
        fits = {centred: _scales(given, made, weight, offset, centred, epsilon) for centred in (True, False)}
        for centred, scales in fits.items():
            if scales is None or fits[not centred] is not None:
                continue
            even = bool((weight == weight[0]).all())
            exchanged = _scales(given, made, weight.roll(1), offset, centred, epsilon)
            if even or exchanged is None:
                steady = bool(((scales - scales[0]).abs() <= _ROUNDINGS * epsilon * scales[0].abs()).all())
                plain = even and steady and not centred  # a number times what it read
                return None if plain else Gain(centred, weight, not steady, bool((offset != 0).any()), part)
    return None


def _some(rows: Tensor) -> Float[Tensor, "row hidden"]:
    rows = rows.detach().flatten(0, -2)
    return exact(rows[:: -(-len(rows) // _ROWS)].cpu())


def _other(part: nn.Module, given: Tensor) -> tuple[Tensor, Tensor] | None:
    """Numbers by lot and what the module makes of them; None where it does not take them."""
    random = torch.Generator().manual_seed(0)
    drawn = (1 + torch.randn(1, _ROWS, given.shape[-1], generator=random)).to(given.device, given.dtype)
    try:
        made = part.forward(drawn)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return None
    return (drawn, made) if isinstance(made, Tensor) and made.shape == drawn.shape else None


def _hypotheses(part: nn.Module, size: int) -> list[tuple[Tensor, Tensor]]:
    named = [weight_of(part, name) for name, each in part.named_parameters(recurse=False) if each.ndim == 1]
    own = [exact(each.detach().cpu()) for each in named if each is not None]
    own = [each for each in own if len(each) == size]
    none, one = torch.zeros(size, dtype=EXACT), torch.ones(size, dtype=EXACT)
    weights = [one] if not own else [each for first in own for each in (first, 1 + first)]
    if len(own) < 2:
        return [(weight, none) for weight in weights]
    return [(own[0], own[1]), (1 + own[0], own[1]), (own[1], own[0])]


def _scales(
    given: Float[Tensor, "row hidden"],
    made: Float[Tensor, "row hidden"],
    weight: Float[Tensor, " hidden"],
    offset: Float[Tensor, " hidden"],
    centred: bool,
    epsilon: float,
) -> Float[Tensor, " row"] | None:
    """The factor of each row with which this is what was made, None where there is none."""
    direction = (given - given.mean(-1, keepdim=True) if centred else given) * weight
    rest = made - offset
    size = direction.square().sum(-1)
    there = size > 0  # a row of equal numbers has no direction
    if not bool(there.any()):
        return None
    scales = torch.where(there, (direction * rest).sum(-1) / size, 0.0)
    largest = given.abs().amax(-1, keepdim=True) * weight.abs()
    allowed = _ROUNDINGS * epsilon * (scales.abs()[:, None] * largest + offset.abs() + made.abs())
    off = (rest - scales[:, None] * direction).abs()
    fits = bool((off <= allowed).all()) and bool((scales[there] > 0).all())
    return scales[there] if fits else None
