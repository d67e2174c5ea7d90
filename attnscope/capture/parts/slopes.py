"""A run cut into parts up to the answer: what is not linear behind the last layer is taken at its slope.

A head that predicts words may bend what it is given (BERT's transform, a soft cap of logits). A part's share
of the answer is then what it brings along the tangent at the observed numbers,

    f(x) = f'(x0) x + left over,    f(a, b) = a b = a b0 + a0 b + left over,

and what the tangent leaves over is a part of its own. Norms have their observed scale, as everywhere.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.parts.leaves import Cut, Key, Leaf, Site, detached
from attnscope.capture.parts.rule import Rule
from attnscope.capture.trace.operations import BOUNDS, overwrites

_ENTRIES = """gelu relu silu tanh leaky_relu elu selu celu relu6 hardswish hardtanh mish softsign pow square
    softshrink hardshrink erf sigmoid exp log log1p expm1 softplus logsigmoid sqrt"""
ENTRIES = BOUNDS | frozenset(_ENTRIES.split())  # each number by itself


class Sloped(Rule):
    """Cuts up to the answer. `last` is the attention that runs last, `stacks` the lists that layers stand in.

    `strays` are cuts behind the last layer that have no slope here: an answer that hangs on one is no sum.
    """

    def __init__(self, model: nn.Module, last: Site, stacks: Sequence[str]) -> None:
        super().__init__(model)
        self.last, self.stacks = last, tuple(f"{each}." for each in stacks)
        self.strays: set[Key] = set()

    @property
    def _behind(self) -> bool:
        return self._stands_behind(self.site, self.stack[-1])

    def behind(self, leaf: Leaf) -> bool:
        """Whether that was cut behind the last layer."""
        return self._stands_behind(leaf.site, leaf.key[0])

    def _stands_behind(self, site: Site, module: str) -> bool:
        return site == self.last and not f"{module}.".startswith(self.stacks)

    def _term(self, value: Any, like: Tensor, name: str) -> Any:
        plain = isinstance(value, int | float) and not isinstance(value, bool) and value
        if plain and self._behind:  # such as the 1 in x (1 + tanh x)
            number = torch.full((), float(value), dtype=like.dtype, device=like.device)
            return self.part(number, name, Cut.TANGENT)
        return super()._term(value, like, name)

    def _both(self, function: Any, name: str, alive: Tensor, args: Any, kwargs: Any) -> Any:
        if name != "mul" or overwrites(function) or not self._behind:
            return super()._both(function, name, alive, args, kwargs)
        one, two = args[0], args[1]
        rest = self.part(-(one.detach() * two.detach()), name, Cut.TANGENT)
        return one * two.detach() + one.detach() * two + rest

    def _cut(self, function: Any, name: str, alive: Tensor, args: Any, kwargs: Any) -> Any:
        if not self._behind or alive.shape[-1] == 1:
            return super()._cut(function, name, alive, args, kwargs)
        if name in ENTRIES and args and args[0] is alive and not overwrites(function):
            with torch.enable_grad():
                there = alive.detach().requires_grad_()
                made = function(there, *detached(args[1:]), **detached(kwargs))
                if isinstance(made, Tensor) and made.shape == alive.shape:
                    (slope,) = torch.autograd.grad(made.sum(), there)
                    rest = self.part(made.detach() - slope * there.detach(), name, Cut.TANGENT)
                    return alive * slope + rest
        cut = super()._cut
        return self._strayed(lambda: cut(function, name, alive, args, kwargs))

    def _of_constants(self, function: Any, name: str, tensors: Any, args: Any, kwargs: Any) -> Any:
        """Behind the last layer nothing is read: what meets a weight there comes of what was not followed."""
        made = super()._of_constants
        return self._strayed(lambda: made(function, name, tensors, args, kwargs))

    def _strayed(self, make: Callable[[], Any]) -> Any:
        before = {*self.leaves}
        made = make()
        if self._behind:
            self.strays |= {*self.leaves} - before
        return made
