"""The engine that a user names."""

from attnscope.errors import InputError
from attnscope.session.corpus.engine.interface import Engine

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


def device_for(name: str, device: str) -> str:
    """What `auto` is for the engine of that name: Ray hands out CUDA's devices and no other accelerator."""
    if name != RAY or device != "auto":
        return device
    from attnscope.session.corpus.engine.places import resolved

    return "cuda" if resolved(device) == "cuda" else "cpu"


def engine_of(name: str, address: str | None, workers: int | None, device: str) -> Engine | None:
    """The engine of that name; None for processes of this machine. `InputError` for what it cannot do."""
    if name not in ENGINES:
        raise InputError(f"unknown --engine '{name}': {', '.join(ENGINES)}")
    if name == LOCAL:
        if address is not None:
            raise InputError("--ray-address goes with --engine ray: give both")
        return None
    from attnscope.session.corpus.engine.ray.pool import on_ray

    return on_ray(address, workers, device)
