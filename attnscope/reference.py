"""Conversion to float64: the device to compute on, and tensors moved there.

Certificates need exact arithmetic, so all of attnscope's own is in float64. Not every device has it (Apple's
accelerators do not). Tensors stay on a device with float64, and else are moved to the CPU in their stored
dtype, before widening; so select rows before calling `exact`.

Nothing else in attnscope uses torch.float64 (tests/project/test_doors.py).
"""

import torch
from torch import Tensor

EXACT = torch.float64  # what is made anew in this type is made on the processor, or at `place`


def place(device: torch.device) -> torch.device:
    """The device to compute on in float64: `device` if it has float64, else the CPU."""
    if device.type in ("cpu", "meta"):
        return device
    try:
        torch.empty(0, dtype=EXACT, device=device)
    except (TypeError, RuntimeError):
        return torch.device("cpu")
    return device


def widest(device: torch.device) -> torch.dtype:
    """The dtype for running a model's code where float64 is wanted: float32 on a device without it."""
    return EXACT if place(device) == device else torch.float32


def brought(tensor: Tensor) -> Tensor:
    """The tensor, detached, with its dtype, on the `place` of its device."""
    return tensor.detach().to(place(tensor.device))


def exact(tensor: Tensor) -> Tensor:
    """`tensor` in float64 on the `place` of its device; the same object where nothing changes."""
    return tensor.to(place(tensor.device)).to(EXACT)
