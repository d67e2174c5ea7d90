"""A run in which every attention answers zeros: then a position depends on other tokens by no attention.

What a kernel would have answered is computed only where somebody asks for it: its output is zeros whatever it
says, and nearly no model looks at its weights.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import NoneType
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from attnscope.capture.cause.sketched import Sketches
from attnscope.capture.following.takeover import STAND_INS, KernelInputs
from attnscope.capture.running import evaluating, hooked, ours, running_again
from attnscope.capture.trace.operations import operation
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.model.anatomy.sites import Site, find_sites
from attnscope.results import Route

Made = TypeVar("Made")

Make = Callable[[Tensor], Made]
_ATTENDS = ("softmax", "scaled_dot_product_attention")


class Handed(NamedTuple, Generic[Made]):
    """What one attention is handed, or what is made of each of these."""

    query: Made
    key: Made
    value: Made


Seen = dict[tuple[nn.Module, int], Handed[Made]]


class _Enough(Exception):
    """Raised inside the forward pass once every layer that was asked for has been seen."""


def handed_over(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    wanted: Mapping[nn.Module, int],
    make: Make[Made],
) -> Seen[Made]:
    """What is made of what modules hand over, by module and call, in a muted run.

    `make` gets queries, keys and values as `batch head position dim` while they pass by, and nothing else is
    kept of them. The run ends when each of the `wanted` modules has been run as often as is wanted of it.
    `Refused` where the model does not run like this.
    """
    seen: Seen[Made] = {}
    with (
        suppress(_Enough),
        evaluating(model),
        running_again(model),
        _muted(model, watched, wanted, seen, make),
    ):
        model(**inputs)
    return seen


@contextmanager
def _muted(
    model: nn.Module,
    watched: Sequence[Site],
    wanted: Mapping[nn.Module, int],
    seen: Seen[Made],
    make: Make[Made],
) -> Iterator[None]:
    """While open, all attention answers zeros, and what the wanted modules hand over comes to `seen`."""
    calls: Counter[nn.Module] = Counter()
    forwards: Counter[nn.Module] = Counter()

    handed: dict[nn.Module, list[tuple[object, Handed[Made]]]] = defaultdict(list)
    kernels = Kernels()

    @ours
    def keep(one: KernelInputs | TracedAttention) -> None:
        if one.module in wanted:
            made = Handed(*(make(each.detach()) for each in (one.query, one.key, one.value)))
            handed[one.module].append((one, made))

    def of_kernel(given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        keep(given)
        return kernels.answer(given)

    def taken_back(one: TracedAttention) -> None:
        handed[one.module] = [each for each in handed[one.module] if each[0] is not one]

    def leave(module: nn.Module, _inputs: Any, _output: Any) -> None:
        forwards[module] += 1
        for _source, made in handed.pop(module, []):
            seen[module, calls[module]] = made
            calls[module] += 1
        if all(forwards[each] >= times for each, times in wanted.items()):
            raise _Enough

    route_of = {site.module: site.route for site in (*find_sites(model), *watched)}
    by_route = {route: [each for each, its in route_of.items() if its is route] for route in Route}
    with ExitStack() as stack:
        stack.enter_context(Sketches())  # outermost: the tracer sees each operation as it was asked for
        for route, stand_in in STAND_INS.items():
            if by_route[route]:
                stack.enter_context(stand_in(by_route[route], of_kernel))
        if by_route[Route.TRACED]:
            stack.enter_context(_silence(by_route[Route.TRACED]))
            stack.enter_context(traced(by_route[Route.TRACED], keep, taken_back=taken_back))
        for module in wanted:
            stack.enter_context(module.register_forward_hook(leave))
        yield


@contextmanager
def _silence(modules: Iterable[nn.Module]) -> Iterator[None]:
    silence, modules = _Silence(), [*modules]
    entering = (module.register_forward_pre_hook(silence.enter) for module in modules)
    leaving = (module.register_forward_hook(silence.leave, always_call=True) for module in modules)
    with hooked(entering), hooked(leaving), silence:
        yield


class _Silence(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.inside = 0

    def enter(self, _module: nn.Module, _inputs: Any) -> None:
        self.inside += 1

    def leave(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        self.inside -= 1

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        attends = self.inside and isinstance(result, Tensor) and operation(function) in _ATTENDS
        return torch.zeros_like(result) if attends else result


class Unasked(Tensor):
    """Weights that the kernel is asked for as soon as they are used."""

    ask: Callable[[], Tensor]

    @classmethod
    def to_be_asked(cls, ask: Callable[[], Tensor]) -> "Unasked":
        made: Unasked = torch.empty(0).as_subclass(cls)
        made.ask = ask
        return made

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        real = tree_map_only(Unasked, lambda each: each.ask(), (args, dict(kwargs or {})))
        return function(*real[0], **real[1])


class Kernels:
    """Answers for kernels: zeros laid out like their output, which those of one shape have in common."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], tuple[Tensor, bool]] = {}

    def answer(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        """Zeros, and the weights if the kernel returns them."""
        vectors = (given.query, given.key, given.value)
        shape = type(given.module), given.kernel, *((each.shape, each.dtype) for each in vectors)
        if shape not in self.known:
            self.known[shape] = _by_two(given) or _by_all(given)
        zeros, weighs = self.known[shape]
        return zeros.clone(), Unasked.to_be_asked(lambda: _weights(given)) if weighs else None


def _by_two(given: KernelInputs) -> tuple[Tensor, bool] | None:
    """Zeros for the output of all entries of the batch, and whether there are weights, as the first two tell.

    None where these cannot be asked for alone, or do not tell how all are laid out.
    """
    if type(given.mask) not in (NoneType, Tensor):  # other masks cannot be cut to some entries
        return None
    with suppress(RuntimeError, ValueError, TypeError, LookupError):
        output, weights = given.some(slice(2)).answer()
        if output.is_contiguous() and len(output) == 2:
            return output.new_zeros(len(given.query), *output.shape[1:]), weights is not None
    return None


def _by_all(given: KernelInputs) -> tuple[Tensor, bool]:
    output, weights = given.answer()
    return torch.zeros_like(output), weights is not None


def _weights(given: KernelInputs) -> Tensor:
    weights = given.answer()[1]
    assert weights is not None, "it returned some for the same shapes"
    return weights
