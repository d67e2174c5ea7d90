"""Where a model runs, by torch's own names for devices, what it takes in memory, and whether that fits.

Weights that run as they are stored are mapped from their files and cost nothing until they are touched;
only numbers that are converted, or that move to another device, need room of their own.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import nn

from attnscope.errors import DoesNotFitError, InputError
from attnscope.process.machine import gigabytes, left

if TYPE_CHECKING:
    from attnscope.model.loaded import Model

_NAME = re.compile("([a-z]+)(:[0-9]{1,4})?")
_KNOWN = ("cpu", "cuda", "mps")

_LARGE = 10**9  # bytes


def devices() -> dict[str, int]:
    """How many devices of each kind there are: the accelerator that torch works with, then the processor."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    there = {} if accelerator is None else {accelerator.type: torch.accelerator.device_count()}
    return there | {"cpu": 1}


def torch_device(wanted: str) -> torch.device:
    """The device that `wanted` names; `auto` is the accelerator of this machine, or else its processor.

    `InputError` where there is none of that name.
    """
    there = devices()
    if wanted == "auto":
        return torch.device(next(iter(there)))
    kind, _, index = wanted.partition(":")
    if not _NAME.fullmatch(wanted) or kind not in {*_KNOWN, *there}:
        raise InputError(f"unknown device '{wanted}': auto, cpu, cuda, cuda:N or mps")
    if int(index or 0) >= there.get(kind, 0):
        present = ", ".join(f"{name} ({count})" for name, count in there.items())
        raise InputError(f"no device {wanted} on this machine: there is {present}")
    return torch.device(wanted)


def refuse_type(places: Iterable[torch.device], dtype: torch.dtype) -> None:
    """Raise `InputError` where one of the devices has no numbers of this type, as Apple's has no float64."""
    for device in places:
        try:
            torch.empty(0, dtype=dtype, device=device)
        except TypeError as error:
            name = str(dtype).removeprefix("torch.")
            raise InputError(f"{device} has no {name}: --dtype float32 runs it there") from error


def size_of(skeleton: nn.Module, names: Container[str], dtype: torch.dtype) -> int:
    """Bytes that the parameters of these names take in `dtype`, those that are tied counted once."""
    mine = (each for name, each in skeleton.named_parameters() if name in names)
    return sum(each.numel() * (dtype if each.is_floating_point() else each.dtype).itemsize for each in mine)


def refuse_too_large(
    sizes: Mapping[torch.device, int], what: str, *, converted: bool, hint: str = ""
) -> None:
    """Raise `DoesNotFitError` when so many bytes of weights on each device surely have no room.

    `converted` says that they are not used as they are stored, so that this machine's own memory must hold
    those that are read into it.
    """
    for device, size in sizes.items():
        there = free(device) if converted or device.type != "cpu" else None
        if there is not None and size > there:
            place = "memory" if device.type == "cpu" else str(device)
            takes = f"{what} takes {gigabytes(size)}, and {place} has {gigabytes(there)} free"
            raise DoesNotFitError(takes + hint)


def free(device: torch.device) -> int | None:
    """Bytes that can still be taken on `device`, rather too many than too few; None where nothing tells."""
    if device.type == "mps":
        return max(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory(), 0)
    return left() if device.type == "cpu" else _free_on(device)


def _free_on(device: torch.device) -> int | None:
    """Bytes that are free on an accelerator, with what torch keeps there and does not use."""
    own, common = getattr(torch, device.type, None), torch.accelerator
    tell = getattr(own, "mem_get_info", None) or getattr(common, "get_memory_info", None)
    try:
        unused = common.memory_reserved(device) - common.memory_allocated(device)
    except (AttributeError, NotImplementedError, RuntimeError):  # torch before 2.9, or a backend without
        unused = 0
    try:
        return None if tell is None else int(tell(device)[0]) + unused
    except (NotImplementedError, RuntimeError):
        return None


def is_notable(model: "Model") -> bool:
    """Whether the user should hear of it unasked: weights that were changed, and are large or quantised."""
    changed = model.quantised is not None or _stored(model) != _run(model)
    return changed and (model.quantised is not None or taken(model) > _LARGE)


def statement(model: "Model") -> str:
    """In what precision the model is stored and run, and what the loaded part of it takes."""
    stored, run = _stored(model), _run(model)
    part = "" if model.layers is None else f" for its first {model.layers} layers"
    takes = f"{gigabytes(taken(model))}{part}"
    if model.quantised is not None:
        return f"quantised with {model.quantised}: run in {run}, {takes}"
    if stored is None or stored == run:
        return f"run in {run}, {takes}"
    return f"stored in {stored}: run in {run}, {takes}; --dtype auto runs it as stored"


def _stored(model: "Model") -> str | None:
    return None if model.checkpoint is None else model.checkpoint.precision


def taken(model: "Model") -> int:
    """Bytes of the parameters that are loaded."""
    return sum(each.numel() * each.dtype.itemsize for each in model.module.parameters())


def _run(model: "Model") -> str:
    return str(model.module.dtype).removeprefix("torch.")
