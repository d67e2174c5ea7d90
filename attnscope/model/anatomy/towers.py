"""Towers: the attention modules of one kind that stand at the same place in every layer.

CLIP has a text tower and a picture tower, BART an encoder, a decoder and a cross-attention tower; each has a
short name, the part of its module path that tells it apart.

What a module without weights tells (heads, dimensions, window, cap, sinks, context) is read off its own
attributes and the shapes of its projections first, then its config: what neither tells is None.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site, every_site, layer_stacks, layers_of
from attnscope.results import Kind, Route

_NAMES = (
    "num_heads",
    "num_attention_heads",
    "n_heads",
    "n_head",
    "num_attn_heads",
    "attention_heads",
    "encoder_attention_heads",
    "nhead",
    "heads",
)

_KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "multi_query_group_num")
_DIM = (
    "qk_head_dim",
    "head_dim",
    "attention_head_size",
    "key_value_proj_dim",
    "d_kv",
    "head_size",
    "dim_head",
)
_VALUE_DIM = ("v_head_dim", "value_head_dim")
_QUERY_PROJECTIONS = ("q_proj", "query", "q_lin", "q", "wq", "query_proj", "linear_q", "to_q")
_KEY_PROJECTIONS = ("k_proj", "key", "k_lin", "k", "wk", "key_proj", "linear_k", "to_k")
_VALUE_PROJECTIONS = ("v_proj", "value", "v_lin", "v", "wv", "value_proj", "linear_v", "to_v")
_WINDOW = ("sliding_window", "sliding_window_size")
_CONTEXT = {
    Kind.ENCODER: ("max_position_embeddings", "n_positions", "max_source_positions", "max_sequence_length"),
    Kind.DECODER: ("max_position_embeddings", "n_positions", "max_target_positions", "max_sequence_length"),
    Kind.CROSS: ("max_position_embeddings", "n_positions", "max_target_positions", "max_sequence_length"),
}
_SENSES = {"vision", "visual", "visn", "image", "img", "audio", "speech", "qformer", "head"}


def head_count(module: nn.Module) -> int | None:
    """Number of query heads by the module, its parts or its config; None where none of them tells."""
    for holder in (module, *module.children(), getattr(module, "config", None)):
        for name in _NAMES:
            count = getattr(holder, name, None)
            if isinstance(count, int) and not isinstance(count, bool) and count > 0:
                return count
    return None


def config_of(model: Any, path: str) -> Any:
    """The config of the module at `path`, or else of the closest module around it."""
    parts = path.split(".")
    owners = (model.get_submodule(".".join(parts[:end])) for end in range(len(parts), -1, -1))
    return next((config for owner in owners if (config := getattr(owner, "config", None)) is not None), None)


def key_heads(module: nn.Module, config: Any) -> int | None:
    """Number of key heads: by the key projection's width, else as stated, else that of query heads."""
    own, width = dim(module, config), _width(module, _KEY_PROJECTIONS, 1)
    if own and width and width % own == 0:
        return width // own
    counted = _number(module, _KEY_HEADS) or _number(config, _KEY_HEADS)
    return counted or head_count(module)


def dim(module: nn.Module, config: Any) -> int | None:
    """Dimensions of a query head: stated by the module, else by its query projection, else by the config."""
    own = _number(module, _DIM)
    return own or _width(module, _QUERY_PROJECTIONS, head_count(module)) or _number(config, _DIM)


def value_dim(module: nn.Module, config: Any) -> int | None:
    """Dimensions of a value head: stated by the module, else by its projection, else as of a query."""
    own = _number(module, _VALUE_DIM)
    return own or _width(module, _VALUE_PROJECTIONS, key_heads(module, config)) or dim(module, config)


def window(module: nn.Module, config: Any) -> int | None:
    """Width of sliding-window attention, where the module states it; for GPT-Neo's local layers too."""
    local = getattr(module, "attention_type", None) == "local"
    return _number(module, _WINDOW) or (_number(config, ("window_size",)) if local else None)


def chunk(config: Any, layer: int) -> int | None:
    """Chunk length of a layer with chunked attention, else None."""
    sorts = getattr(config, "layer_types", None) or ()
    chunked = layer < len(sorts) and sorts[layer] == "chunked_attention"
    return _number(config, ("attention_chunk_size",)) if chunked else None


def softcap(module: nn.Module) -> float | None:
    cap = getattr(module, "attn_logit_softcapping", None)
    return float(cap) if isinstance(cap, int | float) and cap else None


def sinks(module: nn.Module) -> bool:
    return isinstance(getattr(module, "sinks", None), nn.Parameter)


def context(config: Any, kind: Kind) -> int | None:
    """The most tokens that the tower reads by its config; None where the config does not count tokens."""
    return None if config is None else _number(config, _CONTEXT[kind])


def _number(holder: Any, names: tuple[str, ...]) -> int | None:
    numbers = (_attribute(holder, name) for name in names)
    return next((each for each in numbers if type(each) is int and each > 0), None)


def _attribute(holder: Any, name: str) -> Any:
    try:
        return getattr(holder, name, None)
    except RuntimeError:  # a config that has one value for each layer and none for all
        return None


def _width(module: nn.Module, names: tuple[str, ...], count: int | None) -> int | None:
    named = dict(module.named_children())
    outputs = (getattr(named[name], "out_features", None) for name in names if name in named)
    width = next((each for each in outputs if isinstance(each, int)), None)
    return width // count if width and count and width % count == 0 else None


@dataclass(frozen=True, eq=False)
class Tower:
    """The attention modules of one kind that stand at the same place in every layer.

    `name` is the shortest part of its path that tells it from the model's other towers; `heads` maps each
    layer to its number of query heads, 0 where it is not known before the model runs; `alone` is True where
    no other tower is of its kind.
    """

    name: str
    kind: Kind
    sites: tuple[Site, ...]
    heads: dict[int, int]
    alone: bool

    @property
    def called(self) -> str:
        """Name for messages: its kind where that is enough, else name and kind."""
        return str(self.kind) if self.alone else f"{self.name} ({self.kind})"

    @property
    def distinct_name(self) -> str:
        """Name in results; empty where it is the only tower of its kind."""
        return "" if self.alone else self.name

    @property
    def layers(self) -> tuple[int, ...]:
        return layers_of(self.sites, self.kind)

    @property
    def route(self) -> Route:
        return self.sites[0].route

    @property
    def pattern(self) -> str:
        """The modules' common path with `*` in place of the layer's number."""
        return self.sites[0].tower


def find_towers(every: Sequence[Site]) -> tuple[Tower, ...]:
    """The towers that the sites form, in module order."""
    groups: dict[tuple[str, Kind], list[Site]] = defaultdict(list)
    for site in every:
        groups[site.tower, site.kind].append(site)
    names = tower_names([pattern for pattern, _ in groups])
    kinds = Counter(kind for _, kind in groups)
    return tuple(
        Tower(names[pattern], kind, tuple(members), _heads(members), kinds[kind] == 1)
        for (pattern, kind), members in groups.items()
    )


def choose_tower(among: Sequence[Tower], kind: Kind | None, name: str | None, model: str) -> Tower:
    """The one tower of this kind and name (or part of a path); `InputError` unless exactly one fits."""
    if kind is not None and kind not in list(Kind):
        raise InputError(f"no kind of attention '{kind}': {', '.join(Kind)}")
    if not among:
        raise InputError(f"{model} has no attention that can be read")
    kinds = sorted({tower.kind for tower in among})
    mine = [tower for tower in among if kind in (None, tower.kind)]
    if not mine:
        raise InputError(f"{model} has no {kind} attention: it has {' and '.join(kinds)}")
    named = [tower for tower in mine if name in (None, tower.name)]
    named = named or [tower for tower in mine if (name or "") in tower.pattern]
    if not named:
        raise InputError(f"{model} has no tower '{name}': it has {', '.join(tower.called for tower in mine)}")
    if len(named) == 1:
        return named[0]
    if kind is None and len({tower.kind for tower in named}) == len(named):
        raise InputError(f"{model} has several kinds of attention: choose one of {', '.join(kinds)}")
    raise InputError(
        f"{model} has several towers of attention: choose one of {', '.join(tower.called for tower in named)}"
    )


def reading_text(among: Sequence[Tower]) -> Tower:
    """The tower that most likely reads the text: cross-attention, then decoder, then encoder.

    Towers named after pictures or sounds are passed over unless there is no other.
    """
    text = [tower for tower in among if not named_after_senses(tower.pattern)]
    preferred = (Kind.CROSS, Kind.DECODER, Kind.ENCODER)
    return min(text or among, key=lambda tower: (preferred.index(tower.kind), -len(tower.layers)))


def layers_without(model: nn.Module, tower: Tower) -> tuple[int, ...]:
    """Numbers of layers in the tower's stack that have no attention; none for several stacks."""
    for path, stack in layer_stacks(model, every_site(tower.sites)).items():
        if all(site.path.startswith(tuple(f"{path}.{n}." for n in site.layers)) for site in tower.sites):
            return tuple(number for number in range(len(stack)) if number not in tower.layers)
    return ()


def named_after_senses(pattern: str) -> bool:
    """True where a part of the modules' path names a picture or a sound encoder."""
    return bool(_SENSES & set(re.split(r"[._]", pattern.lower())))


def _heads(members: Iterable[Site]) -> dict[int, int]:
    return {layer: head_count(site.module) or 0 for site in members for layer in site.layers}


def tower_names(patterns: Sequence[str]) -> dict[str, str]:
    """Short name of each path pattern: its shortest part that no other has; empty for a single one.

    `vision_model.encoder.layers.*.self_attn` beside `text_model.encoder...` is `vision_model`. The star, a
    layer's place in its list, tells nothing.
    """
    distinct = list(dict.fromkeys(patterns))
    words = {pattern: [word for word in pattern.split(".") if word != "*"] for pattern in distinct}
    if len(distinct) == 1:
        return dict.fromkeys(distinct, "")
    return {pattern: _shortest(pattern, words) for pattern in distinct}


def _shortest(pattern: str, words: dict[str, list[str]]) -> str:
    """One word that only this pattern has, else the first words that only it has together, else all."""
    mine = words[pattern]
    shared = Counter(word for others in words.values() for word in set(others))
    if own := [word for word in mine if shared[word] == 1]:
        return own[0]
    others = [set(each) for other, each in words.items() if other != pattern]
    telling = [word for word in mine if shared[word] < len(words)]
    for count in range(2, len(telling) + 1):
        if not any(set(telling[:count]) <= other for other in others):
            return ".".join(telling[:count])
    return pattern


def without_attention(model: nn.Module, name: str) -> str:
    """One-line message for a model without attention, with the classes of its layers."""
    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not stacks:
        return f"{name} has no attention that can be read"
    layer = max(stacks, key=len)[0]
    parts = dict.fromkeys(type(part).__name__ for part in layer.children() if not _of_torch(part))
    made = f" ({', '.join(parts)})" if parts else ""
    return f"{name} has no attention that can be read: its layers are {type(layer).__name__}{made}"


def _of_torch(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.")
