"""Where a model's attention layers sit: found in its modules, not in a list of architectures.

A module counts as an attention layer when its forward looks the attention function up in transformers'
interface, or when its own code multiplies, takes a softmax and multiplies again. Attention modules that
stand at the same place in every layer form a tower: the text half of CLIP, a decoder's cross-attention.
A layer's number is its place in the outermost ModuleList on its path, so that in hybrids the number is
the layer's own; `layer_idx` attributes are missing or wrong on many models and are not read.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from torch import nn

from attnscope.model.anatomy.bypass import asks_interface, looks_traceable, looks_up_by_hand
from attnscope.results import Kind, Route

_CROSS_NAMES = {"crossattention", "cross_attention", "cross_attn", "encoder_attn", "encdecattention"}


@dataclass(frozen=True, eq=False)
class Site:
    """One attention module: its path, its kind, its tower, and the layer of each of its calls in turn.

    A module of models that share weights between layers (ALBERT, Zamba) serves several `layers`; any other
    one serves one, however often it is called.
    """

    path: str
    module: nn.Module
    kind: Kind
    tower: str
    route: Route
    layers: tuple[int, ...]

    def layer_of(self, forward: int) -> int:
        """The layer that its forward number `forward` serves: each in its turn, the last one ever after."""
        return self.layers[min(forward, len(self.layers) - 1)]

    def runs_for(self, layers: Container[int] | None) -> int:
        """How often it runs until it has served the last of `layers` (None: all); 0 where it serves none."""
        serving = (i + 1 for i, layer in enumerate(self.layers) if layers is None or layer in layers)
        return max(serving, default=0)

    @property
    def holds_all_pairs(self) -> str:
        """Why its attention cannot be read in tiles; empty where it can."""
        if self.route is Route.TAKEOVER:
            return ""
        how = "chooses its kernel by itself" if self.route is Route.CUSTOM else "asks for no kernel"
        return f"({self.path}) {how}"


def find_sites(model: nn.Module) -> tuple[Site, ...]:
    """The attention modules of `model`, in module order, each once."""
    modules: dict[nn.Module, list[str]] = defaultdict(list)
    routes: dict[type, Route | None] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        if type(module) not in routes:
            routes[type(module)] = _route(module)
        if routes[type(module)] is not None:
            modules[module].append(path)
    modules = _without_lookalikes(modules)
    groups: dict[tuple[str, Kind], list[nn.Module]] = defaultdict(list)
    for module, paths in modules.items():
        groups[_pattern(paths[0]), _kind(model, paths[0], module)].append(module)
    site_of = {}
    for (tower, kind), members in groups.items():
        numbers = _numbers(model, [modules[member] for member in members])
        for member, layers in zip(members, numbers, strict=True):
            route = cast(Route, _route(member))
            site_of[member] = Site(modules[member][0], member, kind, tower, route, layers)
    return tuple(site_of[module] for module in modules)


def layers_of(members: Iterable[Site], kind: Kind) -> tuple[int, ...]:
    """The layer numbers that have attention of `kind`, ascending."""
    return tuple(sorted({layer for site in members if site.kind is kind for layer in site.layers}))


def layer_stacks(model: nn.Module) -> dict[str, nn.ModuleList]:
    """The ModuleLists, by path, whose entries are the model's layers with attention in them."""
    paths = {path for site in find_sites(model) if (path := _stack_path(model, site.path)) is not None}
    return {path: cast(nn.ModuleList, model.get_submodule(path)) for path in sorted(paths)}


def _route(module: nn.Module) -> Route | None:
    if asks_interface(type(module)):
        return Route.TAKEOVER
    if looks_up_by_hand(type(module)):
        return Route.CUSTOM
    traceable = looks_traceable(type(module))  # type: ignore[arg-type]  # a class can be hashed
    return Route.TRACED if traceable else None


def _without_lookalikes(modules: Mapping[nn.Module, list[str]]) -> dict[nn.Module, list[str]]:
    """Leaves out what only looks like attention: a part of a module that is, and what holds such a module.

    The first are an indexer or a router within the attention, the second a layer that does other things too.
    """
    named = [module for module in modules if _route(module) is not Route.TRACED]
    parts = {part for module in named for part in module.modules() if part not in named}
    left = {module: paths for module, paths in modules.items() if module not in parts}
    return {
        module: paths
        for module, paths in left.items()
        if module in named or not any(inner in left for inner in module.modules() if inner is not module)
    }


def _kind(model: nn.Module, path: str, module: nn.Module) -> Kind:
    parts = path.lower().split(".")
    if _CROSS_NAMES & set(parts) or getattr(module, "is_cross_attention", False):
        return Kind.CROSS
    if getattr(module, "is_causal", False) or getattr(module, "is_decoder", False):
        return Kind.DECODER
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        return Kind.DECODER if any(part.startswith("decoder") for part in parts) else Kind.ENCODER
    stated = hasattr(module, "is_causal") or hasattr(module, "is_decoder")
    return Kind.DECODER if not stated and (writes_by_itself(config) or _writes(model)) else Kind.ENCODER


def _writes(model: nn.Module) -> bool:
    """Whether code that transformers does not have can write: by its class, or by what stands beside it."""
    if type(model).__module__.startswith("transformers."):
        return False
    beside = getattr(getattr(model, "config", None), "auto_map", None) or {}
    if "AutoModelForCausalLM" in beside:
        return "AutoModelForMaskedLM" not in beside
    return bool(getattr(type(model), "can_generate", bool)())


def writes_by_itself(config: Any) -> bool:
    """Whether transformers has a causal language model for this config, and no masked one."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING as CAUSAL
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING as MASKED

    both_ways = getattr(config, "attn_type", "uni") == "bi"
    return type(config) in CAUSAL and type(config) not in MASKED and not both_ways


def _numbers(model: nn.Module, paths: Sequence[Sequence[str]]) -> list[tuple[int, ...]]:
    """The layers that each module of one tower serves, given the paths that it stands under.

    The place in the outermost list; where that holds several of them (the blocks of a stage) or there is
    no list, they are counted.
    """
    config = getattr(model, "config", None)
    groups = getattr(config, "num_hidden_groups", None)
    repeats = int(config.num_hidden_layers) // int(groups) if config is not None and groups else 1
    places = [_place(model, path) for each in paths for path in each]
    are_distinct = len(set(places)) == len(places) and None not in places
    counted = iter(cast(list[int], places) if are_distinct else range(len(places)))
    return [
        tuple(place * repeats + call for place in [next(counted) for _ in each] for call in range(repeats))
        for each in paths
    ]


def _pattern(path: str) -> str:
    """The path with a star for every place in a list of modules."""
    parts = path.split(".")
    return ".".join("*" if part.isdigit() else part for part in parts)


def _stack_path(model: nn.Module, path: str) -> str | None:
    parts = path.split(".")
    stems = (".".join(parts[:end]) for end in range(1, len(parts)))
    return next((stem for stem in stems if isinstance(model.get_submodule(stem), nn.ModuleList)), None)


def _place(model: nn.Module, path: str) -> int | None:
    stack = _stack_path(model, path)
    return None if stack is None else int(path[len(stack) + 1 :].split(".")[0])
