"""Where a model runs: the devices of this machine, by torch's own names for them."""

import re
from collections.abc import Iterable

import torch

from attnscope.errors import InputError

_NAME = re.compile("([a-z]+)(:[0-9]{1,4})?")
_KNOWN = ("cpu", "cuda", "mps")


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
