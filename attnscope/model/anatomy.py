"""Where a model's attention layers sit: found in its modules, not in a list of architectures.

A module counts as an attention layer when its forward looks the attention function up in transformers'
interface. Its layer number is its place in the outermost ModuleList on its path, so that in hybrids the
number is the layer's own; `layer_idx` attributes are missing or wrong on many models and are not read.
"""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from torch import nn

from attnscope.results import Kind

_CROSS_NAMES = {"crossattention", "cross_attention", "cross_attn", "encoder_attn", "encdecattention"}


@dataclass(frozen=True, eq=False)
class Site:
    """One attention module: its path, its kind, and the layers that it serves, `layer` the first of them.

    Only models that share weights between layers (ALBERT) have `repeats` layers in a row per module.
    """

    path: str
    module: nn.Module
    layer: int
    kind: Kind
    repeats: int = 1


def sites(model: nn.Module) -> tuple[Site, ...]:
    """The attention modules of `model` that go through transformers' interface, in module order."""
    repeats = _layers_per_module(model)
    found: list[Site] = []
    for path, module in model.named_modules():
        if _asks_interface(module):
            kind, place = _kind(path, module), _place(model, path)
            if place is None:  # outside of any list of layers: counted
                place = sum(site.kind is kind for site in found)
            found.append(Site(path, module, place * repeats, kind, repeats))
    return tuple(found)


def layers_of(found: Iterable[Site], kind: Kind) -> tuple[int, ...]:
    """The layer numbers that have attention of `kind`, ascending."""
    mine = [site for site in found if site.kind is kind]
    return tuple(sorted({site.layer + call for site in mine for call in range(site.repeats)}))


def layer_stacks(model: nn.Module) -> dict[str, nn.ModuleList]:
    """The ModuleLists, by path, whose entries are the model's layers with attention in them."""
    paths = {path for site in sites(model) if (path := _stack_path(model, site.path)) is not None}
    return {path: cast(nn.ModuleList, model.get_submodule(path)) for path in sorted(paths)}


def _asks_interface(module: nn.Module) -> bool:
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return code is not None and "get_interface" in code.co_names


def _kind(path: str, module: nn.Module) -> Kind:
    if _CROSS_NAMES & set(path.lower().split(".")) or getattr(module, "is_cross_attention", False):
        return Kind.CROSS
    causal = getattr(module, "is_causal", False) or getattr(module, "is_decoder", False)
    return Kind.DECODER if causal else Kind.ENCODER


def _stack_path(model: nn.Module, path: str) -> str | None:
    """Path of the outermost ModuleList that holds the module at `path`."""
    parts = path.split(".")
    stems = (".".join(parts[:end]) for end in range(1, len(parts)))
    return next((stem for stem in stems if isinstance(model.get_submodule(stem), nn.ModuleList)), None)


def _place(model: nn.Module, path: str) -> int | None:
    """Position of the module at `path` in its outermost ModuleList."""
    stack = _stack_path(model, path)
    return None if stack is None else int(path[len(stack) + 1 :].split(".")[0])


def _layers_per_module(model: nn.Module) -> int:
    """How many layers in a row each module serves, as the config of a weight-sharing model says."""
    config = getattr(model, "config", None)
    groups = getattr(config, "num_hidden_groups", None)
    return int(config.num_hidden_layers) // int(groups) if config is not None and groups else 1
