"""A model in evaluation mode, without gradients of its weights or without a cache, for a run; then as it was.

Where `torch.compile` was asked for, its own Python code runs: a compiled graph shows nobody what passes by.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every module has its own training flag back."""
    modules = [*model.modules()]
    training = [module for module in modules if module.training]
    try:
        with torch.no_grad(), _uncompiled(modules):
            if training:
                model.eval()
            yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def without_weights(model: nn.Module) -> Iterator[None]:
    """While open, no gradients are kept for the model's own weights."""
    learned = [each for each in model.parameters() if each.requires_grad]
    try:
        for each in learned:
            each.requires_grad_(False)
        yield
    finally:
        for each in learned:
            each.requires_grad_(True)


def without_cache(model: nn.Module, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs, and where a model would keep keys and values for a next token, that there is none."""
    known = "use_cache" in inspect.signature(model.forward).parameters
    return {**inputs, **({"use_cache": False} if known and "use_cache" not in inputs else {})}


def is_compiled(model: nn.Module) -> bool:
    """Whether `torch.compile` was asked for the model, or for a part of it."""
    return _any_compiled(model.modules())


def _any_compiled(modules: Iterable[nn.Module]) -> bool:
    # whoever asked has imported the compiler, which takes longer than it takes to look
    return "torch._dynamo" in sys.modules and any(map(_is_compiled, modules))


def as_written(model: nn.Module) -> nn.Module:
    """The model itself, where `torch.compile(model)` or torch's data parallelism put a module around it."""
    around = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    inner = model.module if isinstance(model, around) else getattr(model, "_orig_mod", None)
    return as_written(inner) if isinstance(inner, nn.Module) else model


def _is_compiled(module: nn.Module) -> bool:
    """By each of the ways to ask for it: `module.compile()`, `torch.compile(module)`, or its `forward`."""
    if module._compiled_call_impl is not None or "_orig_mod" in module._modules:
        return True
    forward = module.forward
    return hasattr(forward, "_torchdynamo_orig_callable") and not hasattr(forward, "_torchdynamo_disable")


def _uncompiled(modules: Iterable[nn.Module]) -> AbstractContextManager[object]:
    return torch.compiler.set_stance("force_eager") if _any_compiled(modules) else nullcontext()
