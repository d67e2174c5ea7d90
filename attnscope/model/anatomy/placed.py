"""Devices of a model's parts: one device, several, or the disk.

A model that accelerate has spread moves each part's inputs to that part's device, and loads weights kept
elsewhere only while the part runs. At other times such weights are on the meta device, which holds no
numbers: `weight_of` finds them all the same.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import InputError


def device_of(module: nn.Module) -> torch.device:
    """The device on which a module runs and to which its inputs must be moved."""
    for hook in _hooks(module):
        device = getattr(hook, "execution_device", None)
        if device is not None:
            return torch.device(device)
    here = next((each.device for each in module.parameters() if not each.is_meta), None)
    if here is not None or not hasattr(module, "hf_device_map"):
        return here or next(module.parameters()).device
    return torch.device("cpu")


def weight_of(module: nn.Module, name: str = "weight") -> Tensor | None:
    """A module's own weight by name, also where it is offloaded; None where there is none of that name.

    `InputError` for a weight whose numbers cannot be found.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor) or not weight.is_meta:
        return weight if isinstance(weight, Tensor) else None
    for hook in _hooks(module):
        kept: Mapping[str, Any] = getattr(hook, "weights_map", None) or {}
        try:
            found: Tensor = kept[name].to(weight.dtype)
            return found
        except KeyError:
            continue
    raise InputError(f"{type(module).__name__} has weights that are on no device: they cannot be read")


def without_numbers(module: nn.Module) -> nn.Module:
    """Copy of the module on the meta device, where it takes no memory."""
    weights = (each for held in (module.parameters(), module.buffers()) for each in held)
    bare: dict[int, Any] = {
        id(each): nn.Parameter(each.detach().to("meta"), each.requires_grad)
        if isinstance(each, nn.Parameter)
        else each.to("meta")
        for each in weights
    }
    return copy.deepcopy(module, bare)


def map_of(module: nn.Module) -> dict[str, str]:
    """Device or `disk` of each part of a spread model; empty for a model on one device."""
    spread: Mapping[str, Any] = getattr(module, "hf_device_map", None) or {}
    return {
        part: str(torch.device(place) if isinstance(place, int) else place) for part, place in spread.items()
    }


def places_of(module: nn.Module) -> str:
    """The model's device; of a spread model all devices joined by `+`."""
    if not map_of(module):
        return str(next(module.parameters()).device)
    places = map_of(module).values()
    works = [] if set(places) - {"disk"} else [str(device_of(module))]
    return "+".join(dict.fromkeys([*works, *places]))


def _hooks(module: nn.Module) -> Iterator[Any]:
    hook = getattr(module, "_hf_hook", None)
    if hook is not None:
        yield from getattr(hook, "hooks", (hook,))
