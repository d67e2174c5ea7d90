"""What an attention module without weights says of itself: heads, dimensions, window, cap, sinks, context.

Its own attributes and the shapes of its projections come first, then its config. Nothing is made up: what
neither tells is None.
"""

from collections.abc import Iterator
from typing import Any

from torch import nn

from attnscope.results import Kind

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


def head_count(module: nn.Module) -> int | None:
    """Query heads by the module, by one of its parts or by its config; None where none of them tells."""
    for holder in (module, *module.children(), getattr(module, "config", None)):
        for name in _NAMES:
            count = getattr(holder, name, None)
            if isinstance(count, int) and not isinstance(count, bool) and count > 0:
                return count
    return None


def config_of(model: Any, path: str) -> Any:
    """The config that belongs to the module at `path`: its own, or that of what it stands in."""
    parts = path.split(".")
    owners = (model.get_submodule(".".join(parts[:end])) for end in range(len(parts), -1, -1))
    return next((config for owner in owners if (config := getattr(owner, "config", None)) is not None), None)


def key_heads(module: nn.Module, config: Any) -> int | None:
    """Key heads by the key projection, else as module or config count them; all heads where none does."""
    own, width = dim(module, config), _width(module, _KEY_PROJECTIONS, 1)
    if own and width and width % own == 0:
        return width // own
    counted = _number(module, _KEY_HEADS) or _number(config, _KEY_HEADS)
    return counted or head_count(module)


def dim(module: nn.Module, config: Any) -> int | None:
    """Dimensions of a query: by the module, else by its query projection, else by the config."""
    own = _number(module, _DIM)
    return own or _width(module, _QUERY_PROJECTIONS, head_count(module)) or _number(config, _DIM)


def value_dim(module: nn.Module, config: Any) -> int | None:
    """Dimensions of a value: by the module, else by its value projection, else those of a query."""
    own = _number(module, _VALUE_DIM)
    return own or _width(module, _VALUE_PROJECTIONS, key_heads(module, config)) or dim(module, config)


def window(module: nn.Module, config: Any) -> int | None:
    """How far its tokens look back, where the module says it; GPT-Neo's local layers do by their name."""
    local = getattr(module, "attention_type", None) == "local"
    return _number(module, _WINDOW) or (_number(config, ("window_size",)) if local else None)


def chunk(config: Any, layer: int) -> int | None:
    """Length of the chunks that a layer's tokens keep to, where the config names its layers so."""
    sorts = getattr(config, "layer_types", None) or ()
    chunked = layer < len(sorts) and sorts[layer] == "chunked_attention"
    return _number(config, ("attention_chunk_size",)) if chunked else None


def softcap(module: nn.Module) -> float | None:
    cap = getattr(module, "attn_logit_softcapping", None)
    return float(cap) if isinstance(cap, int | float) and cap else None


def sinks(module: nn.Module) -> bool:
    return isinstance(getattr(module, "sinks", None), nn.Parameter)


def context(config: Any, kind: Kind) -> int | None:
    """The most tokens that the config says the tower reads; None where it does not count tokens."""
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
    outputs = (getattr(each, "out_features", None) for each in _children(module, names))
    width = next((each for each in outputs if isinstance(each, int)), None)
    return width // count if width and count and width % count == 0 else None


def _children(module: nn.Module, names: tuple[str, ...]) -> Iterator[nn.Module]:
    named = dict(module.named_children())
    return (named[name] for name in names if name in named)
