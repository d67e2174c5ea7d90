"""What passes by in a run without weights: what each attention is handed, rotations, parameters in use."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnscope.capture.dry_run.count import Count
from attnscope.capture.dry_run.products import Products, tensors_of
from attnscope.capture.dry_run.window import windows_of_masks
from attnscope.capture.takeover import KernelInputs, custom_name, takeover
from attnscope.model.anatomy.rotation import is_rotary
from attnscope.model.anatomy.sites import Site
from attnscope.model.anatomy.towers import heads_of
from attnscope.results import Route

_SAME_MASK = {"__getitem__", "to", "expand", "type", "type_as", "contiguous", "clone", "float", "half"}


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


class Watch(TorchFunctionMode):
    """Notes what passes by: kernels' inputs, products around a softmax, rotations, parameters in use."""

    def __init__(self, watched: Sequence[Site]) -> None:
        super().__init__()
        self.site_of = {site.module: site for site in watched}
        self.handed: dict[nn.Module, list[Handed]] = {site.module: [] for site in watched}
        self.entered: Counter[nn.Module] = Counter()
        self.inside: list[nn.Module] = []
        self.turning: dict[int, Tensor] = {}  # cosines, sines and what is made of them, by id
        self.rotated: dict[nn.Module, int] = {}  # cosines of a token
        self.used: set[nn.Parameter] = set()
        self.masks: dict[int, tuple[Tensor, int | None]] = {}  # with their windows, by id
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
            stack.enter_context(windows_of_masks(self._masked))
            stack.enter_context(self.count)
            stack.enter_context(self)
            yield

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        given = tensors_of(args, kwargs or {})
        self.used |= {each for each in given if isinstance(each, nn.Parameter)}
        if given and id(given[0]) in self.masks and getattr(function, "__name__", "") in _SAME_MASK:
            self._masked(result, self.masks[id(given[0])][1])
        if turning := [each for each in given if id(each) in self.turning]:
            if self.inside:
                self.rotated.setdefault(self.inside[-1], turning[0].shape[-1])
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

    def _masked(self, mask: Tensor, window: int | None) -> None:
        self.masks[id(mask)] = mask, window

    def _kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        answer = given.answer()
        batch, heads, queries, dim = given.query.shape
        _, key_heads, keys, value_dim = given.value.shape
        shapes = (batch, heads, key_heads, queries, keys, dim, value_dim)
        scale = given.options.get("scaling")
        _, in_mask = self.masks.get(id(given.mask), (None, None))
        told = {"sliding_window": in_mask} | {
            name: value for name, value in given.options.items() if value is not None
        }
        self._note(given.module, *shapes, dim**-0.5 if scale is None else float(scale), told)
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
