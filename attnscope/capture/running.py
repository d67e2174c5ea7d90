"""Run a model in evaluation mode, without weight gradients or a cache, and restore it afterwards.

Where `torch.compile` was asked for, its own Python code runs: a compiled graph cannot be watched.

An error is the input's fault where the model raises it unwatched too; all else is a bug. A model
that runs on other inputs, or with other attention outputs, than it was made for may refuse:

    with running_again(model):
        model(**other_inputs)  # what its code raises becomes `Refused`; what a hook of `ours` raises does not

An index that is out of bounds is an error on the processor. On a card it is an assertion, after which nothing
of this process runs there any more: so it is looked for before the card is asked.
"""

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map_only

from attnscope.errors import AttnscopeError, InputError, is_out_of_memory, one_line
from attnscope.model.inputs.generation import write

_WHOLE = torch.int8, torch.int16, torch.int32, torch.int64  # uint8 stands for yes and no
_AT_PLACES = Tensor.__getitem__, Tensor.__setitem__
_ALONG = (
    torch.gather, Tensor.gather, torch.index_select, Tensor.index_select, torch.scatter, Tensor.scatter,
    Tensor.scatter_, torch.scatter_add, Tensor.scatter_add, Tensor.scatter_add_, torch.index_add,
    Tensor.index_add, Tensor.index_add_, torch.index_copy, Tensor.index_copy, Tensor.index_copy_,
)  # fmt: skip
State = list[tuple[Callable[[Tensor], None], Tensor]]
_FORM = {"return_dict": True, "output_attentions": False, "output_hidden_states": False}  # as by default
Given = tuple[list[Any], Any]
_REFUSALS = (
    RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError, ArithmeticError,
    InputError,
)  # fmt: skip
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """While open, the model is in evaluation mode without gradients; then all training flags are restored."""
    training = [module for module in model.modules() if module.training]
    try:
        as_code = torch.compiler.set_stance("force_eager") if is_compiled(model) else nullcontext()
        with torch.no_grad(), as_code:
            if training:
                model.eval()
            yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def without_weights(model: nn.Module) -> Iterator[None]:
    """While open, the model's own weights require no gradients."""
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
    """While open, all these hooks are installed; afterwards all are removed."""
    with ExitStack() as stack:
        for hook in hooks:
            stack.enter_context(hook)
        yield


def without_cache(model: nn.Module, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs with `use_cache=False`, where the model knows that option and it is not given."""
    known = "use_cache" in inspect.signature(model.forward).parameters
    return {**inputs, **({"use_cache": False} if known and "use_cache" not in inputs else {})}


def is_compiled(model: nn.Module) -> bool:
    """Whether the model, or a part of it, is compiled by `torch.compile`."""
    # whoever asked has imported the compiler, which takes longer than it takes to look
    return "torch._dynamo" in sys.modules and any(map(_is_compiled, model.modules()))


def as_written(model: nn.Module) -> nn.Module:
    """The model inside a wrapper by `torch.compile` or torch's data parallelism; else the model itself."""
    around = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    inner = model.module if isinstance(model, around) else getattr(model, "_orig_mod", None)
    return as_written(inner) if isinstance(inner, nn.Module) else model


def _is_compiled(module: nn.Module) -> bool:
    """Whether a module was compiled: by `module.compile()`, `torch.compile(module)`, or its `forward`."""
    if module._compiled_call_impl is not None or "_orig_mod" in module._modules:
        return True
    forward = module.forward
    return hasattr(forward, "_torchdynamo_orig_callable") and not hasattr(forward, "_torchdynamo_disable")


@contextmanager
def if_it_runs(model: nn.Module, inputs: Mapping[str, Any], name: str) -> Iterator[None]:
    """Context manager: `InputError` in one line where the model called `name` does not run on `inputs`.

    After an error inside, the model runs once more with nothing watching. Any other error passes through.
    """
    with _unless_alone(model, lambda: model(**inputs), f"{name} cannot run on this input"):
        yield


@contextmanager
def if_it_writes(model: nn.Module, inputs: Mapping[str, Any], most: int, name: str) -> Iterator[None]:
    """Like `if_it_runs`, for generation: a checkpoint's own settings may stop it."""
    with _unless_alone(model, lambda: write(model, inputs, most, name), f"{name} does not write on"):
        yield


@contextmanager
def _unless_alone(model: nn.Module, run: Callable[[], Any], refusal: str) -> Iterator[None]:
    try:
        yield
    except AttnscopeError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            try:
                with evaluating(model):
                    run()
            except Exception as alone:
                if (type(alone), str(alone)) == (type(error), str(error)):
                    raise InputError(f"{refusal}: {one_line(error)}") from error
        raise


class Refused(Exception):
    """Raised where a model does not run on inputs or values that it was not made for."""


class _Bug(Exception):
    def __init__(self, error: Exception) -> None:
        self.error = error


def ours(hook: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The hook, wrapped so that its errors are not taken for the model's."""

    @wraps(hook)
    def hooked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return hook(*args, **kwargs)
        except _REFUSALS as error:
            raise _Bug(error) from error

    return hooked


@contextmanager
def running_again(model: nn.Module) -> Iterator[None]:
    """While open, errors of the model's own code become `Refused`; those of `ours` are raised as they are."""
    try:
        with InBounds() if cards_of(model) else nullcontext():
            yield
    except _Bug as bug:
        raise bug.error from None
    except _REFUSALS as error:
        raise Refused(str(error)) from error


def weights_by_identity(answer: Callable[[Tensor], Tensor], blank: Tensor) -> Tensor:
    """Attention weights `... query key` of a kernel that returns none: its output for the identity as values.

    `answer` maps values to an output `... query value_dim`. `blank` are zeros laid out like the values, `...
    key value_dim`: each block of the identity is as wide as they are, so that the same variant of the kernel
    is chosen.
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
    """The inputs of one text, repeated to a batch of `entries` copies."""
    return {
        name: value.repeat(entries, *[1] * (value.ndim - 1))
        if isinstance(value, Tensor) and value.ndim and entries > 1
        else value
        for name, value in inputs.items()
    }


def cards_of(model: nn.Module) -> list[torch.device]:
    """Devices other than the CPU that hold weights of the model."""
    if not _some_card():
        return []
    held = dict.fromkeys(each.device for each in model.parameters())
    return [device for device in held if _is_card(device)]


def drawing(model: nn.Module) -> State:
    """States of the random generators of the CPU and the model's devices, with their setters."""
    states: State = [(torch.set_rng_state, torch.get_rng_state())]
    for device in cards_of(model):
        module = torch.get_device_module(device)
        if hasattr(module, "get_rng_state"):
            states.append((partial(module.set_rng_state, device=device), module.get_rng_state(device)))
    return states


def draw_from(state: State) -> None:
    """Restore the states of the random generators."""
    for setting, at in state:
        setting(at)


class InBounds(TorchFunctionMode):
    """Torch function mode: an index that is out of bounds raises `IndexError` on cards too."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if function in _AT_PLACES:
            _check_places(*args[:2])
        elif function in _ALONG:
            _check_along(*args, **named)
        elif function is F.embedding:
            _check_rows(*args, **named)
        return function(*args, **named)


def _check_rows(input: Tensor, weight: Tensor, *_: Any, **__: Any) -> None:
    _check(weight, input, 0, len(weight))


def _check_along(input: Tensor, dim: int, index: Tensor, *_: Any, **__: Any) -> None:
    _check(input, index, 0, input.shape[dim] if input.ndim else 1)


def _check_places(values: Tensor, places: Any) -> None:
    given = list(places) if isinstance(places, tuple) else [places]
    taken = sum(_dims(each) for each in given)
    dim = 0
    for each in given:
        if each is Ellipsis:
            dim += values.ndim - taken
            continue
        if isinstance(each, list):
            each = torch.tensor(each)
        if isinstance(each, Tensor) and dim < values.ndim:
            _check(values, each, -values.shape[dim], values.shape[dim])
        dim += _dims(each)


def _dims(place: Any) -> int:
    if place is None or place is Ellipsis or isinstance(place, bool):
        return 0
    return place.ndim if isinstance(place, Tensor) and place.dtype in (torch.bool, torch.uint8) else 1


def _check(values: Any, index: Any, lowest: int, end: int) -> None:
    """Raise `IndexError` where the index does not fit; only checked if values or index are on a card."""
    if not isinstance(index, Tensor) or index.dtype not in _WHOLE or not index.numel():
        return
    if not (_is_card(index.device) or _is_card(values.device)):
        return
    for found in (index.min().item(), index.max().item()):
        if not lowest <= found < end:
            raise IndexError(f"index {found} is out of bounds for a dimension of size {end}")


def _some_card() -> bool:
    """Whether this machine has an accelerator: else no weights need to be searched."""
    return torch.accelerator.is_available()


def _is_card(device: torch.device) -> bool:
    return device.type not in ("cpu", "meta")


@contextmanager
def standing_in(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """While open, `forward` replaces the module's own."""
    had, own = "forward" in vars(module), vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if had:
            module.forward = own  # type: ignore[assignment]
        else:
            del module.forward


class EncodedOnce:
    """The encoder of an encoder-decoder model, with its first output cached."""

    def __init__(self, model: nn.Module) -> None:
        find: Any = getattr(model, "get_encoder", lambda: None)
        try:
            found = find() if getattr(model.config, "is_encoder_decoder", False) else None
        except (AttributeError, TypeError, ValueError):  # a model of an own kind may have no word for it
            found = None
        self.model, self.encoder = model, found if isinstance(found, nn.Module) else None
        self.given: Given | None = None
        self.state: object = None  # of the weights and of who watches, when it was lent
        self.answer: Any = None
        self.draws = self.lent = False

    @contextmanager
    def beside(self, asked: Collection[nn.Module]) -> Iterator[None]:
        """While open, the encoder runs once for equal inputs; uncached if an `asked` module is inside it."""
        if self.encoder is None or {*asked} & {*self.encoder.modules()}:
            yield
            return
        own = self.encoder.forward
        if self.lent and self.state != _state(self.encoder):
            self.forget()

        @wraps(own)  # whoever writes looks at what it takes
        def forward(*args: Any, **kwargs: Any) -> Any:
            given = _given(own, args, kwargs)
            copies = 0 if self.given is None or self.draws else _copies(self.given, given)
            if copies:
                self.lent = False
                return tree_map_only(Tensor, lambda each: _copied(each, copies), self.answer)
            if self.given is not None and not self.lent:
                return own(*args, **kwargs)
            self.lent = False
            state = drawing(self.model)
            answer = own(*args, **kwargs)
            self.draws = any(
                not torch.equal(a, b) for (_, a), (_, b) in zip(state, drawing(self.model), strict=True)
            )
            self.given = tree_map_only(Tensor, Tensor.clone, given[0]), given[1]
            self.answer = tree_map_only(Tensor, Tensor.clone, answer)
            return answer

        with standing_in(self.encoder, forward):
            yield

    def lend(self) -> "EncodedOnce":
        """Allow one more run to use the cached output, if the encoder is unchanged until then."""
        self.lent = self.given is not None and self.encoder is not None
        self.state = _state(self.encoder) if self.lent and self.encoder is not None else None
        return self

    def forget(self) -> None:
        """Drop the cached output."""
        self.given = self.answer = self.state = None
        self.lent = False


def _given(own: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Given:
    """An encoder's arguments by name, flattened, without defaults: generation passes more of them."""
    try:
        bound = inspect.signature(own).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return tree_flatten((args, kwargs))
    named: dict[str, Any] = {}
    for name, each in bound.arguments.items():
        rest = bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        named |= each if rest else {name: each}
    told = {name: each for name, each in named.items() if each is not None and each is not _FORM.get(name)}
    return tree_flatten(dict(sorted(told.items())))


def _state(encoder: nn.Module) -> object:
    weights = [
        (id(each), 0 if each.is_inference() else each._version)
        for each in (*encoder.parameters(), *encoder.buffers())
    ]
    watched = [
        (each.training, len(each._forward_hooks), len(each._forward_pre_hooks)) for each in encoder.modules()
    ]
    return weights, watched


def _copies(before: Given, now: Given) -> int:
    """How many times `now` holds `before`, repeated along the batch; 0 where it is anything else."""
    if before[1] != now[1]:
        return 0
    counts = set[int]()
    for one, other in zip(before[0], now[0], strict=True):
        if not isinstance(one, Tensor) or not isinstance(other, Tensor):
            if one is not other and not (isinstance(one, bool | int | float | str) and one == other):
                return 0
            continue
        if one.shape[1:] != other.shape[1:] or one.dtype != other.dtype or not one.ndim or not len(one):
            return 0
        counts.add(len(other) // len(one))
        if len(other) % len(one) or not torch.equal(other, _copied(one, len(other) // len(one))):
            return 0
    return counts.pop() if len(counts) == 1 else 0


def _copied(tensor: Tensor, copies: int) -> Tensor:
    return tensor.repeat(copies, *[1] * (tensor.ndim - 1)) if tensor.ndim else tensor.clone()
