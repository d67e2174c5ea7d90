"""Checks that every machine of a cluster has the same versions, model and texts, and the run's folder.

Machines are set up one by one. A model of the same name may be another one there, another release of torch
rounds differently, and a file of the same name may hold other texts: all would pass for the same run.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from attnscope.errors import InputError
from attnscope.process.machine import bytes_of
from attnscope.session.listener import Quiet
from attnscope.session.opening import find_checkpoint
from attnscope.session.request import ModelRequest, device_map
from attnscope.verbs.corpus.engine import Measurer, Recipe
from attnscope.verbs.corpus.identity import settings_digest, versions
from attnscope.verbs.corpus.store import Place
from attnscope.version import __version__

_SHOWN = 19  # characters: of a hash twelve digits
_SAMPLES, _SAMPLE = 16, 4096  # how many pieces of a file are looked at, and of how many bytes
_SEEN = "seen-"


@dataclass(frozen=True)
class CheckedRecipe:
    """A recipe that opens only on machines with the same versions and model as `here`."""

    recipe: Recipe
    here: Mapping[str, str]

    @classmethod
    def of(cls, recipe: Recipe) -> "CheckedRecipe":
        """The recipe with the versions and model of this machine."""
        return cls(recipe, there_is(recipe))

    @property
    def into(self) -> str:
        """The address of the run's folder."""
        return self.recipe.into

    def on(self, device: str) -> "CheckedRecipe":
        """The recipe for a worker on this device."""
        return replace(self, recipe=self.recipe.on(device))

    def open(self) -> Measurer:
        """Opens the recipe; `InputError` where this machine has another version or model."""
        there = there_is(self.recipe)
        for name, value in self.here.items():
            if there.get(name) != value:
                differs = f"{_short(there.get(name))} on {platform.node()}, {_short(value)} here"
                raise InputError(f"{name}: {differs}: every machine of the cluster needs the same")
        return self.recipe.open()


def there_is(recipe: Recipe) -> dict[str, str]:
    """Library versions and digests of the model's files, by name: all that numbers depend on."""
    depends_on = {"attnscope": __version__, **versions()}
    request = getattr(recipe, "request", None)
    if isinstance(request, ModelRequest):
        checkpoint = find_checkpoint(request, Quiet())
        whole = len(checkpoint.there) == len(checkpoint.files)
        weights = checkpoint.told_apart if whole else checkpoint.source.revision
        depends_on[f"weights of {checkpoint.source.name}"] = str(weights)
        depends_on[f"settings of {checkpoint.source.name}"] = f"sha256:{settings_digest(checkpoint)}"
    return depends_on


def _short(value: str | None) -> str:
    return "missing" if value is None else value if len(value) <= _SHOWN else value[:_SHOWN]


def glance(place: Place) -> str:
    """Quick fingerprint of a file: size and hash of samples; of a remote file its store's signature."""
    if (local := place.local) is None:
        return place.signature
    size, digest = local.stat().st_size, hashlib.sha256()
    with local.open("rb") as file:
        for i in range(_SAMPLES):
            file.seek(max(0, size - _SAMPLE) * i // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE))
    return f"{size} bytes, {digest.hexdigest()[:12]}"


def check_sees(run: Place) -> None:
    """Raises `InputError` where this machine does not see the run's folder."""
    if not run.is_folder():
        raise InputError(f"{platform.node()} does not see the run's folder '{run}': {_SHARED}")


def check_same_texts(glances: Mapping[Place, str]) -> None:
    """Raises `InputError` where a file is missing here, or has another fingerprint than in the command."""
    for place, seen in glances.items():
        try:
            other = glance(place)
        except FileNotFoundError as error:
            raise InputError(f"{platform.node()} does not see '{place}': {_SHARED}") from error
        if other != seen:
            raise InputError(f"'{place}' is another file on {platform.node()} ({other}, not {seen})")


_SHARED = (
    "texts and --run must lie where every machine of the cluster sees them, as s3://... or a shared folder"
)


def check_seen_by_all(ray: Any, run: Place, nodes: Sequence[Mapping[str, Any]]) -> None:
    """Checks that each node reads and writes in the run's folder; `InputError` where one cannot."""
    there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    token = token_hex(8)
    given = run / f"{_SEEN}{token}"
    left = [given]
    try:
        given.write(token.encode())
        asked = ray.remote(num_cpus=0, max_retries=3)(write_seen)
        answers = []
        for number, node in enumerate(nodes):
            left.append(run / f"{given.name}-{number}")
            answers.append(
                asked.options(scheduling_strategy=there(node["NodeID"], soft=False)).remote(
                    given, left[-1], token
                )
            )
        for node, place, answer in zip(nodes, left[1:], answers, strict=True):
            name = f"{node['NodeManagerHostname']} ({node['NodeID'][:6]})"
            try:
                why = ray.get(answer)
            except ray.exceptions.RayError:
                continue  # it was lost just now; one that comes in its place looks for itself
            if why is None and not _holds(place, token):
                why = "what it writes there is not seen here"
            if why is not None:
                raise InputError(f"{name} does not see the run's folder '{run}': {why}; {_SHARED}")
    finally:
        for place in left:
            with suppress(InputError, OSError):
                place.remove()


def write_seen(given: Place, own: Place, token: str) -> str | None:
    """On a node: reads the file `given` and writes `own`; returns why that failed, or None."""
    try:
        if not _holds(given, token):
            return "what was written there is not found"
        own.write(token.encode())
    except (OSError, InputError) as error:
        return str(error)
    return None


def _holds(place: Place, token: str) -> bool:
    try:
        return place.read() == token.encode()
    except FileNotFoundError:
        return False


def absolute(place: Place) -> Place:
    """The place with an absolute path, where it is a local one."""
    return place if place.local is None else Place(os.path.abspath(place.local))


def stand_at(folder: str) -> None:
    """Changes the working directory to `folder`, where that exists."""
    if Path(folder).is_dir():
        os.chdir(folder)


OPTION = "--ray-resources"
_CPU, _GPU, _MEMORY = "CPU", "GPU", "memory"
_HANDED_OUT = {"cuda": _GPU, "xpu": _GPU, "npu": "NPU", "hpu": "HPU"}  # what Ray calls these devices


@dataclass(frozen=True)
class Needs:
    """Amounts of Ray resources for each worker: CPU, GPU, memory, or a custom one."""

    each: Mapping[str, float]

    @classmethod
    def of(cls, written: str | None, request: ModelRequest) -> "Needs":
        """Parses --ray-resources, over a default of one core and the request's devices.

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
        """The needs as arguments of a Ray actor."""
        named = {_CPU: "num_cpus", _GPU: "num_gpus", _MEMORY: "memory"}
        own = {named[name]: amount for name, amount in self.each.items() if name in named}
        return {**own, "resources": {name: n for name, n in self.each.items() if n and name not in named}}

    def room(self, machines: Iterable[Mapping[str, float]]) -> int:
        """Number of workers that fit on machines with these resources."""
        asked = {name: amount for name, amount in self.each.items() if amount}
        return sum(
            min((int(has.get(name, 0) / n + 1e-9) for name, n in asked.items()), default=1)
            for has in machines
        )

    def of_this_machine(self, workers: int | None, cores: int) -> dict[str, int]:
        """Arguments for a Ray started here: cores for `workers`, or all there are, and the GPUs."""
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
