"""Stored weights that the loaded model has no place for: which of them it was trained with.

Attention that is computed without some of its trained weights is not that of the trained model, and nothing
in the recomputation could tell. So what the library passes over in silence is sorted here: weights inside
attention, trained ones elsewhere, and what nobody misses (heads, layers left out on purpose, stored masks).
"""

import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import nn

from attnscope.errors import ModelUnavailableError
from attnscope.model.anatomy.sites import find_sites
from attnscope.model.loading.partial import cut_away, placed
from attnscope.model.loading.quantised import is_scale
from attnscope.model.source import weight_files as stored

_ATTENTION = re.compile("att(n|ention)", re.IGNORECASE)
_NEVER_TRAINED = re.compile(
    r"(^|[._])(masked_bias|attn_mask|causal_mask|position_ids|relative_position_index|inv_freq"
    r"|(sin|cos)_cached)$"
)  # what old files hold of buffers that a model makes by itself
_HEAD = re.compile(r"(^|\.)(lm_head|pooler)\.")  # also one of a part of the model
WRAPPER = "base_model.model."  # what peft puts before all names
_NAMED = 3  # names that a message gives


def left_unread(
    unexpected: Iterable[str],
    skeleton: nn.Module,
    files: Sequence[Path],
    name: str,
    *,
    layers: int | None = None,
    quantised: bool = False,
    ignore: bool = False,
) -> tuple[str, ...]:
    """The trained ones of the names that the library had no use for when it read `files`.

    `skeleton` is the whole model, of which the first `layers` layers were loaded (None: all of them). Raises
    `ModelUnavailableError` where some are inside attention, unless that is to be ignored.
    """
    own = _trained(unexpected, skeleton, files, layers)
    blocks = _blocks(skeleton)
    inside = [key for key, at in own.items() if at is not None and blocks.match(at)]
    refused = tuple(
        key for key in inside if not (quantised and is_scale(key))
    )  # of activations, of the cache
    if refused and not ignore:
        those = f"{counted(refused)} inside attention that the model does not read"
        raise ModelUnavailableError(
            f"{name} holds {those}: {named(refused)}; --ignore-unread runs without them"
        )
    towers = {key.partition(".")[0] for key in own if _ATTENTION.search(key)}
    elsewhere = [
        key
        for key, at in own.items()
        if key not in inside
        and not _HEAD.search(key)
        and (_in_trunk(at, skeleton) or key.partition(".")[0] in towers)
    ]
    return tuple(sorted(inside + elsewhere))


def counted(names: tuple[str, ...]) -> str:
    return f"{len(names)} weight{'s' if len(names) > 1 else ''}"


def named(names: tuple[str, ...]) -> str:
    """The first few of the names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _trained(
    unexpected: Iterable[str], skeleton: nn.Module, files: Sequence[Path], layers: int | None
) -> dict[str, str | None]:
    """What the model would call each of the weights, without layers that were cut away and buffers."""
    gone = cut_away(skeleton, layers)
    own = {name: _own_name(name, skeleton) for name in sorted(unexpected) if not _NEVER_TRAINED.search(name)}
    own = {name: at for name, at in own.items() if at is None or not at.startswith(gone)}
    if any(at is not None for at in own.values()):
        masks = _masks(files, skeleton)
        own = {name: at for name, at in own.items() if at is None or at not in masks}
    return own


def _blocks(skeleton: nn.Module) -> re.Pattern[str]:
    """What the names begin with of all that belongs to attention, in layers that do not exist as well.

    That is an attention module, and what holds it under such a name: `attention` around `attention.self`.
    """
    paths = {site.path for site in find_sites(skeleton)}
    holders = {path.rpartition(".")[0] for path in paths}
    paths |= {holder for holder in holders if _ATTENTION.search(holder.rpartition(".")[2])}
    parts = (["[0-9]+" if part.isdigit() else re.escape(part) for part in path.split(".")] for path in paths)
    patterns = sorted({r"\.".join(each) for each in parts})
    return re.compile(rf"({'|'.join(patterns)})\." if patterns else "(?!)")


def _own_name(name: str, skeleton: nn.Module) -> str | None:
    return placed(name.removeprefix(WRAPPER), skeleton)


def _in_trunk(own_name: str | None, skeleton: nn.Module) -> bool:
    prefix = getattr(skeleton, "base_model_prefix", "")
    base = getattr(skeleton, prefix, None) if prefix else None
    if own_name is None or base is None:
        return own_name is not None
    inner = own_name.removeprefix(f"{prefix}.")
    return inner != own_name and isinstance(getattr(base, inner.partition(".")[0], None), nn.Module)


def _masks(files: Sequence[Path], skeleton: nn.Module) -> set[str | None]:
    """The model's names for stored masks: squares of positions, the same for every head."""
    shapes = stored.shapes(files) if files[0].suffix == ".safetensors" else _pickled(files)
    return {
        _own_name(name, skeleton)
        for name, shape in shapes.items()
        if len(shape) > 2 and shape[-1] == shape[-2] and set(shape[:-2]) == {1}
    }


def _pickled(files: Iterable[Path]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for file in files:
        held = torch.load(file, map_location="meta", weights_only=True, mmap=zipfile.is_zipfile(file))
        shapes |= {name: tuple(weight.shape) for name, weight in held.items() if hasattr(weight, "shape")}
    return shapes
