"""What passes by in a run without weights: what each attention is handed, rotations, windows, parameters."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers.masking_utils import AttentionMaskInterface

from attnscope.capture.dry_run.products import Count, Products, Shapes, tensors_of
from attnscope.model.anatomy.dimensions import head_count
from attnscope.model.anatomy.positions import is_rotary
from attnscope.model.anatomy.sites import Site
from attnscope.results import Route

_SAME_MASK = {"__getitem__", "to", "expand", "type", "type_as", "contiguous", "clone", "float", "half"}

StandIn = Callable[[Iterable[nn.Module], Callable[[Any], Any]], AbstractContextManager[None]]
StandIns = Mapping[Route, StandIn]  # while open, the kernels of some modules go through a function
Rule = Callable[[Any, Any, Any, Any], Any]
_FAR = 2**40  # of a position, from which any window ends before the start of the text
_WIDEST = 2**24  # tokens; a rule that allows keys that far back has no window


@runtime_checkable
class GivenToKernel(Protocol):
    """What a model hands to its kernel, as the stand-ins for kernels tell it."""

    @property
    def module(self) -> nn.Module: ...
    @property
    def query(self) -> Tensor: ...
    @property
    def value(self) -> Tensor: ...
    @property
    def mask(self) -> Any: ...
    @property
    def options(self) -> dict[str, Any]: ...
    def answer(self) -> tuple[Tensor, Tensor | None]: ...


@dataclass(frozen=True)
class DryCall(Shapes):
    """What one attention was handed, as shapes; `flops` counts all products of the run up to its answer.

    Scale and sinks are None where the operations alone do not show them.
    """

    layer: int
    scale: float | None
    softcap: float | None
    window: int | None
    biased: bool | None
    sinks: bool | None
    flops: int


class Watch(TorchFunctionMode):
    """Notes what passes by: kernels' inputs, products around a softmax, rotations, parameters in use."""

    def __init__(self, watched: Sequence[Site], stand_ins: StandIns) -> None:
        super().__init__()
        self.stand_ins = stand_ins
        self.site_of = {site.module: site for site in watched}
        self.calls: dict[nn.Module, list[DryCall]] = {site.module: [] for site in watched}
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
                    stack.enter_context(module.register_forward_pre_hook(self._enter))
                    stack.enter_context(module.register_forward_hook(self._leave, always_call=True))
                elif is_rotary(module):
                    stack.enter_context(module.register_forward_hook(self._turned))
            for route, stand_in in self.stand_ins.items():
                if mine := [site.module for site in self.site_of.values() if site.route is route]:
                    stack.enter_context(stand_in(mine, self._kernel))
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
            for shapes in self.products[module].after(function, args, kwargs or {}, result):
                self._keep(module, shapes, None, {})
        return result

    def _enter(self, module: nn.Module, _inputs: Any) -> None:
        self.inside.append(module)
        self.products[module] = Products(head_count(module))

    def _leave(self, module: nn.Module, _inputs: Any, _output: Any) -> None:
        self.inside.pop()
        self.entered[module] += 1

    def _turned(self, _module: Any, _inputs: Any, output: Any) -> None:
        parts = output if isinstance(output, tuple | list) else (output,)
        self.turning |= {id(part): part for part in parts if isinstance(part, Tensor)}

    def _masked(self, mask: Tensor, window: int | None) -> None:
        self.masks[id(mask)] = mask, window

    def _kernel(self, given: GivenToKernel) -> tuple[Tensor, Tensor | None]:
        answer = given.answer()
        batch, heads, queries, dim = given.query.shape
        _, key_heads, keys, value_dim = given.value.shape
        scale = given.options.get("scaling")
        _, in_mask = self.masks.get(id(given.mask), (None, None))
        options = {"sliding_window": in_mask} | {
            name: value for name, value in given.options.items() if value is not None
        }
        shapes = Shapes(batch, heads, key_heads, queries, keys, dim, value_dim)
        self._keep(given.module, shapes, dim**-0.5 if scale is None else float(scale), options)
        return answer

    def _keep(
        self, module: nn.Module, shapes: Shapes, scale: float | None, options: Mapping[str, Any]
    ) -> None:
        traced = scale is None
        self.calls[module].append(
            DryCall(
                **vars(shapes),
                layer=self.site_of[module].layer_of(self.entered[module]),
                scale=scale,
                softcap=options.get("softcap"),
                window=options.get("sliding_window"),
                biased=None if traced else options.get("position_bias") is not None,
                sinks=None if traced else any(options.get(name) is not None for name in ("s_aux", "sinks")),
                flops=self.count.flops,
            )
        )


@contextmanager
def windows_of_masks(note: Callable[[Tensor, int | None], None]) -> Iterator[None]:
    """While open, `note` gets every mask that is made for eager attention, with the window of its rule.

    Some models hand their kernel a mask with a window in it and do not tell the kernel how wide that is. The
    rule that transformers makes its masks by can be asked about pairs of positions far apart.
    """
    masks = AttentionMaskInterface._global_mapping
    original = masks["eager"]

    def eager(*args: Any, **options: Any) -> Any:
        mask = original(*args, **options)
        if isinstance(mask, Tensor) and "mask_function" in options:
            note(mask, window_of(options["mask_function"]))
        return mask

    masks["eager"] = eager
    try:
        yield
    finally:
        masks["eager"] = original


def window_of(rule: Rule) -> int | None:
    """How far back the rule lets a query look, itself counted; None where it does not end so.

    Nor where the answer depends on the query, as it does for chunks.
    """
    try:
        here, next_one = (_reach(rule, query) for query in (_FAR, _FAR + 1))
    except Exception:  # a rule that looks up tensors of this text
        return None
    return here if here == next_one else None


def _reach(rule: Rule, query: int) -> int | None:
    """The shortest distance that is not allowed, found by halving; None where all are."""
    if _allows(rule, query, _WIDEST) or not _allows(rule, query, 0):
        return None
    near, far = 0, _WIDEST
    while far - near > 1:
        middle = (near + far) // 2
        near, far = (middle, far) if _allows(rule, query, middle) else (near, middle)
    return far


def _allows(rule: Rule, query: int, distance: int) -> bool:
    zero = torch.zeros((), dtype=torch.long, device="cpu")
    return bool(rule(zero, zero, zero + query, zero + query - distance))
