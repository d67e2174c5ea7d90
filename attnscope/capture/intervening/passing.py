"""The outputs of attentions as they pass by, on every route: looked at, and where asked for replaced.

    kernel's answer, or the product with the values  ->  handler  ->  the model goes on with what it says

The doors are those of capture: the takeover and the custom name of `capture.following`, and the tracer.
The library's registries and the model are as they were when it ends, however it ends.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.following.takeover import STAND_INS, KernelInputs, kernel_weights
from attnscope.capture.intervening.changes import Attended, Place
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site
from attnscope.results import Route

# what stands in the place of an output, None where it stays as it is
Handler = Callable[[Attended], Tensor | None]


@contextmanager
def passing(
    sites: Sequence[Site], handle: Handler, *, changing: bool, begun: Mapping[nn.Module, int] | None = None
) -> Iterator["Passage"]:
    """While open, `handle` gets every attention of the sites; what it returns is used only if `changing`.

    `begun` counts the forwards of modules that are not run, since their results are known.
    """
    passage = Passage(sites, handle, begun or {})
    by_route = {route: [site.module for site in sites if site.route is route] for route in Route}
    with ExitStack() as stack:
        for route, stand_in in STAND_INS.items():
            if by_route[route]:
                stack.enter_context(stand_in(by_route[route], passage.of_kernel))
        if followed := by_route[Route.TRACED]:
            change = passage.of_trace if changing else None
            watch = passage.number if changing else passage.seen_by_trace
            stack.enter_context(traced(followed, watch, taken_back=passage.take_back, change=change))
        for module in passage.site_of:
            stack.callback(module.register_forward_hook(passage.leave, always_call=True).remove)
        yield passage


class Passage:
    """Counts layers and attentions in one forward pass. `none` are places that turned out to be none."""

    def __init__(self, sites: Sequence[Site], handle: Handler, begun: Mapping[nn.Module, int]) -> None:
        self.site_of, self.handle = {site.module: site for site in sites}, handle
        self.forwards: Counter[nn.Module] = Counter(begun)
        self.attentions: defaultdict[tuple[nn.Module, int], int] = defaultdict(int)
        self.numbered: list[tuple[TracedAttention, Place]] = []
        self.none: set[Place] = set()

    def leave(self, module: nn.Module, _inputs: Any, _output: Any) -> None:
        self.forwards[module] += 1

    def _next(self, module: nn.Module) -> Place:
        layer = self.site_of[module].layer_of(self.forwards[module])
        number = self.attentions[module, layer]
        self.attentions[module, layer] += 1
        return layer, number

    def of_kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        output, weights = given.answer()

        @cache
        def seen_weights() -> Tensor:
            return _kernel_weights(given, output, weights)

        def answer_to(values: Tensor) -> Tensor:
            return replace(given, value=values).answer()[0].transpose(1, 2)

        place, answer = self._next(given.module), output.transpose(1, 2)
        seen = Attended(place, answer, seen_weights, given.value, answer_to, _has_sinks(given))
        new = self.handle(seen)
        return (output if new is None else new.transpose(1, 2).contiguous()), weights

    def number(self, traced_one: TracedAttention) -> None:
        self.numbered.append((traced_one, self._next(traced_one.module)))

    def seen_by_trace(self, one: TracedAttention) -> None:
        self.number(one)
        self.handle(_of_trace(one, self.numbered[-1][1], one.output))

    def of_trace(self, one: TracedAttention, result: Tensor, arranged: Callable[[Tensor], Tensor]) -> None:
        cells = torch.arange(result.numel(), device=result.device).view(result.shape)
        where = torch.unravel_index(arranged(cells), result.shape)  # type: ignore[no-untyped-call]
        new = self.handle(_of_trace(one, self.numbered[-1][1], result[where]))
        if new is not None:
            result[where] = new

    def take_back(self, one: TracedAttention) -> None:
        self.none |= {place for each, place in self.numbered if each is one}


def _of_trace(one: TracedAttention, place: Place, output: Tensor) -> Attended:
    def weights() -> Tensor:
        if one.reweighted is not None or one.blended:
            raise InputError(
                f"layer {place[0]}: the model mixes its weights, or its values, after the softmax, so that "
                "no single edge can be cut and no single value zeroed"
            )
        return one.weights

    def answer_to(values: Tensor) -> Tensor:
        met = weights().to(values.dtype)
        return met.matmul(values.repeat_interleave(met.shape[1] // values.shape[1], dim=1))

    return Attended(place, output, weights, one.value, answer_to)


def _has_sinks(given: KernelInputs) -> bool:
    return any(given.options.get(name) is not None for name in ("s_aux", "sinks"))


def _kernel_weights(given: KernelInputs, output: Tensor, weights: Tensor | None) -> Tensor:
    """The weights that the kernel returns, or is made to print; a sink is taken into account only then."""
    shape = (*output.transpose(1, 2).shape[:3], given.key.shape[2])
    if weights is not None and not _has_sinks(given) and weights.shape == shape:
        return weights
    return torch.stack([kernel_weights(given, entry) for entry in range(len(output))])
