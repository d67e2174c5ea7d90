"""What each worker takes of its machine, in Ray's own words, and for how many workers machines have room."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attnscope.errors import InputError
from attnscope.process.machine import bytes_of
from attnscope.session.request import ModelRequest, device_map

OPTION = "--ray-resources"
_CPU, _GPU, _MEMORY = "CPU", "GPU", "memory"
_HANDED_OUT = {"cuda": _GPU, "xpu": _GPU, "npu": "NPU", "hpu": "HPU"}  # what Ray calls these devices


@dataclass(frozen=True)
class Needs:
    """So much of each resource, by Ray's name for it: CPU, GPU, memory, or one that a machine was given."""

    each: Mapping[str, float]

    @classmethod
    def of(cls, written: str | None, request: ModelRequest) -> "Needs":
        """As written, over a core and the device of the request, or all devices that its map names.

        `InputError` for what is no amount, and for a device that Ray does not hand out.
        """
        spread = _numbers(device_map(request.device_map))
        kind, _, number = request.device.partition(":")
        if number and request.device_map is None:
            raise InputError(
                f"--device is {request.device}: with --engine ray a worker is given its own: {kind}"
            )
        if kind == "mps":
            raise InputError("--device is mps: Ray hands out CPUs and GPUs, --device cpu or cuda")
        usual = {_CPU: 1.0}
        if spread:
            usual[_GPU] = len(spread)
        elif request.device_map is None and kind in _HANDED_OUT:
            usual[_HANDED_OUT[kind]] = 1.0
        needs = cls(usual | _parsed(written))
        if spread and max(spread) >= max(1, needs.each.get(_GPU, 0)):
            raise InputError(
                f"--device-map names cuda:{max(spread)}, and a worker's GPUs are numbered from 0: "
                f"it is given {needs.each.get(_GPU, 0):g} ({OPTION} GPU=N)"
            )
        return needs

    def __str__(self) -> str:
        return ", ".join(f"{name} {amount:g}" for name, amount in self.each.items() if amount)

    def options(self) -> dict[str, Any]:
        """As Ray's own arguments of an actor."""
        named = {_CPU: "num_cpus", _GPU: "num_gpus", _MEMORY: "memory"}
        own = {named[name]: amount for name, amount in self.each.items() if name in named}
        return {**own, "resources": {name: n for name, n in self.each.items() if n and name not in named}}

    def room(self, machines: Iterable[Mapping[str, float]]) -> int:
        """How many workers there is room for on machines that have so much each."""
        asked = {name: amount for name, amount in self.each.items() if amount}
        return sum(
            min((int(has.get(name, 0) / n + 1e-9) for name, n in asked.items()), default=1)
            for has in machines
        )

    def of_this_machine(self, workers: int | None, cores: int) -> dict[str, int]:
        """What a Ray of this machine gives away, as its arguments: for so many workers, or what there is."""
        if other := list(self.options()["resources"]):
            raise InputError(
                f"a Ray that is started here has no {other[0]}: name a cluster that has, with --ray-address"
            )
        asked = workers * self.each[_CPU] if workers else 0
        gpus = _gpus() if self.each.get(_GPU) else 0
        return {"num_cpus": max(cores if not workers else 1, -int(-asked // 1)), "num_gpus": gpus}


def _gpus() -> int:
    import torch

    there = torch.cuda.device_count()
    if not there:
        raise InputError("there is no GPU here: name a cluster with --ray-address")
    return there


def _numbers(device_map: str | None) -> set[int]:
    if device_map is None or not device_map.startswith("{"):
        return set()
    names = [str(place).removeprefix("cuda:") for place in json.loads(device_map).values()]
    return {int(name) for name in names if name.isdecimal()} | {0 for name in names if name == "cuda"}


def _parsed(written: str | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in written.split(",") if written is not None else ():
        name, _, amount = (each.strip() for each in part.partition("="))
        taken = bytes_of(amount) if name == _MEMORY else _amount(amount)
        if not name or name in found or taken is None:
            raise InputError(f"{OPTION} is '{written}': it takes NAME=AMOUNT,..., as in GPU=0.5,memory=8GB")
        if taken > 1 and taken != int(taken):
            raise InputError(f"{OPTION} {name}={amount}: above 1 Ray gives whole ones only")
        found[name] = taken
    return found


def _amount(written: str) -> float | None:
    try:
        amount = float(written)
    except ValueError:
        return None
    return amount if 0 <= amount < 1e9 else None
