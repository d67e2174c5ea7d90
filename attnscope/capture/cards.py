"""What a run on a card needs that one on the processor does not.

An index that is out of bounds is an error on the processor. On a card it is an assertion, after which nothing
of this process runs there any more: so it is looked for before the card is asked. And a card draws by lot
from a state of its own.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_WHOLE = torch.int8, torch.int16, torch.int32, torch.int64  # uint8 stands for yes and no
_AT_PLACES = Tensor.__getitem__, Tensor.__setitem__
_ALONG = (
    torch.gather, Tensor.gather, torch.index_select, Tensor.index_select, torch.scatter, Tensor.scatter,
    Tensor.scatter_, torch.scatter_add, Tensor.scatter_add, Tensor.scatter_add_, torch.index_add,
    Tensor.index_add, Tensor.index_add_, torch.index_copy, Tensor.index_copy, Tensor.index_copy_,
)  # fmt: skip
State = list[tuple[Callable[[Tensor], None], Tensor]]


def cards_of(model: nn.Module) -> list[torch.device]:
    """The devices that hold weights of the model, the processor not among them."""
    if not _some_card():
        return []
    held = dict.fromkeys(each.device for each in model.parameters())
    return [device for device in held if _is_card(device)]


def drawing(model: nn.Module) -> State:
    """Where the generators stand that the model draws by lot from, with the functions that set them."""
    states: State = [(torch.set_rng_state, torch.get_rng_state())]
    for device in cards_of(model):
        module = torch.get_device_module(device)
        if hasattr(module, "get_rng_state"):
            states.append((partial(module.set_rng_state, device=device), module.get_rng_state(device)))
    return states


def draw_from(state: State) -> None:
    """What draws by lot goes on from there."""
    for setting, at in state:
        setting(at)


class InBounds(TorchFunctionMode):
    """While open, an index that is out of bounds is an `IndexError` on every card, as on the processor."""

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
    """`IndexError` where the index does not fit; only looked at where values or index are on a card."""
    if not isinstance(index, Tensor) or index.dtype not in _WHOLE or not index.numel():
        return
    if not (_is_card(index.device) or _is_card(values.device)):
        return
    for found in (index.min().item(), index.max().item()):
        if not lowest <= found < end:
            raise IndexError(f"index {found} is out of bounds for a dimension of size {end}")


def _some_card() -> bool:
    """Whether this machine has any: else nobody has to go through all the weights of a model."""
    return torch.accelerator.is_available()


def _is_card(device: torch.device) -> bool:
    return device.type not in ("cpu", "meta")
