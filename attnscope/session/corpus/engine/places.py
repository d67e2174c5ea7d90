"""How many workers this machine has room for, and which device each of them has for itself."""

import os


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resolved(device: str) -> str:
    """What a run is measured on: the kind of device that `auto` is here, or what is named.

    `InputError` where there is no such device.
    """
    from attnscope.model.loading.devices import torch_device

    found = torch_device(device)
    return found.type if device == "auto" else device


def places(device: str) -> tuple[str, ...]:
    """The devices that workers share out: the one that has a number, else all of its kind."""
    from attnscope.model.loading.devices import devices

    kind, _, number = resolved(device).partition(":")
    count = devices().get(kind, 1)
    return (
        (f"{kind}:{number}",)
        if number
        else tuple(f"{kind}:{i}" for i in range(count))
        if count > 1
        else (kind,)
    )


def usual_workers(device: str) -> int:
    """One for each accelerator; without any as many as there are cores."""
    return cores() if resolved(device) == "cpu" else len(places(device))


def described(device: str) -> str:
    """What decides about the last bits of what is measured there: the kind of device, and its name."""
    import torch

    kind = resolved(device).partition(":")[0]
    name = getattr(getattr(torch, kind, None), "get_device_name", None)
    return kind if name is None or kind == "cpu" else f"{kind} ({name(places(device)[0])})"
