"""Running a model that has no weights: on the meta device an operation gives a shape and costs nothing.

So what each attention will be handed (shapes, scale, soft cap, window, sinks), how many products there are
until then, and whether positions are rotated there, is known at any length before a weight is read.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from attnscope.capture.empty_products import Products
from attnscope.capture.record import evaluating
from attnscope.capture.takeover import KernelInputs, custom_name, takeover
from attnscope.errors import one_line
from attnscope.model.anatomy import Site
from attnscope.model.empty_inputs import empty_inputs
from attnscope.model.positions import is_rotary
from attnscope.model.towers import heads_of
from attnscope.results import Route


@dataclass(frozen=True)
class Handed:
    """What one attention was handed, as shapes; `flops` counts all products of the run up to its answer.

    `blocks` is how many separate attentions (windows) stand on the batch axis. Scale and sinks are None
    where the operations alone do not show them.
    """

    layer: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    dim: int
    value_dim: int
    blocks: int
    scale: float | None
    softcap: float | None
    window: int | None
    biased: bool | None
    sinks: bool | None
    flops: int


@dataclass(frozen=True, eq=False)
class EmptyRun:
    """What was seen, by module, and why the run ended early, if it did.

    `rotated` are the modules whose attention used a rotation, `used` the parameters that anything used.
    """

    handed: Mapping[nn.Module, Sequence[Handed]]
    rotated: frozenset[nn.Module]
    used: frozenset[nn.Parameter]
    problem: str = ""


def run_empty(model: nn.Module, watched: Sequence[Site], length: int) -> EmptyRun:
    """One pass of `model`, which is on the meta device, for `length` tokens, as far as shapes suffice.

    Mixtures of experts are run with as many experts a token as the model chooses.
    """
    seen = _Watch(watched)
    problem = ""
    try:
        with evaluating(model), _few_experts(model), seen.watching(model), torch.device("meta"):
            model(**empty_inputs(model, length))
    except Exception as error:  # whatever a model does with numbers that are not there
        problem = one_line(error)
    return EmptyRun(seen.handed, frozenset(seen.rotated), frozenset(seen.used), problem)


class _Watch(TorchFunctionMode):
    """Notes what passes by: kernels' inputs, products around a softmax, rotations, parameters in use."""

    def __init__(self, watched: Sequence[Site]) -> None:
        super().__init__()
        self.site_of = {site.module: site for site in watched}
        self.handed: dict[nn.Module, list[Handed]] = {site.module: [] for site in watched}
        self.entered: Counter[nn.Module] = Counter()
        self.inside: list[nn.Module] = []
        self.turning: dict[int, Tensor] = {}  # cosines, sines and what is made of them, by id
        self.rotated: set[nn.Module] = set()
        self.used: set[nn.Parameter] = set()
        self.products: dict[nn.Module, Products] = {}
        self.count = Count()

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        with ExitStack() as stack:
            for module in model.modules():
                if module in self.site_of:
                    stack.callback(module.register_forward_pre_hook(self._enter).remove)
                    stack.callback(module.register_forward_hook(self._leave, always_call=True).remove)
                elif is_rotary(module):
                    stack.callback(module.register_forward_hook(self._turned).remove)
            for route, way in ((Route.TAKEOVER, takeover), (Route.CUSTOM, custom_name)):
                if mine := [site.module for site in self.site_of.values() if site.route is route]:
                    stack.enter_context(way(mine, self._kernel))
            stack.enter_context(self.count)
            stack.enter_context(self)
            yield

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        given = [each for each in (*args, *(kwargs or {}).values()) if isinstance(each, Tensor)]
        self.used |= {each for each in given if isinstance(each, nn.Parameter)}
        if self.turning and any(id(each) in self.turning for each in given):
            if self.inside:
                self.rotated.add(self.inside[-1])
            else:
                self._turned(None, None, result)
        if self.inside and self.site_of[self.inside[-1]].route is Route.TRACED:
            module = self.inside[-1]
            for found in self.products[module].after(function, args, kwargs or {}, result):
                self._note(module, *found, None, {})
        return result

    def _enter(self, module: nn.Module, _inputs: Any) -> None:
        self.inside.append(module)
        self.products[module] = Products(heads_of(module))

    def _leave(self, module: nn.Module, _inputs: Any, _output: Any) -> None:
        self.inside.pop()
        self.entered[module] += 1

    def _turned(self, _module: Any, _inputs: Any, output: Any) -> None:
        parts = output if isinstance(output, tuple | list) else (output,)
        self.turning |= {id(part): part for part in parts if isinstance(part, Tensor)}

    def _kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        answer = given.answer()
        batch, heads, queries, dim = given.query.shape
        _, key_heads, keys, value_dim = given.value.shape
        shapes = (batch, heads, key_heads, queries, keys, dim, value_dim)
        scale = given.options.get("scaling")
        self._note(given.module, *shapes, dim**-0.5 if scale is None else float(scale), given.options)
        return answer

    def _note(
        self,
        module: nn.Module,
        blocks: int,
        heads: int,
        key_heads: int,
        queries: int,
        keys: int,
        dim: int,
        value_dim: int,
        scale: float | None,
        options: Mapping[str, Any],
    ) -> None:
        site, traced = self.site_of[module], scale is None
        self.handed[module].append(
            Handed(
                layer=site.layers[min(self.entered[module], len(site.layers) - 1)],
                heads=heads,
                key_heads=key_heads,
                queries=queries,
                keys=keys,
                dim=dim,
                value_dim=value_dim,
                blocks=blocks,
                scale=scale,
                softcap=options.get("softcap"),
                window=options.get("sliding_window"),
                biased=None if traced else options.get("position_bias") is not None,
                sinks=None if traced else any(options.get(name) is not None for name in ("s_aux", "sinks")),
                flops=self.count.flops,
            )
        )


class Count(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the floating-point operations of products, two for each multiplication with its addition.

    A question whose answer is yes or no is answered yes: of a text without padding that is mostly so.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is torch.ops.aten._local_scalar_dense.default and args[0].dtype == torch.bool:
            return True
        result = function(*args, **kwargs)
        reckon = flop_registry.get(function._overloadpacket)
        if reckon is not None:
            self.flops += reckon(*args, **kwargs, out_val=result)
        return result


@contextmanager
def _few_experts(model: nn.Module) -> Iterator[None]:
    """While open, experts are run as batched products, which no number decides about."""
    configs = {
        id(config): config for module in model.modules() if (config := getattr(module, "config", None))
    }
    held = {key: vars(config).get("_experts_implementation_internal", "") for key, config in configs.items()}
    try:
        for key, config in configs.items():
            if held[key] != "":
                config._experts_implementation_internal = "batched_mm"
        yield
    finally:
        for key, config in configs.items():
            if held[key] != "":
                config._experts_implementation_internal = held[key]
