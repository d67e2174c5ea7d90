"""What passes by in a run without weights: what each attention is handed, rotations, windows, parameters.

Of products, and of an attention that a model writes out itself, only lengths of axes are looked at. They are
told whatever the layout, since the softmax runs over keys and rows of it are queries; the heads are the axis
before these, as the models hold them.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry
from transformers.masking_utils import AttentionMaskInterface

from attnscope.model.anatomy.positions import is_rotary
from attnscope.model.anatomy.sites import Site
from attnscope.model.anatomy.towers import head_count
from attnscope.results import Route

_PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"}
_SAME_MASK = {"__getitem__", "to", "expand", "type", "type_as", "contiguous", "clone", "float", "half"}

StandIn = Callable[[Iterable[nn.Module], Callable[[Any], Any]], AbstractContextManager[None]]
StandIns = Mapping[Route, StandIn]  # while open, the kernels of some modules go through a function
Rule = Callable[[Any, Any, Any, Any], Any]
_FAR = 2**40  # of a position, from which any window ends before the start of the text
_WIDEST = 2**24  # tokens; a rule that allows keys that far back has no window


@dataclass(frozen=True)
class Shapes:
    """The lengths of the axes of one attention.

    `blocks` is how many separate attentions (windows) stand on the batch axis.
    """

    blocks: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    dim: int
    value_dim: int


class Products:
    """What one forward of one module has multiplied so far; `heads` is how many it says it has."""

    def __init__(self, heads: int | None = None) -> None:
        self.heads = heads
        self.made: list[tuple[Tensor, Tensor, Tensor]] = []
        self.scores: tuple[Tensor, Tensor, Tensor] | None = None  # query, key, what entered the softmax

    def after(self, function: Any, args: Any, kwargs: Mapping[str, Any], result: Any) -> list[Shapes]:
        """Takes note of one call; the attention that it completes, if it does."""
        name = getattr(function, "__name__", "")
        if name == "scaled_dot_product_attention":
            named = dict(zip(("query", "key", "value"), args, strict=False)) | dict(kwargs)
            return [_fused(named["query"], named["key"], named["value"])]
        if name == "softmax":
            entered = args[0] if args else kwargs["input"]
            self.scores = self._behind(entered)
            self.made = []
        elif name in _PRODUCTS:
            left, right = tensors_of(args, kwargs)[-2:]
            if self.scores is not None and self.scores[2].numel() in (left.numel(), right.numel()):
                query, key, entered = self.scores
                self.scores = None
                return [_written(query, key, entered, result, self.heads)]
            self.made.append((left, right, result))
        return []

    def _behind(self, entered: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
        """The first product since the last softmax that is as large as the scores: queries by keys."""
        fitting = (
            (left, right)
            for left, right, made in self.made
            if entered.ndim > 2 and made.numel() == entered.numel()
        )
        query, key = next(fitting, (None, None))
        return None if query is None or key is None else (query, key, entered)


def _fused(query: Tensor, key: Tensor, value: Tensor) -> Shapes:
    blocks, heads, queries, dim = (1,) * (4 - query.ndim) + tuple(query.shape)
    return Shapes(blocks, heads, key.shape[-3], queries, key.shape[-2], dim, value.shape[-1])


def _written(query: Tensor, key: Tensor, entered: Tensor, output: Tensor, stated: int | None) -> Shapes:
    """The shapes by the sizes alone; `stated` is how many heads the module says it has."""
    *lead, queries, keys = entered.shape
    attentions = math.prod(lead)
    folded = len(lead) == 1 and stated and attentions % stated == 0  # blocks and heads on one axis
    heads = stated if stated and (folded or stated in lead) else lead[-1]
    dim = query.numel() // (attentions * queries)
    key_heads_and_blocks = key.numel() // (keys * dim)
    blocks = attentions // heads
    return Shapes(
        blocks=blocks,
        heads=heads,
        key_heads=max(key_heads_and_blocks // blocks, 1),
        queries=queries,
        keys=keys,
        dim=dim,
        value_dim=output.numel() // (attentions * queries),
    )


def tensors_of(args: Any, kwargs: Mapping[str, Any]) -> list[Tensor]:
    """The tensors of a call, also those in a list of operands, in order."""
    given = [*args, *kwargs.values()]
    flat = [inner for each in given for inner in (each if isinstance(each, tuple | list) else (each,))]
    return [each for each in flat if isinstance(each, Tensor)]


class Count(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the floating-point operations of products, two for each multiplication with its addition.

    A question whose answer is yes or no is answered yes: of a text without padding that is mostly so.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is torch.ops.aten._local_scalar_dense.default and _is_question(args[0]):
            return True
        result = function(*args, **kwargs)
        reckon = flop_registry.get(function._overloadpacket)
        if reckon is not None:
            self.flops += reckon(*args, **kwargs, out_val=result)
        return result


def _is_question(tensor: Tensor) -> bool:
    return tensor.is_meta and tensor.dtype == torch.bool


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
