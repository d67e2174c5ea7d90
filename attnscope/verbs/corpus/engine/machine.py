"""What this machine has for workers: cores, devices, and the versions and settings that numbers depend on."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING

from attnscope.process.machine import lean_loading

if TYPE_CHECKING:
    from attnscope.model.source.checkpoint import Checkpoint

_LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
_SETTINGS = (".json", ".txt", ".model")  # the small files beside the weights: configuration and tokenizer


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resolved(device: str) -> str:
    """What a run is measured on: the kind of device that `auto` is here, or what is named.

    `InputError` where there is no such device.
    """
    with lean_loading():
        from attnscope.model.loading.memory import torch_device

    chosen = torch_device(device)
    return chosen.type if device == "auto" else device


def places(device: str) -> tuple[str, ...]:
    """The devices that workers share out: the one that has a number, else all of its kind."""
    from attnscope.model.loading.memory import devices

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
    """The kind of device, and its name."""
    import torch

    kind = resolved(device).partition(":")[0]
    name = getattr(getattr(torch, kind, None), "get_device_name", None)
    return kind if name is None or kind == "cpu" else f"{kind} ({name(places(device)[0])})"


@contextmanager
def lent() -> Iterator[None]:
    """Around measuring in a process of the user's: torch's threads are then as before."""
    import torch

    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def versions() -> dict[str, str]:
    """The libraries whose release decides about the last bits."""
    return {name: metadata.version(name) for name in _LIBRARIES}


def settings_digest(checkpoint: "Checkpoint") -> str:
    """SHA-256 over the configuration and the tokenizer, in a model's folder and that of its adapter."""
    whole = hashlib.sha256()
    folders = dict.fromkeys((checkpoint.source.folder, checkpoint.words.folder))
    for place in (place for folder in folders for place in sorted(folder.iterdir())):
        if place.suffix in _SETTINGS and place.is_file():
            whole.update(os.fsencode(f"{place.name}\n") + hashlib.sha256(place.read_bytes()).digest())
    return whole.hexdigest()
