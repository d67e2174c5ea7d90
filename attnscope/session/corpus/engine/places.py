"""How many workers this machine has room for, and which GPU each of them has for itself."""

import os

VISIBLE = "CUDA_VISIBLE_DEVICES"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus(device: str) -> tuple[str, ...]:
    """The GPUs that workers share out where `device` names none of them, as `CUDA_VISIBLE_DEVICES` does."""
    if device not in ("auto", "cuda"):
        return ()
    import torch

    count, seen = torch.cuda.device_count(), os.environ.get(VISIBLE, "")
    names = [name.strip() for name in seen.split(",") if name.strip()] or [str(i) for i in range(count)]
    return tuple(names[:count])


def usual_workers(device: str) -> int:
    """One for each GPU; without any as many as there are cores; one for a device that is named."""
    if shared := gpus(device):
        return len(shared)
    return cores() if device == "cpu" or (device == "auto" and not _is_a_mac_with_a_gpu()) else 1


def surroundings(worker: int, shared: tuple[str, ...]) -> dict[str, str]:
    """What the process of a worker sees of the GPUs: one alone, where there are several to share out."""
    return {VISIBLE: shared[worker % len(shared)]} if len(shared) > 1 else {}


def _is_a_mac_with_a_gpu() -> bool:
    import torch

    return torch.backends.mps.is_available()
