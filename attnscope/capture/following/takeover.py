"""The takeover route: replace the attention function that the model looks up by name, and call it through.

transformers 5 hands query, key, value, mask and scaling to a function that it looks up by name. Inside
`takeover` our function answers to the very name that the model uses and calls the original through, so
the model computes what it always computes. Registering a new name instead would drop masks in silence.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers.masking_utils import AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from attnscope.capture.running import weights_by_identity
from attnscope.errors import InputError
from attnscope.process.machine import ALONE
from attnscope.results import Route

Kernel = Callable[..., tuple[Tensor, Tensor | None]]

KERNELS: ContextVar[bool] = ContextVar("whether a kernel that is read computes now", default=False)
_FLASH = {f"flash_attention_{version}" for version in (2, 3, 4)}
_READABLE_KERNELS = {"eager", "sdpa", "flex_attention", *_FLASH}
_CUSTOM_NAME = "attnscope"


@dataclass(frozen=True, eq=False)
class KernelInputs:
    """Arguments that a model passed to its attention kernel.

    Shapes: query `batch head query dim`, key and value `batch kv_head key dim`.
    """

    module: nn.Module
    kernel: Kernel
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Any  # a tensor, None, or flex attention's `BlockMask`
    options: dict[str, Any]

    def answer(self) -> tuple[Tensor, Tensor | None]:
        """The kernel's output `batch query head value_dim`, and its weights if it returns any."""
        before = KERNELS.set(True)
        try:
            return self.kernel(self.module, self.query, self.key, self.value, self.mask, **self.options)
        finally:
            KERNELS.reset(before)

    def answer_to(self, values: Tensor) -> Tensor:
        """The kernel's output for other values, as `batch head query value_dim`."""
        return replace(self, value=values).answer()[0].transpose(1, 2)

    @property
    def has_sinks(self) -> bool:
        """Whether the softmax has a sink: weights that the kernel returns may leave that out."""
        return any(self.options.get(name) is not None for name in ("s_aux", "sinks"))

    @property
    def is_causal(self) -> bool:
        """Whether a fused kernel that gets no mask masks causally, by an option or the module's flag."""
        flag = self.options.get("is_causal")
        return bool(getattr(self.module, "is_causal", True) if flag is None else flag)

    def row(self, row: int) -> "KernelInputs":
        """The inputs of one entry of the batch, batch axis of length 1."""
        return self.some(slice(row, row + 1))

    def some(self, entries: slice) -> "KernelInputs":
        """The inputs of a slice of the batch."""
        mask = self.mask if self.mask is None or self.mask.shape[0] == 1 else self.mask[entries]
        options = dict(self.options)
        for name in ("position_bias", "sinks"):
            if (batched := options.get(name)) is not None and batched.shape[0] > 1:
                options[name] = batched[entries]
        query, key, value = self.query[entries], self.key[entries], self.value[entries]
        return replace(self, query=query, key=key, value=value, mask=mask, options=options)


Watcher = Callable[[KernelInputs], Any]


def kernel_name(module: nn.Module) -> str:
    """Name of the attention function that `module` looks up; for our own name, "eager"."""
    name = getattr(getattr(module, "config", None), "_attn_implementation", None) or "eager"
    return "eager" if name == _CUSTOM_NAME else name


def is_foreign(name: str) -> bool:
    """Whether the kernel's conventions are unknown: mostly one that a user registered."""
    return name not in _READABLE_KERNELS


def without_masks(modules: Iterable[nn.Module]) -> list[str]:
    """Names of the kernels of `modules` that get no mask, since no mask function is registered for them."""
    names = {kernel_name(module) for module in modules}
    return sorted(name for name in names if is_foreign(name) and name not in AttentionMaskInterface())


def _can_be_read(name: str) -> bool:
    """Whether a kernel is known or registered by a user, and not one for paged caches."""
    there = name in ALL_ATTENTION_FUNCTIONS and not name.startswith("paged|")
    return there or not is_foreign(name)


@contextmanager
def takeover(modules: Iterable[nn.Module], watch: Watcher) -> Iterator[None]:
    """While open, every attention call of `modules` goes through `watch`, which returns the call's result.

    Other modules, also of other models in the process, go straight to their kernel. The library's
    registries are as they were when the block ends, however it ends. Raises `InputError` for a kernel
    of the library that cannot be read.
    """
    watched = set(modules)
    names = {kernel_name(module) for module in watched}
    if unreadable := {name for name in names if not _can_be_read(name)}:
        raise InputError(
            f"cannot read attention kernel {', '.join(sorted(unreadable))}: "
            f"those that can be are {', '.join(sorted(_READABLE_KERNELS))}, and what a user registers"
        )
    common, own = AttentionInterface._global_mapping, ALL_ATTENTION_FUNCTIONS._local_mapping
    with put_back(common, own):
        for name in names:
            stand_in = _stand_in(own.get(name, common.get(name)), watched, watch)
            AttentionInterface.register(name, stand_in)
            if name in own:
                ALL_ATTENTION_FUNCTIONS[name] = stand_in
        yield


@contextmanager
def put_back(*registries: dict[str, Any]) -> Iterator[None]:
    """Restore the library's registries when the block ends, also after an error.

    They are the whole process's: no other thread changes them meanwhile.
    """
    with ALONE:
        before = [dict(registry) for registry in registries]
        try:
            yield
        finally:
            for registry, entries in zip(registries, before, strict=True):
                registry.clear()
                registry.update(entries)


def _stand_in(registered: Kernel | None, watched: set[nn.Module], watch: Watcher) -> Kernel:
    # transformers passes some of these by keyword: the parameter names are part of the interface
    def attention(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any,
        **options: Any,
    ) -> Any:
        kernel = registered or own_eager_function(module)
        given = KernelInputs(module, kernel, query, key, value, attention_mask, options)
        return watch(given) if module in watched else given.answer()

    return attention


def own_eager_function(module: nn.Module) -> Kernel:
    """The eager attention function in the modelling file of the module's class, or of a parent class."""
    for cls in type(module).__mro__:
        code = getattr(inspect.unwrap(cls.__dict__.get("forward", cls)), "__code__", None)
        source = vars(sys.modules[cls.__module__])
        for name in code.co_names if code else ():
            if name.endswith("eager_attention_forward") and name in source:
                return source[name]  # type: ignore[no-any-return]
    raise InputError(f"{type(module).__name__} has no eager attention function of its own to call")


def kernel_weights(given: KernelInputs, entry: int) -> Tensor:
    """Attention weights `head query key` that a kernel used on one batch entry."""
    if kernel_name(given.module) in ("eager", "sdpa"):
        given, entry = given.row(entry), 0  # the masks of other kernels cannot be cut to one entry
    return weights_by_identity(lambda values: given.answer_to(values)[entry], torch.zeros_like(given.value))


@contextmanager
def custom_name(modules: Iterable[nn.Module], watch: Watcher) -> Iterator[None]:
    """Take over modules whose code never looks up eager: their configs name our function instead.

    The function under that name is the module's own eager one, and it gets the masks of eager. The configs
    and the library's registries are as they were when the block ends.
    """
    watched = set(modules)
    configs: dict[int, Any] = {id(module.config): module.config for module in watched}
    before = {key: config._attn_implementation for key, config in configs.items()}
    with put_back(AttentionInterface._global_mapping, AttentionMaskInterface._global_mapping):
        AttentionInterface.register(_CUSTOM_NAME, _stand_in(None, watched, watch))
        AttentionMaskInterface.register(_CUSTOM_NAME, AttentionMaskInterface._global_mapping["eager"])
        try:
            for config in configs.values():
                config._attn_implementation_internal = _CUSTOM_NAME
            yield
        finally:
            for key, config in configs.items():
                config._attn_implementation_internal = before[key]


# context managers that replace the kernels of modules, by route
STAND_INS = {Route.TAKEOVER: takeover, Route.CUSTOM: custom_name}
