"""Read the weights of the needed files only, after checking that they fit in memory."""

import copy
import io
import warnings
import weakref
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext, redirect_stderr
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from attnscope.errors import InputError
from attnscope.model.loading import memory
from attnscope.model.loading.config import build_skeleton, saved_class
from attnscope.model.loading.memory import (
    DISK,
    Place,
    for_accelerate,
    places_for,
    read_in_memory,
    refuse_full_disk,
    refuse_type,
    sizes,
)
from attnscope.model.loading.partial import (
    Quantisation,
    even_out,
    is_quantised,
    kept,
    needed,
    refuse_bare,
    refuse_unread_scales,
    unquantised,
)
from attnscope.model.source import weight_files as stored
from attnscope.model.source.checkpoint import Checkpoint
from attnscope.model.source.weight_files import has_adapter
from attnscope.process.ending import temporary_folder

_SPREAD = "; --device-map auto spreads it over all that there is, the disk too"


@dataclass(frozen=True, eq=False)
class Weights:
    """A model with its weights, the library's loading report, and the checkpoint part that was read."""

    module: Any
    info: dict[str, Any]
    checkpoint: Checkpoint
    quantisation: Quantisation | None
    places: Mapping[str, Place] | None = None


def read_weights(
    checkpoint: Checkpoint,
    skeleton: nn.Module,
    model_class: Any,
    config: Any,
    *,
    layers: int | None,
    dtype: str,
    device: torch.device,
    attention: str = "eager",
    device_map: str | None = None,
    max_memory: str | None = None,
) -> Weights:
    """Load the weights of a model of `model_class`, cut after `layers` layers (None: not cut).

    The weights are read into memory, or with a `device_map` to the places of their parts. `skeleton` is the
    whole model without weights. Raises `AttnscopeError`, and whatever the library raises for bad files.
    """
    name = checkpoint.source.name
    config = copy.deepcopy(config)
    quantisation = unquantised(config, name)
    part = checkpoint.part(needed(checkpoint.shards, skeleton, layers) if checkpoint.shards else ())
    places = None
    run = getattr(torch, _run(part, config, dtype))
    if device_map is not None:
        _refuse_as_it_is(checkpoint, quantisation)
        left = skeleton if layers is None else build_skeleton(model_class, config, checkpoint)
        saved = partial(_saved, config, checkpoint)
        places = places_for(device_map, max_memory, left, run, whole=skeleton, layers=layers, saved=saved)
        room = sizes(places, left, run)
        refuse_type(room, run)
        _refuse_too_large(part, config, layers, dtype, room, spread=True)
        if part.pickled:
            refuse_full_disk(places, left, run)
    elif quantisation is None or quantisation.undone:
        refuse_type((device,), run)
        whole = memory.size_of(skeleton, kept(skeleton, layers), run)
        _refuse_too_large(part, config, layers, dtype, {torch.device("cpu"): whole, device: whole})
    part.complete()
    if quantisation is None and not part.pickled:
        types = stored.types(part.files)
        if odd := {name: kind for name, kind in types.items() if not stored.is_float(kind)}:
            refuse_bare(odd, needed(odd, skeleton, layers), skeleton.state_dict(), name)
    plain: dict[str, Any] = (
        {"adapter_kwargs": {"subfolder": "\0"}} if has_adapter(checkpoint.source.folder) else {}
    )
    plain |= {"use_safetensors": not part.pickled} if part.source.gguf is None else part.source.file
    silent = nullcontext() if part.source.gguf is None else redirect_stderr(io.StringIO())  # GGUF draws a bar
    with part.readable() as folder, ExitStack() as lasting, warnings.catch_warnings(), silent:
        warnings.filterwarnings("ignore", "The following device_map keys")  # keys of weights in no module
        placing: dict[str, Any] = {} if places is None else {"device_map": for_accelerate(places)}
        if places is not None and DISK in places.values():  # for weights stored otherwise than run
            placing["offload_folder"] = lasting.enter_context(temporary_folder())
        module, info = model_class.from_pretrained(
            folder,
            config=config,
            **placing,
            dtype=_precision(part, dtype, quantisation),
            attn_implementation=attention,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused later by refuse_other_shapes
            **plain,  # no adapter is loaded unasked: put_in_adapter does that later
        )
        if "offload_folder" in placing:
            read_in_memory(module)
        weakref.finalize(module, lasting.pop_all().close)  # deletes the folder with the model, or at exit
    refuse_unread_scales(info["unexpected_keys"], module, name)
    if quantisation is not None and quantisation.undone and dtype != "auto":
        even_out(module, getattr(torch, dtype))
    return Weights(module, info, part, quantisation, places)


def _refuse_as_it_is(checkpoint: Checkpoint, quantisation: Quantisation | None) -> None:
    """Raise `InputError` for weights that --device-map cannot spread: GGUF, quantised, adapted."""
    name = checkpoint.source.name
    if checkpoint.source.gguf is not None:
        raise InputError(f"{name} is one file of weights to be converted: --device-map does not go with that")
    if quantisation is not None:
        how = quantisation.method
        raise InputError(f"{name} is quantised with {how}: --device-map does not go with that")
    if checkpoint.adapter is not None:
        why = "--device-map does not go with that, --adapter none leaves it out"
        raise InputError(f"{name} has an adapter: {why}")


def _saved(config: Any, checkpoint: Checkpoint) -> nn.Module | None:
    kind = saved_class(config)
    return None if kind is None else build_skeleton(kind, config, checkpoint)


def _precision(checkpoint: Checkpoint, dtype: str, quantisation: Quantisation | None) -> Any:
    """The dtype argument of loading; `auto` is the files' dtype, or the config's where they tell none."""
    wanted = checkpoint.precision if dtype == "auto" and quantisation is None else dtype
    return "auto" if wanted in (None, "auto") else getattr(torch, str(wanted))


def _refuse_too_large(
    checkpoint: Checkpoint,
    config: Any,
    layers: int | None,
    dtype: str,
    sizes: Mapping[torch.device, int],
    *,
    spread: bool = False,
) -> None:
    own, run = _stored(checkpoint, config), _run(checkpoint, config, dtype)
    part = f"its first {layers} layers" if layers is not None else "the whole of it"
    narrower = getattr(torch, own).itemsize < getattr(torch, run).itemsize
    memory.refuse_too_large(
        sizes,
        f"{checkpoint.source.name} in {run} ({part})",
        converted=run != own or is_quantised(config),
        hint=(f"; --dtype auto runs it in {own}" if narrower else "") + ("" if spread else _SPREAD),
    )


def _stored(checkpoint: Checkpoint, config: Any) -> str:
    claimed = str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")
    return checkpoint.precision or claimed


def _run(checkpoint: Checkpoint, config: Any, dtype: str) -> str:
    return _stored(checkpoint, config) if dtype == "auto" else dtype
