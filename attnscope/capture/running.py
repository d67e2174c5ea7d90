"""How a model is run: in evaluation mode, without gradients of its weights or a cache; then it is as it was.

Where `torch.compile` was asked for, its own Python code runs: a compiled graph shows nobody what passes by.

Whose fault an error is: what the model raises unwatched too comes of its input, all else is a bug. A model
that runs on other inputs, or with other answers, than it was made for may refuse:

    with running_again(model):
        model(**other_inputs)  # what its code raises becomes `Refused`; what a hook of `ours` raises does not
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from attnscope.capture.cards import InBounds, cards_of
from attnscope.errors import AttnscopeError, InputError, is_out_of_memory, one_line
from attnscope.model.inputs.generation import write


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


@contextmanager
def hooked(hooks: Iterable[AbstractContextManager[object]]) -> Iterator[None]:
    """While open, these hooks are there; afterwards none of them is."""
    with ExitStack() as stack:
        for hook in hooks:
            stack.enter_context(hook)
        yield


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


_REFUSALS = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    InputError,
)
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@contextmanager
def if_it_runs(model: nn.Module, inputs: Mapping[str, Any], name: str) -> Iterator[None]:
    """Around reading a model: `InputError` in one line where the model called `name` does not run at all.

    That is found out by running it once more with nothing watching. Any other error passes through.
    """
    with _unless_alone(model, lambda: model(**inputs), f"{name} cannot run on this input"):
        yield


@contextmanager
def if_it_writes(model: nn.Module, inputs: Mapping[str, Any], most: int, name: str) -> Iterator[None]:
    """Like `if_it_runs`, around a model that writes: a checkpoint's own settings may stop it."""
    with _unless_alone(model, lambda: write(model, inputs, most, name), f"{name} does not write on"):
        yield


@contextmanager
def _unless_alone(model: nn.Module, run: Callable[[], Any], refusal: str) -> Iterator[None]:
    try:
        yield
    except AttnscopeError:
        raise
    except Exception as error:
        if not is_out_of_memory(error) and _alone(model, run) == (type(error), str(error)):
            raise InputError(f"{refusal}: {one_line(error)}") from error
        raise


def _alone(model: nn.Module, run: Callable[[], Any]) -> tuple[type[Exception], str] | None:
    try:
        with evaluating(model):
            run()
    except Exception as error:
        return type(error), str(error)
    return None


class Refused(Exception):
    """The model does not run on what it was not made for."""


class _Bug(Exception):
    def __init__(self, error: Exception) -> None:
        self.error = error


def ours(hook: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The same hook, whose errors are not taken for the model's."""

    @wraps(hook)
    def hooked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return hook(*args, **kwargs)
        except _REFUSALS as error:
            raise _Bug(error) from error

    return hooked


@contextmanager
def running_again(model: nn.Module) -> Iterator[None]:
    """While open, errors of the model's own code are raised as `Refused`, and those of `ours` as they are."""
    try:
        with InBounds() if cards_of(model) else nullcontext():
            yield
    except _Bug as bug:
        raise bug.error from None
    except _REFUSALS as error:
        raise Refused(str(error)) from error


def weights_by_identity(answer: Callable[[Tensor], Tensor], blank: Tensor) -> Tensor:
    """The weights `... query key` of a kernel that shows none: its answers to the identity in place of V.

    Its `answer` to values is `... query value_dim`. `blank` are zeros laid out like the values, `... key
    value_dim`: each block of the identity is as wide as they are, so that the same variant of the kernel is
    chosen.
    """
    keys, width = blank.shape[-2:]
    blocks, identity = [], blank.clone()
    for start in range(0, keys, width):
        columns = torch.arange(min(width, keys - start), device=identity.device)
        identity[..., start + columns, columns] = 1
        blocks.append(answer(identity)[..., : len(columns)].clone())
        identity[..., start + columns, columns] = 0
    return torch.cat(blocks, dim=-1)


def repeated(inputs: Mapping[str, Any], entries: int) -> dict[str, Any]:
    """The inputs of one text as those of a batch of `entries` alike."""
    return {
        name: value.repeat(entries, *[1] * (value.ndim - 1))
        if isinstance(value, Tensor) and value.ndim and entries > 1
        else value
        for name, value in inputs.items()
    }
