"""What attentions answer, on every route, as it passes by: looked at, and where asked for replaced.

    kernel's answer, or the product with the values  ->  handler  ->  the model goes on with what it says

The library's registries and the model are as they were when it ends, however it ends.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.following.takeover import STAND_INS, KernelInputs
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.model.anatomy.sites import Site
from attnscope.results import Route

Forward = tuple[nn.Module, int]  # a module, and how many of its forwards were through before
Place = tuple[nn.Module, int, int]  # of such a forward the first attention, the second, ...


@dataclass(frozen=True, eq=False)
class Answered:
    """One attention's answer `batch head query value_dim`, and what it was made from.

    `weights` are those that a kernel returns.
    """

    place: Place
    output: Tensor
    source: KernelInputs | TracedAttention
    weights: Tensor | None = None


# what stands in the place of an answer, None where it stays as it is
Handler = Callable[[Answered], Tensor | None]


@contextmanager
def answers(
    sites: Sequence[Site], handle: Handler, *, changing: bool, begun: Mapping[nn.Module, int] | None = None
) -> Iterator["Answers"]:
    """While open, `handle` gets every attention of the sites; what it returns is used only if `changing`.

    `begun` counts the forwards of modules that are not run, since their results are known.
    """
    seen = Answers(handle, begun or {})
    by_route = {route: [site.module for site in sites if site.route is route] for route in Route}
    with ExitStack() as stack:
        for route, stand_in in STAND_INS.items():
            if by_route[route]:
                stack.enter_context(stand_in(by_route[route], seen.of_kernel))
        if followed := by_route[Route.TRACED]:
            change, watch = (seen.of_trace, seen.number) if changing else (None, seen.seen_by_trace)
            stack.enter_context(traced(followed, watch, taken_back=seen.take_back, change=change))
        for module in {site.module for site in sites}:
            stack.enter_context(module.register_forward_hook(seen.leave, always_call=True))
        yield seen


class Answers:
    """Counts the attentions of a forward pass; `none` are places whose answer was no attention's."""

    def __init__(self, handle: Handler, begun: Mapping[nn.Module, int]) -> None:
        self.handle = handle
        self.forwards: Counter[nn.Module] = Counter(begun)
        self.made: Counter[Forward] = Counter()
        self.numbered: list[tuple[TracedAttention, Place]] = []
        self.none: set[Place] = set()

    def leave(self, module: nn.Module, _inputs: Any, _output: Any) -> None:
        self.forwards[module] += 1

    def _next(self, module: nn.Module) -> Place:
        forward = module, self.forwards[module]
        self.made[forward] += 1
        return *forward, self.made[forward] - 1

    def of_kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        output, weights = given.answer()
        new = self.handle(Answered(self._next(given.module), output.transpose(1, 2), given, weights))
        if new is not None:  # code may write over what it is given: it gets a tensor of its own
            output = new.transpose(1, 2).clone(memory_format=torch.contiguous_format)
        return output, weights

    def number(self, one: TracedAttention) -> None:
        self.numbered.append((one, self._next(one.module)))

    def seen_by_trace(self, one: TracedAttention) -> None:
        self.number(one)
        self.handle(Answered(self.numbered[-1][1], one.output, one))

    def of_trace(self, one: TracedAttention, result: Tensor, arranged: Callable[[Tensor], Tensor]) -> None:
        cells = torch.arange(result.numel(), device=result.device).view(result.shape)
        where = torch.unravel_index(arranged(cells), result.shape)  # type: ignore[no-untyped-call]
        new = self.handle(Answered(self.numbered[-1][1], result[where], one))
        if new is not None:
            result[where] = new.to(result.dtype)

    def take_back(self, one: TracedAttention) -> None:
        self.none |= {place for each, place in self.numbered if each is one}
