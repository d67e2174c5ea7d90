"""Devices and memory: which device a model runs on, how many bytes it takes, whether they fit.

Weights that run as they are stored are mapped from their files and cost nothing until they are touched; only
weights that are converted or moved to another device need memory of their own.

A model may be spread over devices, memory and disk: which part goes where is known before any weight is read.
`auto` is accelerate's own planner: devices are filled one after the other, then this machine's memory, then
the disk, and no block of layers is split. An explicit map is checked against the model and the machine. Parts
on the disk, or in memory beside an accelerator, are moved to the first accelerator while they run.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from importlib.util import find_spec
from shutil import disk_usage
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from attnscope.errors import DoesNotFitError, InputError
from attnscope.process.machine import gigabytes, left

if TYPE_CHECKING:
    from attnscope.model.loaded import Model

_NAME = re.compile("([a-z]+)(:[0-9]{1,4})?")
_KNOWN = ("cpu", "cuda", "mps")

_LARGE = 10**9  # bytes of weights from which the user is told their precision
AUTO, DISK, CPU = "auto", "disk", torch.device("cpu")
_SHARE = 0.9  # share of free memory for weights: activations need the rest
Place = str | torch.device  # a device, or `disk`
Saved = Callable[[], nn.Module | None]


def devices() -> dict[str, int]:
    """Number of devices by type: torch's current accelerator first, if any, then `cpu`."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    there = {} if accelerator is None else {accelerator.type: torch.accelerator.device_count()}
    return there | {"cpu": 1}


def torch_device(wanted: str) -> torch.device:
    """The device called `wanted`; `auto` is this machine's accelerator, or else its processor.

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
    """Raise `InputError` where a device does not support `dtype`, as Apple's has no float64."""
    for device in places:
        try:
            torch.empty(0, dtype=dtype, device=device)
        except TypeError as error:
            name = str(dtype).removeprefix("torch.")
            raise InputError(f"{device} has no {name}: --dtype float32 runs it there") from error


def size_of(skeleton: nn.Module, names: Container[str], dtype: torch.dtype) -> int:
    """Bytes that the parameters with these names take in `dtype`, tied ones counted once."""
    mine = (each for name, each in skeleton.named_parameters() if name in names)
    return sum(each.numel() * (dtype if each.is_floating_point() else each.dtype).itemsize for each in mine)


def refuse_too_large(
    sizes: Mapping[torch.device, int], what: str, *, converted: bool, hint: str = ""
) -> None:
    """Raise `DoesNotFitError` where a device has less free memory than its weights take.

    `converted` weights are not used as they are stored, so this machine's memory must hold a copy of them.
    """
    for device, size in sizes.items():
        there = free(device) if converted or device.type != "cpu" else None
        if there is not None and size > there:
            place = "memory" if device.type == "cpu" else str(device)
            takes = f"{what} takes {gigabytes(size)}, and {place} has {gigabytes(there)} free"
            raise DoesNotFitError(takes + hint)


def free(device: torch.device) -> int | None:
    """Free bytes on `device`, an upper estimate; None where no library tells."""
    if device.type == "mps":
        return max(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory(), 0)
    return left() if device.type == "cpu" else _free_on(device)


def _free_on(device: torch.device) -> int | None:
    """Free bytes on an accelerator, including what torch has reserved there and does not use."""
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
    """True where the user should be told the precision: weights converted and large, or quantised."""
    changed = model.quantised is not None or _stored(model) != _run(model)
    return changed and (model.quantised is not None or taken(model) > _LARGE)


def statement(model: "Model") -> str:
    """One line on the stored and the running precision, and the memory of the loaded weights."""
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
    """Bytes of the loaded parameters."""
    return sum(each.numel() * each.dtype.itemsize for each in model.module.parameters())


def _run(model: "Model") -> str:
    return str(model.module.dtype).removeprefix("torch.")


def check_possible(device_map: str) -> None:
    """Raises `InputError` without accelerate, or for a device map that this machine cannot follow."""
    if find_spec("accelerate") is None:
        raise InputError('--device-map needs accelerate: pip install "attnscope[device-map]"')
    for place in () if device_map == AUTO else json.loads(device_map).values():
        _device(place)


def places_for(
    device_map: str,
    budgets: str | None,
    left: Any,
    dtype: torch.dtype,
    *,
    whole: nn.Module,
    layers: int | None,
    saved: Saved,
) -> dict[str, Place]:
    """Map from each part of `left` to its device or disk; neighbours with one place are one part.

    `left` is `whole` without the layers after the first `layers`. `saved` builds the class that the model was
    saved as, whose parts a map may name too. Raises `InputError` for a map that does not fit the model or the
    machine.
    """
    if device_map == AUTO:
        wanted = _planned(left, dtype, _budgets(budgets))
    else:
        wanted = _mapped(json.loads(device_map), whole, layers, saved)
    found = dict(_grouped("", left, _of_each(wanted, left)))
    _refuse_split(found, left)
    return found


def for_accelerate(places: Mapping[str, Place]) -> dict[str, Any]:
    """The places in accelerate's form: the processor, Apple's accelerator and disk by name."""
    return {
        part: str(place) if str(place) in (DISK, "cpu", "mps") else place for part, place in places.items()
    }


def read_in_memory(module: nn.Module) -> None:
    """Have weights on the disk read into memory first, and moved from there to their device.

    Accelerate would load them straight onto the device, which not every kind of device can.
    """
    for part in module.modules():
        hook: Any = getattr(part, "_hf_hook", None)
        loader: Any = getattr(getattr(hook, "weights_map", None), "dataset", None)
        if getattr(loader, "device", None) is not None:
            loader.device = None
            return  # all parts share one loader


def sizes(places: Mapping[str, Place], left: Any, dtype: torch.dtype) -> dict[torch.device, int]:
    """Bytes that each device must hold: its own parts, and the largest one that is moved to it to run."""
    found: defaultdict[torch.device, int] = defaultdict(int)
    brought = [0]
    for part, place in places.items():
        if isinstance(place, torch.device):
            found[place] += _size(left, part, dtype)
    accelerators = [each for each in found if each != CPU]
    at = accelerators[0] if accelerators else CPU
    kept = {part for part, place in places.items() if place == DISK or (accelerators and place == CPU)}
    for path, module in left.named_modules():
        holding = next((part for part in kept if part in ("", path) or path.startswith(f"{part}.")), None)
        if holding is not None and (_is_block(left, module) or not any(module.children())):
            brought.append(size_of(module, dict(module.named_parameters()), dtype))
    found[at] += max(brought)
    return dict(found)


def refuse_full_disk(places: Mapping[str, Place], left: Any, dtype: torch.dtype) -> None:
    """Raise `DoesNotFitError` where the disk has no room for the weights that are offloaded to it."""
    size = sum(_size(left, part, dtype) for part, place in places.items() if place == DISK)
    room = disk_usage(gettempdir()).free
    if size > room:
        takes, there = gigabytes(size), gigabytes(room)
        raise DoesNotFitError(f"what goes to the disk takes {takes}, and {gettempdir()} has {there} free")


def _planned(left: Any, dtype: torch.dtype, budgets: dict[int | str, int]) -> dict[str, Any]:
    from accelerate import infer_auto_device_map

    left.tie_weights()
    found = infer_auto_device_map(
        left, max_memory=budgets, no_split_module_classes=_kinds(left), dtype=dtype, offload_buffers=True
    )
    return {part: _device(place) for part, place in found.items()}


def _budgets(max_memory: str | None) -> dict[int | str, int]:
    if max_memory is None:
        shared = any(kind == "mps" for kind in devices())  # accelerator and processor share one memory
        there = [device for device in _all() if not (shared and device == CPU)]
        return {_called(device): int(_SHARE * _room(device)) for device in there}
    given = {}
    for name, size in json.loads(max_memory).items():
        place = _device(int(name) if name.isdigit() else name)
        if not isinstance(place, torch.device):
            raise InputError("--max-memory is about devices and cpu: the disk takes what is left")
        given[place] = size
    return {_called(device): given.get(device, 0) for device in _all()}


def _room(device: torch.device) -> int:
    there = free(device)
    return 2**62 if there is None else there


def _all() -> list[torch.device]:
    counts = devices()
    return [
        torch.device(kind) if kind in ("cpu", "mps") else torch.device(kind, i)
        for kind, count in counts.items()
        for i in range(count)
    ]


def _called(device: torch.device) -> int | str:
    return device.type if device.index is None else device.index


def _device(place: Any) -> Place:
    if place == DISK:
        return DISK
    kind, count = next(iter(devices().items()))
    if isinstance(place, int):
        if kind == "cpu" or place not in range(count):
            there = f"accelerators are 0-{count - 1}" if kind != "cpu" else "there is no accelerator"
            raise InputError(f"--device-map: no device {place} on this machine: {there}")
        return torch.device(kind, place)
    if place == AUTO:
        raise InputError("--device-map: a part goes to cpu, cuda:N, mps or disk, or all of it is auto")
    device = torch_device(str(place))
    return (
        torch.device(device.type, 0) if device.type not in ("cpu", "mps") and device.index is None else device
    )


def _mapped(
    place_of: Mapping[str, Any], whole: nn.Module, layers: int | None, saved: Saved
) -> dict[str, Place]:
    """The user's device map by this model's names, without parts that are cut away.

    One map serves a model with and without its head: names may have the base model's prefix or lack it, and a
    head that this model lacks may be named.
    """
    from attnscope.model.loading.partial import cut_away

    prefix, gone = f"{getattr(whole, 'base_model_prefix', '')}.", cut_away(whole, layers)
    known = _names(whole)
    found: dict[str, Place] = {}
    for part, place in place_of.items():
        names = (part, prefix + part, part.removeprefix(prefix))
        own = next((each for each in names if each in known), None)
        if own is None and (other := saved()) is not None and not _names(other).keys().isdisjoint(names):
            continue
        if own is None:
            kind, such = type(whole).__name__, ", ".join([each for each in known if each][:4])
            raise InputError(f"--device-map: no part '{part}' in {kind}: it has {such} and so on")
        if not (gone and f"{own}.".startswith(gone)):
            found[own] = _device(place)
    return found


def _names(model: nn.Module) -> dict[str, None]:
    return dict.fromkeys([*dict(model.named_modules()), *model.state_dict()])


def _of_each(wanted: Mapping[str, Place], left: Any) -> dict[str, Place]:
    """The place of every weight: that of the closest part around it; `InputError` for one without.

    Tied weights share the place of the first of them.
    """
    found: dict[str, Place] = {}
    for name in left.state_dict():
        around = [name.rsplit(".", n)[0] if n else name for n in range(name.count(".") + 1)] + [""]
        part = next((each for each in around if each in wanted), None)
        if part is None:
            raise InputError(
                f"--device-map has no place for {name}: name a part around it, or '' for the rest"
            )
        found[name] = wanted[part]
    ties = getattr(left, "all_tied_weights_keys", None) or {}
    return found | {tied: found[own] for tied, own in ties.items() if tied in found and own in found}


def _grouped(path: str, module: nn.Module, each: Mapping[str, Place]) -> Iterator[tuple[str, Place]]:
    """The largest parts whose weights all go to one place, each with that place."""
    lead = f"{path}." if path else ""
    mine = {place for name, place in each.items() if name.startswith(lead)}
    if len(mine) == 1:
        yield path, mine.pop()
    elif mine:
        own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        yield from ((lead + name, each[lead + name]) for name, _ in own if lead + name in each)
        for name, child in module.named_children():
            yield from _grouped(lead + name, child, each)


def _refuse_split(places: Mapping[str, Place], left: Any) -> None:
    """Raise `InputError` where a block that must stay on one device is mapped to several."""
    for path, module in left.named_modules():
        inside = {str(place) for part, place in places.items() if path and part.startswith(f"{path}.")}
        if inside and _is_block(left, module):
            those = ", ".join(sorted(inside))
            raise InputError(
                f"--device-map splits {path} ({type(module).__name__}), which stays together: {those}"
            )


def _kinds(model: Any) -> list[str]:
    return sorted(getattr(model, "_no_split_modules", None) or ())


def _is_block(model: Any, module: nn.Module) -> bool:
    return type(module).__name__ in _kinds(model)


def _size(model: Any, part: str, dtype: torch.dtype) -> int:
    names = {
        name for name, _ in model.named_parameters() if part in ("", name) or name.startswith(f"{part}.")
    }
    return size_of(model, names, dtype)
