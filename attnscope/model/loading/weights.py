"""Reading the weights: from the files that are needed and no others, where there is room for them."""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from attnscope.model.loading import memory, quantised
from attnscope.model.loading.partial import kept, needed
from attnscope.model.loading.quantised import Quantisation
from attnscope.model.source import weight_files as stored
from attnscope.model.source.adapter import has_adapter
from attnscope.model.source.checkpoint import Checkpoint


@dataclass(frozen=True, eq=False)
class Weights:
    """A model with its weights in it, what the library says of the reading, and the files that were read."""

    module: Any
    info: dict[str, Any]
    checkpoint: Checkpoint
    quantisation: Quantisation | None


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
) -> Weights:
    """A model of `model_class`, which is that of `skeleton` cut after `layers` layers (None: not cut).

    Raises `ModelUnavailableError` or `DoesNotFitError`, and whatever the library raises for bad files.
    """
    name = checkpoint.source.name
    config = copy.deepcopy(config)
    quantisation = quantised.prepare(config, name)
    part = checkpoint.part(needed(checkpoint.shards, skeleton, layers) if checkpoint.shards else ())
    if quantisation is None or quantisation.undone:
        _refuse_too_large(part, skeleton, config, layers, dtype, device)
    part.complete()
    if quantisation is None and not part.pickled:
        _refuse_bare(part, skeleton, layers)
    plain = {"adapter_kwargs": {"subfolder": "\0"}} if has_adapter(checkpoint.source.folder) else {}
    with part.readable() as folder:
        module, info = model_class.from_pretrained(
            folder,
            config=config,
            dtype=_precision(part, dtype, quantisation),
            use_safetensors=not part.pickled,
            attn_implementation=attention,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # answered in our own words
            **plain,  # the adapter is looked for where none can be: it is put in afterwards, and not unasked
        )
    quantised.refuse_unread_scales(info["unexpected_keys"], module, name)
    if quantisation is not None and quantisation.undone and dtype != "auto":
        quantised.even_out(module, getattr(torch, dtype))
    return Weights(module, info, part, quantisation)


def _precision(checkpoint: Checkpoint, dtype: str, quantisation: Quantisation | None) -> Any:
    """The type to load in; `auto` is the one in the files, or what the config says where they do not tell."""
    wanted = checkpoint.precision if dtype == "auto" and quantisation is None else dtype
    return "auto" if wanted in (None, "auto") else getattr(torch, str(wanted))


def _refuse_too_large(
    checkpoint: Checkpoint,
    skeleton: nn.Module,
    config: Any,
    layers: int | None,
    dtype: str,
    device: torch.device,
) -> None:
    """Raise `DoesNotFitError`, before anything is fetched, for weights that surely have no room."""
    claimed = str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")
    own = checkpoint.precision or claimed
    run = own if dtype == "auto" else dtype
    part = f"its first {layers} layers" if layers is not None else "the whole of it"
    narrower = getattr(torch, own).itemsize < getattr(torch, run).itemsize
    memory.refuse_too_large(
        memory.size_of(skeleton, kept(skeleton, layers), getattr(torch, run)),
        f"{checkpoint.source.name} in {run} ({part})",
        device,
        converted=run != own or quantised.is_quantised(config),
        hint=f"; --dtype auto runs it in {own}" if narrower else "",
    )


def _refuse_bare(checkpoint: Checkpoint, skeleton: nn.Module, layers: int | None) -> None:
    odd = {name: kind for name, kind in stored.types(checkpoint.files).items() if not stored.is_float(kind)}
    if odd:
        names = needed(odd, skeleton, layers)
        quantised.refuse_bare(odd, names, skeleton.state_dict(), checkpoint.source.name)
