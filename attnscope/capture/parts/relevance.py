"""AttnLRP (Achtibat et al. 2024): relevance of a score, handed back through a run by rules.

A rule says how the relevance R of a result is divided among what it was made of. Written as R = x g, g is the
gradient of a run in which some operations are replaced by others of the same value:

    linear functions and sums      as they are: each term has its part (LRP-0)
    a norm                         its scale held fixed (identity rule)
    f(x), entry by entry           x times f(x) / x held fixed, so that x has it all (identity rule)
    a product of two               half to each: gated MLPs, weights times values, queries times keys
    a softmax                      the first term of its Taylor series, that is its own gradient

Sums keep relevance, products and norms too. What is added whatever is read (biases, positions, masks) has its
own part, and the softmax does not keep it all: what it leaves is counted. So

    of the entrance + of what is added + left by softmaxes = score

is a test of all rules at once. The same functions as in `why` are known to be linear (`Rule`); what has no
rule is named by `Relevance.stray`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.parts.functions import stranger
from attnscope.capture.parts.leaves import Softmax, detached
from attnscope.capture.parts.rule import Rule
from attnscope.capture.trace.operations import BOUNDS, overwrites
from attnscope.reference import exact

_BY_ENTRY = """gelu relu silu tanh leaky_relu elu selu celu relu6 hardswish hardtanh mish softsign pow square
    softshrink hardshrink erf"""
BY_ENTRY = frozenset(_BY_ENTRY.split()) | BOUNDS
_SAME = 1e-4  # of the largest number: how far a function may lie off itself on the same numbers elsewhere
_SOFTMAX = frozenset({"Softmax"})


@dataclass(frozen=True, eq=False)
class Handed:
    """What is handed to the `entrance` entry by entry, to what is added, and what softmaxes leave.

    `sizes` is the sum of the sizes of all parts, of which rounding is a share.
    """

    entrance: Tensor
    added: float
    softmaxes: float
    sizes: float


class Relevance(Rule):
    """A run whose gradients are AttnLRP's."""

    def stray(self, score: Tensor) -> str | None:
        """What without a rule stands on the way to the score, and in which module; None: nothing."""
        if (name := stranger(score, _SOFTMAX)) is not None:
            return name
        leaves = [each for each in self.leaves.values() if each.cut.name in ("NONLINEAR", "PRODUCT")]
        slopes = _gradients(score, [each.tensor for each in leaves])
        found = (each.key for each, slope in zip(leaves, slopes, strict=True) if _is_felt(slope))
        return next((f"{name} of {module or 'the model'}" for module, name, _ in found), None)

    def handed(self, score: Tensor, entrance: Tensor) -> Handed:
        """The relevance of all that the score was made of; the score itself is what there is to hand out."""
        leaves = [each.tensor for each in self.leaves.values()]
        ends = [each for one in self.softmaxes for each in (one.scores, one.weights)]
        slopes = _gradients(score, [entrance, *leaves, *ends])
        parts = [_times(one, slope) for one, slope in zip([entrance, *leaves, *ends], slopes, strict=True)]
        given, behind = parts[1 : 1 + len(leaves)], parts[1 + len(leaves) :]
        kept = sum(float(each.sum()) for each in behind[::2])
        came = sum(float(each.sum()) for each in behind[1::2])
        sizes = sum(float(each.abs().sum()) for each in parts)
        return Handed(parts[0], sum(float(each.sum()) for each in given), came - kept, sizes)

    def _softmax(self, function: Any, args: Any, kwargs: Any) -> Tensor:
        scores = args[0] if args else kwargs["input"]
        weights: Tensor = function(*args, **kwargs)
        self.softmaxes.append(Softmax(self.site, scores, weights))
        return weights

    def _both(self, function: Any, name: str, alive: Tensor, args: Any, kwargs: Any) -> Any:
        if name != "mul":
            return self._cut(function, name, alive, args, kwargs)
        made = function(_half(args[0]), _half(args[1]), *args[2:], **kwargs)
        return args[0].copy_(made) if overwrites(function) else made

    def _matrix(self, function: Any, name: str, args: Any, kwargs: Any) -> Any:
        first, second = args[0], args[1]
        if first.requires_grad and second.requires_grad:
            return function(_half(first), _half(second), *args[2:], **kwargs)
        return function(*args, **kwargs)

    def _einsum(self, function: Any, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        alive = [each for each in tensors if each.requires_grad]
        if len(alive) == 1:
            return function(*args, **kwargs)
        if len(alive) == 2 and len(tensors) == 2:
            return function(args[0], *map(_half, tensors), **kwargs)
        return self._cut(function, "einsum", alive[0], args, kwargs)

    def _cut(self, function: Any, name: str, alive: Tensor, args: Any, kwargs: Any) -> Any:
        if name in BY_ENTRY and args and args[0] is alive and alive.shape[-1] != 1:
            with torch.no_grad():
                rest = detached(args[1:]), detached(kwargs)
                made = function(alive.detach().clone(), *rest[0], **rest[1])
                of_nothing = function(torch.zeros_like(alive), *rest[0], **rest[1])
            if isinstance(made, Tensor) and made.shape == alive.shape and not of_nothing.any():
                return _fixed(alive, made)
        return super()._cut(function, name, alive, args, kwargs)


@contextmanager
def entry_by_entry(model: nn.Module) -> Iterator[None]:
    """While open, modules that work entry by entry hand all relevance to what they are given.

    These are found out by what they do, however they are written: of one tensor another of its shape, the
    same numbers in any other order, and nothing of nothing.
    """

    def after(module: nn.Module, args: Sequence[Any], made: Any) -> Tensor | None:
        if len(args) != 1 or not isinstance(args[0], Tensor) or not isinstance(made, Tensor):
            return None
        with torch._C.DisableTorchFunction(), torch.enable_grad():
            given = args[0]
            if not given.requires_grad or not given.is_floating_point() or made.shape != given.shape:
                return None
            if not _works_by_entry(module.forward, given.detach(), made.detach()):
                return None
            return _fixed(given, made.detach())

    alone = [each for each in model.modules() if not [*each.children()] and not [*each.parameters()]]
    hooks = [each.register_forward_hook(after) for each in alone]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _works_by_entry(function: Callable[[Tensor], Any], given: Tensor, made: Tensor) -> bool:
    with torch.no_grad():
        elsewhere = function(given.flatten().flip(0).clone())
        of_nothing = function(torch.zeros_like(given))
    if not isinstance(elsewhere, Tensor) or elsewhere.shape != (given.numel(),) or of_nothing.any():
        return False
    largest = float(made.abs().max()) if made.numel() else 0.0
    return bool((elsewhere.flip(0) - made.flatten()).abs().max() <= _SAME * largest)


def _half(alive: Tensor) -> Tensor:
    """The same numbers, bit by bit, with half the gradient."""
    half = alive / 2
    return half + half.detach()


def _fixed(given: Tensor, made: Tensor) -> Tensor:
    """What was made of each entry, as that entry times a factor."""
    there = given.detach()
    return given * torch.where(there == 0, 0.0, made / torch.where(there == 0, 1.0, there))


def _gradients(score: Tensor, of: Sequence[Tensor]) -> Sequence[Tensor | None]:
    alive = [each for each in of if each.requires_grad]
    found = iter(torch.autograd.grad(score, alive, retain_graph=True, allow_unused=True) if alive else ())
    return [next(found) if each.requires_grad else None for each in of]


def _is_felt(slope: Tensor | None) -> bool:
    return slope is not None and bool(slope.any())


def _times(held: Tensor, slope: Tensor | None) -> Tensor:
    """Each entry times its gradient, in float64; of what nothing depends on nothing, were it infinite."""
    if slope is None:
        return exact(torch.zeros(held.shape))
    return exact(torch.where(slope == 0, torch.zeros_like(slope), slope * held.detach()).cpu())
