"""An encoder of which no attention is asked for runs once: what it is given again it answers as before.

Attention is proved by running a model again and again with other answers of its decoder; the encoder before
it, which hears thirty seconds of sound, would say the very same each time. What it answered while the model
wrote is good for the run that looks at what was written, and for no other.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map_only

from attnscope.capture.cards import drawing

_FORM = {"return_dict": True, "output_attentions": False, "output_hidden_states": False}  # as by default
Given = tuple[list[Any], Any]


@contextmanager
def standing_in(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """`forward` in the place of the module's own, which it has again afterwards."""
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
    """The encoder of a model that has one, and what it answered first."""

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
        """While open, it runs once; as often as the model does where one of the `asked` modules is in it."""
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
        """For one more run, if that gives it the same before anybody changes it."""
        self.lent = self.given is not None and self.encoder is not None
        self.state = _state(self.encoder) if self.lent and self.encoder is not None else None
        return self

    def forget(self) -> None:
        """It runs again when it is asked next."""
        self.given = self.answer = self.state = None
        self.lent = False


def _given(own: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Given:
    """What an encoder is given, by name, without what is so by default: whoever writes says more of it."""
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
    """How many copies of what was given before are given now, side by side; 0 where it is anything else."""
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
