"""Rotary positions: which module makes the rotation, and how much of a query and a key it turns."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from attnscope.model.anatomy.dimensions import config_of
from attnscope.model.anatomy.towers import Tower
from attnscope.results import Kind, Position

ROTARY = "rotary"


def find_rotation(
    model: nn.Module, towers: Sequence[Tower], tower: Tower, layer: int, width: int | None
) -> Position | None:
    """The rotation of queries and keys in a layer, None where nothing makes one.

    `width` is how many cosines a token had there in a run without weights. Without such a run the module
    must belong to the tower as a table of places would, and how many dimensions it turns is not told.
    """
    path = tower.sites[0].path
    config = config_of(model, path)
    own = getattr(config, "rotary_dim", None)
    rotary = _rotary(model, path, self_attention(towers) if width is None else None, tower)
    if rotary is None and not own:
        return None
    sorts = getattr(config, "layer_types", None) or ()
    sort = sorts[layer] if layer < len(sorts) else ""
    parameters = getattr(config, "rope_parameters", None) or {}
    parameters = parameters.get(sort, parameters) or {}
    base = parameters.get("rope_theta") or getattr(config, "rotary_emb_base", None)
    return Position(
        ROTARY,
        dims=own if rotary is None or width is None else _turned(rotary, sort, width),
        base=float(base) if isinstance(base, int | float) else None,
        variant=None if (variant := parameters.get("rope_type", "default")) == "default" else variant,
    )


def is_rotary(module: nn.Module) -> bool:
    """Whether the module makes the cosines and sines of rotary positions (Su et al. 2021)."""
    return bool(re.search("Rotary|RoPE|Rope", type(module).__name__))


def self_attention(towers: Sequence[Tower]) -> list[Tower]:
    return [tower for tower in towers if tower.kind is not Kind.CROSS]


def closest(path: str, towers: Sequence[Tower]) -> list[Tower]:
    """The towers that share the longest beginning with a path."""
    shared = {tower: _shared(path, tower.pattern) for tower in towers}
    return [tower for tower in towers if shared[tower] == max(shared.values())]


def _shared(one: str, other: str) -> int:
    """How many parts two paths have in common from their start."""
    mine, yours = one.split("."), other.split(".")
    pairs = list(zip(mine, yours, strict=False))
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))


def _rotary(model: nn.Module, path: str, others: Sequence[Tower] | None, tower: Tower) -> nn.Module | None:
    """The rotary module that is closest to `path`; where `others` are given, one that is the tower's own."""
    rotary = {each: module for each, module in model.named_modules() if is_rotary(module)}
    mine = [each for each in rotary if others is None or tower in closest(each, others)]
    return rotary[max(mine, key=lambda each: _shared(each, path))] if mine else None


def _turned(rotary: nn.Module, sort: str, width: int) -> int | None:
    """Dimensions that are turned: two for each frequency and axis, but for frequencies of zero.

    A picture has two axes, so that there are four cosines for each frequency.
    """
    names = [name for name in (f"{sort}_inv_freq", "inv_freq") if hasattr(rotary, name)]
    if not names or getattr(rotary, names[0]).ndim != 1:
        return None
    count = int(getattr(rotary, names[0]).numel())
    turning = count
    if (real := _with_numbers(rotary)) is not None:
        turning = int(getattr(real, names[0]).count_nonzero())
    return turning * max(width // count, 2)


def _with_numbers(rotary: nn.Module) -> Any:
    """The same module off the meta device, where its config is all that it is made from."""
    try:
        with torch.device("cpu"):
            return type(rotary)(rotary.config)
    except Exception:  # of another making: its frequencies are taken to be none of them zero
        return None
