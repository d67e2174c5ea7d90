"""Find a model's attention modules in its module tree and code, not in a list of architectures.

A module counts as an attention layer when its forward looks the attention function up in transformers'
interface (`asks_interface`), or when its own code multiplies, takes a softmax and multiplies again. The
second is read off its compiled code, nothing is run, and it is only a hint (a router or a pooling may read
alike): the tracer checks it when the model runs. Attention modules that stand at the same place in every
layer form a tower: the text half of CLIP, a decoder's cross-attention. A layer's number is its place in the
outermost ModuleList on its path, so that in hybrids the number is the layer's own; `layer_idx` attributes are
missing or wrong on many models and are not read.
"""

import dis
import inspect
import sys
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType
from typing import Any, cast

import torch
from torch import nn

from attnscope.results import Kind, Route

_PRODUCTS = ("matmul", "bmm", "einsum")
_WHOLE = {"scaled_dot_product_attention", "multi_head_attention_forward"}
_OTHER_SOFTMAX = {"log_softmax", "gumbel_softmax"}
_CROSS_NAMES = {"crossattention", "cross_attention", "cross_attn", "encoder_attn", "encdecattention"}


def asks_interface(module_class: type) -> bool:
    """True where the class's forward asks `get_interface` for its kernel, which can be replaced."""
    return "get_interface" in _names(module_class)


def looks_up_by_hand(module_class: type) -> bool:
    """True where forward looks kernels up in ALL_ATTENTION_FUNCTIONS without `get_interface`.

    Code of this older style, mostly from a model's own repository, keeps its eager function to itself.
    """
    names = _names(module_class)
    asked_for_an_attribute = "getattr" in names  # which finds none of that name, whatever the name is
    return "ALL_ATTENTION_FUNCTIONS" in names and "get_interface" not in names and not asked_for_an_attribute


def _names(module_class: type) -> tuple[str, ...]:
    forward: Any = inspect.unwrap(getattr(module_class, "forward", module_class))
    code = getattr(forward, "__code__", None)
    return code.co_names if code else ()


@cache
def looks_traceable(module_class: type) -> bool:
    """True where the class's code has the two matrix products and the softmax of attention.

    The code of its bases and of functions beside it counts as its own; a product may also stand in a small
    module that it holds. False for classes that ask the interface, whole models and code that assigns
    predictions to targets.
    """
    if issubclass(module_class, nn.MultiheadAttention):
        return True
    whole_model = hasattr(module_class, "from_pretrained")
    if whole_model or asks_interface(module_class) or _of_torch(module_class):
        return False
    mine = _operations(module_class)  # type: ignore[arg-type]
    if mine["whole"] or not mine["softmax"] or mine["assignment"]:
        return bool(mine["whole"])
    held = (_operations(part)["product"] for part in _parts(module_class))
    return mine["product"] + sum(held) > 1


def _of_torch(module_class: type) -> bool:
    return module_class.__module__.startswith(("torch.", "builtins"))


@cache
def _operations(module_class: type) -> Counter[str]:
    return Counter(operation for code in _codes(module_class) for operation in _named(code))


def _codes(module_class: type) -> Iterator[CodeType]:
    """The code objects of a class's methods and of functions they call in the same file, each once."""
    seen: set[CodeType] = set()
    for cls in module_class.__mro__:
        if _of_torch(cls):
            continue
        waiting = [code for entry in vars(cls).values() if (code := _code(entry))]
        while waiting:
            code = waiting.pop()
            if code in seen:
                continue
            seen.add(code)
            yield code
            waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            waiting += [inner for entry in _beside(cls, code) if (inner := _code(entry))]


def _parts(module_class: type) -> Iterator[type]:
    made = _code(getattr(module_class, "__init__", None))
    for entry in _beside(module_class, made) if made else ():
        if isinstance(entry, type) and issubclass(entry, nn.Module):
            yield entry


def _beside(cls: type, code: CodeType) -> Iterator[Any]:
    names = vars(sys.modules.get(cls.__module__, cls))
    for name in code.co_names:
        entry = names.get(name)
        inner = _code(entry)
        if getattr(entry, "__module__", None) == cls.__module__ or (
            inner and inner.co_filename == code.co_filename
        ):
            yield entry


def _code(entry: Any) -> CodeType | None:
    if isinstance(entry, torch.jit.ScriptFunction):
        entry = getattr(entry, "_torchdynamo_inline", None)
    entry = getattr(entry, "__func__", entry)
    while hasattr(entry, "__wrapped__"):
        entry = entry.__wrapped__
    return entry.__code__ if isinstance(entry, FunctionType) else None


def _named(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        name = str(instruction.argval)
        if instruction.opname == "BINARY_OP" and instruction.argrepr == "@":
            yield "product"
        if not instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL")):
            continue
        if name in _WHOLE:
            yield "whole"
        elif any(product in name for product in _PRODUCTS):
            yield "product"
        elif name.lower().endswith("softmax") and name not in _OTHER_SOFTMAX:
            yield "softmax"
        elif name == "linear_sum_assignment":
            yield "assignment"


@dataclass(frozen=True, eq=False)
class Site:
    """One attention module: its path, kind, tower and route, and the layer that each of its calls serves.

    A module that several layers share (ALBERT, Zamba) has several `layers`; any other one has one, however
    often it is called. `every` lists all attention modules of the model, in module order.
    """

    path: str
    module: nn.Module
    kind: Kind
    tower: str
    route: Route
    layers: tuple[int, ...]
    every: list["Site"] = field(repr=False)

    def layer_of(self, forward: int) -> int:
        """The layer that call number `forward` serves; calls beyond the last layer serve that one."""
        return self.layers[min(forward, len(self.layers) - 1)]

    def runs_for(self, layers: Container[int] | None) -> int:
        """Number of calls until the last of `layers` (None: all) is served; 0 where it serves none."""
        serving = (i + 1 for i, layer in enumerate(self.layers) if layers is None or layer in layers)
        return max(serving, default=0)

    @property
    def holds_all_pairs(self) -> str:
        """Reason why its attention cannot be read in tiles; empty where it can."""
        if self.route is Route.TAKEOVER:
            return ""
        how = "chooses its kernel by itself" if self.route is Route.CUSTOM else "asks for no kernel"
        return f"({self.path}) {how}"


def find_sites(model: nn.Module) -> tuple[Site, ...]:
    """The attention modules of `model`, in module order, each once.

    They are found when a model is opened and passed on from there; they are found again only for models that
    replace modules as they run.
    """
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
    site_of: dict[nn.Module, Site] = {}
    every: list[Site] = []
    for (tower, kind), members in groups.items():
        numbers = _numbers(model, [modules[member] for member in members])
        for member, layers in zip(members, numbers, strict=True):
            route = cast(Route, _route(member))
            site_of[member] = Site(modules[member][0], member, kind, tower, route, layers, every)
    every += [site_of[module] for module in modules]
    return tuple(every)


def layers_of(members: Iterable[Site], kind: Kind) -> tuple[int, ...]:
    """The layer numbers that have attention of `kind`, ascending."""
    return tuple(sorted({layer for site in members if site.kind is kind for layer in site.layers}))


def every_site(some: Sequence[Site]) -> Sequence[Site]:
    """All attention modules of the model that the sites in `some` belong to."""
    return some[0].every if some else ()


def layer_stacks(model: nn.Module, sites: Iterable[Site]) -> dict[str, nn.ModuleList]:
    """The ModuleLists by path whose entries are the layers with attention."""
    paths = {path for site in sites if (path := _stack_path(model, site.path)) is not None}
    return {path: cast(nn.ModuleList, model.get_submodule(path)) for path in sorted(paths)}


def _route(module: nn.Module) -> Route | None:
    if asks_interface(type(module)):
        return Route.TAKEOVER
    if looks_up_by_hand(type(module)):
        return Route.CUSTOM
    traceable = looks_traceable(type(module))  # type: ignore[arg-type]  # a class can be hashed
    return Route.TRACED if traceable else None


def _without_lookalikes(modules: Mapping[nn.Module, list[str]]) -> dict[nn.Module, list[str]]:
    """Drop false hits: traced modules inside attention, and traced modules that hold other sites.

    The first are an indexer or a router within the attention, the second whole layers.
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
    """True where a model with its own code can generate, by its class or by its `auto_map`."""
    if type(model).__module__.startswith("transformers."):
        return False
    beside = getattr(getattr(model, "config", None), "auto_map", None) or {}
    if "AutoModelForCausalLM" in beside:
        return "AutoModelForMaskedLM" not in beside
    return bool(getattr(type(model), "can_generate", bool)())


def writes_by_itself(config: Any) -> bool:
    """True where transformers has a causal language model for this config, and no masked one."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING as CAUSAL
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING as MASKED

    both_ways = getattr(config, "attn_type", "uni") == "bi"
    return type(config) in CAUSAL and type(config) not in MASKED and not both_ways


def _numbers(model: nn.Module, paths: Sequence[Sequence[str]]) -> list[tuple[int, ...]]:
    """The layers that each module of a tower serves, given the paths of each.

    A layer's number is its place in the outermost list. Where places repeat (the blocks of a stage) or there
    is no list, the modules are counted.
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
    """The path with `*` for every index in a list of modules."""
    parts = path.split(".")
    return ".".join("*" if part.isdigit() else part for part in parts)


def _stack_path(model: nn.Module, path: str) -> str | None:
    parts = path.split(".")
    stems = (".".join(parts[:end]) for end in range(1, len(parts)))
    return next((stem for stem in stems if isinstance(model.get_submodule(stem), nn.ModuleList)), None)


def _place(model: nn.Module, path: str) -> int | None:
    stack = _stack_path(model, path)
    return None if stack is None else int(path[len(stack) + 1 :].split(".")[0])
