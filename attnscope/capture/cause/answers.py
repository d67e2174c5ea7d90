"""Hooks on the outputs ("answers") of attentions on every route: read each, and replace it where asked.

    kernel's output, or the product with the values  ->  handler  ->  the model goes on with its result

The library's registries and the model are restored at the end, also after an error.

Large matrix products may be replaced by a sketch (`Sketches`): whether position i of a layer stands for
token i depends only on which positions are read, and a product with a matrix reads each by itself, whatever
its numbers are. So in runs that only look at what changes, a few features of a large matrix are computed, the
others are sums of these, and costly activations of many numbers are left out. Small products and everything
that could move positions run as the model has them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnscope.capture.following.takeover import STAND_INS, KernelInputs
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.model.anatomy.sites import Site
from attnscope.results import Route

Forward = tuple[nn.Module, int]  # a module, and how many of its forwards ended before
Place = tuple[nn.Module, int, int]  # a forward, and the index of the attention in it
LARGE = 2**26  # multiply-adds in one product: sketching a smaller one saves nothing
MANY = 2**20  # numbers, from which on activations are left out
_FEATURES = 16  # computed for each position
_OF_ONE_NUMBER = F.gelu, F.silu


@dataclass(frozen=True, eq=False)
class Answered:
    """One attention's output `batch head query value_dim`, its inputs, and the weights a kernel returned."""

    place: Place
    output: Tensor
    source: KernelInputs | TracedAttention
    weights: Tensor | None = None


# returns the replacement of an output, or None to keep it
Handler = Callable[[Answered], Tensor | None]


@contextmanager
def answers(
    sites: Sequence[Site], handle: Handler, *, changing: bool, begun: Mapping[nn.Module, int] | None = None
) -> Iterator["Answers"]:
    """While open, call `handle` for each attention of the sites; if `changing`, use its result as the output.

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
    """Numbers the attentions of a forward pass; `none` are places that turned out to be no attention."""

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
        if new is not None:  # the model may write over it: it gets a tensor of its own
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


class Sketches(TorchFunctionMode):
    """Torch function mode: approximates large matrix products of the model, and leaves out large activations.

    It does nothing while it is not `active`.
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
    """Sketch of `F.linear`: each feature is a random sum of the same 16 true ones, of about their size."""
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
