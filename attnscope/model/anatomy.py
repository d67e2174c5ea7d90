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
    """One attention module: its path, its layer, its kind. `repeats` layers share one module (ALBERT)."""

    path: str
    module: nn.Module
    layer: int
    kind: Kind
    repeats: int = 1


def sites(model: nn.Module) -> tuple[Site, ...]:
    """The attention modules of `model` that go through transformers' interface, in module order."""
    found = [(path, module) for path, module in model.named_modules() if _asks_interface(module)]
    placed = [(path, module, _kind(path, module), _layer(model, path)) for path, module in found]
    kinds = [kind for _, _, kind, _ in placed]
    return tuple(
        Site(
            path,
            module,
            _count_before(kinds, i) if layer is None else layer,
            kind,
            _repeats(model, kinds, kind),
        )
        for i, (path, module, kind, layer) in enumerate(placed)
    )


def layers_of(found: Iterable[Site], kind: Kind) -> tuple[int, ...]:
    """The layer numbers that have attention of `kind`, ascending."""
    mine = [site for site in found if site.kind is kind]
    return tuple(sorted({site.layer + call * len(mine) for site in mine for call in range(site.repeats)}))


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


def _layer(model: nn.Module, path: str) -> int | None:
    stack = _stack_path(model, path)
    return None if stack is None else int(path[len(stack) + 1 :].split(".")[0])


def _count_before(kinds: list[Kind], index: int) -> int:
    return kinds[:index].count(kinds[index])


def _repeats(model: nn.Module, kinds: list[Kind], kind: Kind) -> int:
    """How often each module of a kind runs: more than once only where one module serves all layers."""
    config = getattr(model, "config", None)
    depth = getattr(config, "num_hidden_layers", 1) or 1
    return int(depth) if kinds.count(kind) == 1 else 1
