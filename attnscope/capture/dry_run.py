"""Run a model without weights: on the meta device an operation gives a shape and costs nothing.

So the inputs of each attention (shapes, scale, soft cap, window, sinks), how many products there are until
then, and whether positions are rotated there, are known at any length before a weight is read. The model's
inputs have no content: what its forward names, in shapes that its config tells.

Of products, and of an attention that a model writes out itself, only lengths of axes are looked at. They are
told whatever the layout, since the softmax runs over keys and rows of it are queries; the heads are the axis
before these, as the models hold them.
"""

import inspect
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

from attnscope.capture.running import evaluating
from attnscope.errors import one_line
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
    """Sizes of one attention: heads, queries, keys and features of a head.

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
    """Collects one module forward's matrix products, to find its attentions; `heads`: stated head count."""

    def __init__(self, heads: int | None = None) -> None:
        self.heads = heads
        self.made: list[tuple[Tensor, Tensor, Tensor]] = []
        self.scores: tuple[Tensor, Tensor, Tensor] | None = None  # query, key, what entered the softmax

    def after(self, function: Any, args: Any, kwargs: Mapping[str, Any], result: Any) -> list[Shapes]:
        """Note one torch call; returns the shapes of the attention that it completes, if it does."""
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
    """Shapes of an attention written out in products, by sizes alone; `stated` is the module's head count."""
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
    """Torch dispatch mode: adds up the floating-point operations of products, two per multiply-add.

    A boolean that code reads off a tensor is True: of a text without padding that is mostly so.
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
    """Protocol of the inputs that a model hands to its attention kernel."""

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
    """Shapes and options of one attention; `flops` counts all products of the run up to its output.

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
    """Torch function mode: notes kernels' inputs, products around a softmax, rotations, parameters in use."""

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
    """While open, call `note` with every mask that transformers makes for eager attention, and its window.

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
    """Number of keys up to the query itself that a mask rule allows; None without a fixed window.

    None also where the answer depends on the query, as it does for chunks.
    """
    try:
        here, next_one = (_reach(rule, query) for query in (_FAR, _FAR + 1))
    except Exception:  # a rule that looks up tensors of this text
        return None
    return here if here == next_one else None


def _reach(rule: Rule, query: int) -> int | None:
    """The shortest distance that the rule forbids, by bisection; None where it allows all, or not even 0."""
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


_NEVER = {"self", "args", "kwargs", "labels", "return_dict", "inputs_embeds"}
_SIDE = 224  # of a picture, where the model takes any
_SAMPLES = 160_000  # ten seconds of sound at the rate that speech models are made for
_MELS = ("num_mel_bins", "n_mel_bins", "input_feat_per_channel", "feature_size")


def placeholder_inputs(model: nn.Module, length: int) -> dict[str, Any]:
    """Inputs of `model` for `length` tokens, on the meta device; pictures and sounds in full size.

    They are its main input, what its forward has no default for, and the text of a decoder beside an encoder.
    Raises `ValueError` for an input that no rule makes.
    """
    taken = inspect.signature(model.forward).parameters
    needed = [
        name
        for name, each in taken.items()
        if each.default is each.empty and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    wanted = dict.fromkeys([*needed, getattr(model, "main_input_name", "input_ids"), "decoder_input_ids"])
    made: dict[str, Any] = {}
    for name in wanted:
        if name in taken and name not in _NEVER:
            if name not in _MAKERS:
                raise ValueError(f"nothing is known of its input {name}")
            made[name] = _MAKERS[name](getattr(model, "config", None), length)
    if "use_cache" in taken:
        made["use_cache"] = False
    return made


def _tokens(_config: Any, length: int) -> Tensor:
    return torch.zeros(1, length, dtype=torch.long, device="meta")


def _picture(config: Any, _length: int) -> Tensor:
    size = config_value(config, "image_size", "img_size", default=_SIDE)
    high, wide = size if isinstance(size, list | tuple) else (size, size)
    channels = config_value(config, "num_channels", "in_channels", default=3)
    return torch.zeros(1, channels, high, wide, device="meta")


def _spectrogram(config: Any, _length: int) -> Tensor:
    """A spectrogram `1 bins frames`, two frames a position, for Whisper's configs, else `1 frames bins`."""
    bins, frames = config_value(config, *_MELS), config_value(config, "max_source_positions")
    upright = hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions")
    shape = (1, bins, 2 * frames) if upright else (1, frames, bins)
    return torch.zeros(shape, device="meta")


_MAKERS: Mapping[str, Callable[[Any, int], Tensor]] = {
    "input_ids": _tokens,
    "decoder_input_ids": _tokens,
    "pixel_values": _picture,
    "input_features": _spectrogram,
    "input_values": lambda _config, _length: torch.zeros(1, _SAMPLES, device="meta"),
    "bbox": lambda _config, length: torch.zeros(1, length, 4, dtype=torch.long, device="meta"),
}


def config_value(config: Any, *names: str, default: Any = None) -> Any:
    """The first of these fields that is set in the config or in a config nested in it.

    Raises `ValueError` where none is and there is no default.
    """
    holders, seen = [config], 0
    while seen < len(holders):
        inner = vars(holders[seen]).values() if hasattr(holders[seen], "__dict__") else ()
        holders += [each for each in inner if hasattr(each, "model_type")]
        seen += 1
    for holder in holders:
        for name in names:
            if (value := getattr(holder, name, None)) is not None:
                return value
    if default is None:
        raise ValueError(f"its config does not tell {' or '.join(names)}")
    return default


@dataclass(frozen=True, eq=False)
class DryRun:
    """The attentions of a dry run by module; `problem` says why it ended early, if it did.

    `rotated` has the modules that used a rotation, with the number of its cosines for a token; `used` are
    the parameters that anything used.
    """

    calls: Mapping[nn.Module, Sequence[DryCall]]
    rotated: Mapping[nn.Module, int]
    used: frozenset[nn.Parameter]
    problem: str = ""


def run_dry(model: nn.Module, watched: Sequence[Site], length: int, stand_ins: StandIns) -> DryRun:
    """Run `model`, which is on the meta device, for `length` tokens, as far as shapes suffice.

    `stand_ins` say how to stand in for the kernels of each route that has kernels. Mixtures of experts are
    run with as many experts a token as the model chooses.
    """
    watch = Watch(watched, stand_ins)
    problem = ""
    try:
        with evaluating(model), _few_experts(model), watch.watching(model), torch.device("meta"):
            model(**placeholder_inputs(model, length))
    except Exception as error:  # whatever a model does with numbers that are not there
        problem = one_line(error).partition(". ")[0]
    return DryRun(watch.calls, watch.rotated, frozenset(watch.used), problem)


@contextmanager
def _few_experts(model: nn.Module) -> Iterator[None]:
    """While open, experts run as batched products, whose shapes depend on no routing."""
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
