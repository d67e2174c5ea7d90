"""A model reduced to what is linear between its heads: modules with matrices return random numbers.

While the skeleton stands, modules with matrices of their own no longer look at what they read, and norms keep
only what they do to directions. What the model's own code then makes of an output projection's result on its
way to later heads (residuals, norms, multipliers) is the direct path, and torch's own derivatives say what it
is. Everything is put back afterwards.

A norm divides each token by a number of its own, which changes no direction, adds an offset, which comes from
no head, and multiplies by a weight. Which of `weight` and `1 + weight` it is, and whether the mean is taken
away first, is tried on what the module was seen to read and make; with the weights of other features, or
with the mean treated the other way, it must not fit.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from attnscope.capture.running import hooked, standing_in
from attnscope.model.anatomy.placed import weight_of
from attnscope.reference import EXACT, exact, widest

_ROWS, _ROUNDINGS = 16, 32
Turn = tuple[nn.Module, int]  # a module and how often it had run before


@dataclass(frozen=True, eq=False)
class Gain:
    """A norm as `scale * (x - mean) * weight + offset`, without the mean where it is not `centred`.

    `scales` says that the scale differs from token to token, as in every norm; `part` is the module.
    """

    centred: bool
    weight: Float[Tensor, " hidden"]
    scales: bool
    offset: bool
    part: nn.Module

    def forward(self, x: Float[Tensor, "*token hidden"]) -> Float[Tensor, "*token hidden"]:
        """Apply the norm to directions: weight and centring, without scale and offset."""
        x = x - x.mean(-1, keepdim=True) if self.centred else x
        return x * self.weight.to(x)

    def backward(self, x: Float[Tensor, "*token hidden"]) -> Float[Tensor, "*token hidden"]:
        """Apply the transposed map of `forward`."""
        x = x * self.weight.to(x)
        return x - x.mean(-1, keepdim=True) if self.centred else x


def gain_of(part: nn.Module, given: Tensor, made: Tensor) -> Gain | None:
    """The `Gain` by which `part` maps `given` to `made`; None where it does more than a norm, or only scales.

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
    """Random numbers and the module's output for them; None where it does not take them."""
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
    """The scale of each row with which this weight and offset give `made`; None where none fits."""
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


@dataclass(frozen=True, eq=False)
class Passed:
    """One pass through a norm in the skeleton."""

    gain: Gain
    order: int
    given: Tensor
    made: Tensor


@dataclass(eq=False)
class Walked:
    """Record of a pass through the skeleton: random results put in, tensors read, norms passed."""

    put: dict[Turn, Any] = field(default_factory=dict)
    read: dict[Turn, tuple[int, Tensor]] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)


class Skeleton:
    """The skeleton of one model for one input; it records the inputs of the modules in `reads`."""

    def __init__(self, model: nn.Module, inputs: Mapping[str, Any], reads: set[Turn]) -> None:
        self.model, self.inputs, self.reads = model, inputs, reads
        self.made: defaultdict[nn.Module, list[Any]] = defaultdict(list)
        self.gains: dict[nn.Module, Gain] = {}
        self._observe()

    def _observe(self) -> None:
        """Run the model untouched: keep the shapes that modules with matrices return, and find the norms."""
        leaves = [each for each in self.model.modules() if _is_leaf(each)]
        frozen = {each for each in leaves if any(own.ndim > 1 for own in each.parameters(recurse=False))}
        tried: set[nn.Module] = set()

        def hook(part: nn.Module, args: tuple[Any, ...], made: Any) -> None:
            if part in frozen:
                self.made[part].append(_shape_of(made))
            elif part not in tried and len(args) == 1 and _alike(args[0], made):
                tried.add(part)
                gain = gain_of(part, args[0], made)
                if gain is not None:
                    self.gains[part] = gain

        with hooked(each.register_forward_hook(hook) for each in leaves), torch.no_grad():
            self.model(**self.inputs)

    def run(self, seed: int = 0) -> Walked:
        """Run the skeleton once; its random numbers require gradients."""
        seen, random = Walked(), torch.Generator().manual_seed(seed)
        turns: Counter[nn.Module] = Counter()
        clock = iter(range(10**9))

        def stand_in(part: nn.Module) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                turn = part, turns[part]
                turns[part] += 1
                if turn in self.reads:
                    seen.read[turn] = next(clock), next(iter((*args, *kwargs.values())))
                seen.put[turn] = _drawn(self.made[part][turn[1]], random)
                return tree_map_only(Tensor, Tensor.clone, seen.put[turn])  # the model may write into it

            return forward

        def weigh(part: nn.Module, gain: Gain) -> Any:
            def forward(x: Tensor) -> Tensor:
                made = gain.forward(x)
                seen.passed.append(Passed(gain, next(clock), x, made))
                return made

            return forward

        replaced = {part: stand_in(part) for part in self.made}
        replaced |= {part: weigh(part, gain) for part, gain in self.gains.items()}
        with hooked(starmap(standing_in, replaced.items())), torch.enable_grad():
            self.model(**self.inputs)
        return seen


def _is_leaf(part: nn.Module) -> bool:
    return not any(True for child in part.children() for _ in child.parameters())


def _alike(given: Any, made: Any) -> bool:
    both = isinstance(given, Tensor) and isinstance(made, Tensor)
    return both and given.shape == made.shape and given.ndim > 1 and given.is_floating_point()


def _shape_of(made: Any) -> Any:
    """A module's output with each floating-point tensor replaced by its shape."""
    if isinstance(made, Tensor) and made.is_floating_point():
        return _Shape(made.shape, made.device)
    if isinstance(made, tuple | list):
        return [_shape_of(each) for each in made]
    return made


@dataclass(frozen=True)
class _Shape:
    sizes: torch.Size
    device: torch.device


def _drawn(shape: Any, random: torch.Generator) -> Any:
    if isinstance(shape, _Shape):
        drawn = torch.randn(shape.sizes, generator=random, dtype=widest(shape.device))
        return drawn.to(shape.device).requires_grad_()
    if isinstance(shape, list):
        return tuple(_drawn(each, random) for each in shape)
    return shape
