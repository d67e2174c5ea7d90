"""A model reduced to what is linear between its heads: what has a matrix answers with random numbers.

While the skeleton stands, modules with matrices of their own no longer look at what they read, and norms keep
only what they do to directions (`gains`). What the model's own code then makes of an output projection's
answer on its way to later heads (residuals, norms, multipliers) is the direct path, and torch's own
derivatives say what it is. Everything is put back afterwards.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from attnscope.capture.circuits.gains import Gain, gain_of
from attnscope.capture.encoded_once import standing_in
from attnscope.capture.running import hooked
from attnscope.reference import widest

Turn = tuple[nn.Module, int]  # a module and how often it had run before


@dataclass(frozen=True, eq=False)
class Passed:
    """One pass through a norm in the skeleton."""

    gain: Gain
    order: int
    given: Tensor
    made: Tensor


@dataclass(eq=False)
class Walked:
    """What a pass through the skeleton left: what was put in, what was read, which norms were passed."""

    put: dict[Turn, Any] = field(default_factory=dict)
    read: dict[Turn, tuple[int, Tensor]] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)


class Skeleton:
    """The skeleton of one model for one input; of the modules in `reads` it is noted what they read."""

    def __init__(self, model: nn.Module, inputs: Mapping[str, Any], reads: set[Turn]) -> None:
        self.model, self.inputs, self.reads = model, inputs, reads
        self.made: defaultdict[nn.Module, list[Any]] = defaultdict(list)
        self.gains: dict[nn.Module, Gain] = {}
        self._observe()

    def _observe(self) -> None:
        """An untouched run: what every module makes that no other learns in, and which of them are norms."""
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
        """One pass; what is drawn by lot can be derived by."""
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
    """What is needed to answer in its place: the shape of numbers, and all else as it is."""
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
