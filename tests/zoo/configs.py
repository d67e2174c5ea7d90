"""A tiny config for any model type of the installed transformers, made from the library's own default.

The default config is walked with its sub-configs; fields are shrunk by name (`rules.SIZES`), lists that go by
layer are cut so that every sort of layer stays, and `OVERRIDES` says what single types need besides.
"""

import dataclasses
import importlib
import inspect
import re
import zlib
from functools import cache
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from . import rules
from .overrides import ABSENT, CLASSES, OVERRIDES, Part
from .rules import DIM, HEADS

_COMMON = {field.name for field in dataclasses.fields(PreTrainedConfig)}
_LAYER_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth", "encoder_layers")

_FURTHER = (  # where AutoModel has no entry, in this order
    "MODEL_FOR_PRETRAINING_MAPPING",
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
    "MODEL_FOR_OBJECT_DETECTION_MAPPING",
    "MODEL_FOR_DEPTH_ESTIMATION_MAPPING",
    "MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING",
    "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING",
    "MODEL_FOR_BACKBONE_MAPPING",
    "MODEL_FOR_KEYPOINT_MATCHING_MAPPING",
    "MODEL_FOR_KEYPOINT_DETECTION_MAPPING",
    "MODEL_FOR_TABLE_RECOGNITION_MAPPING",
    "MODEL_FOR_IMAGE_MATTING_MAPPING",
    "MODEL_FOR_POSE_ESTIMATION_MAPPING",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
    "MODEL_FOR_DECISION_MAPPING",
)


class NotBuildable(Exception):
    """Why a model type has no specimen, in one line that names no path of this machine."""

    def __init__(self, reason: object) -> None:
        super().__init__(" ".join(re.sub(r"/\S*/", "", str(reason)).split())[:300])


def not_buildable(error: Exception) -> NotBuildable:
    """What the library said, as the reason."""
    if isinstance(error, NotBuildable):
        return error
    package = re.search(r"requires the (\w+) library", str(error))
    if package and isinstance(error, ImportError):
        return NotBuildable(f"needs the package {package[1]}")
    said = str(error).rsplit("Error: ", 1)[-1] or "no message"
    return NotBuildable(f"the library stops its tiny model with {type(error).__name__}: {said}")


def model_types() -> tuple[str, ...]:
    """Every model type that the installed transformers has a config for, towers and parts included."""
    return tuple(sorted(set(CONFIG_MAPPING)))


def config(model_type: str) -> PreTrainedConfig:
    """The tiny config of a model type; NotBuildable where the library has no default to start from."""
    if model_type not in CONFIG_MAPPING:
        raise NotBuildable(f"no model type {model_type} in this transformers")
    if model_type in ABSENT:
        raise NotBuildable(ABSENT[model_type])
    return tiny(default(CONFIG_MAPPING[model_type], OVERRIDES.get(model_type, {})))


def default(kind: type[PreTrainedConfig], needed: dict[str, Any]) -> PreTrainedConfig:
    """The library's default, with `needed` where it has none."""
    try:
        return kind()
    except Exception:
        return kind(**_plain_orders(needed))


def _plain_orders(orders: dict[str, Any]) -> dict[str, Any]:
    """The orders for a config's own fields, parts made."""
    return {
        name: tiny(CONFIG_MAPPING[value.model_type](), value.changes) if isinstance(value, Part) else value
        for name, value in orders.items()
        if "." not in name
    }


def tiny(original: PreTrainedConfig, above: dict[str, Any] | None = None) -> PreTrainedConfig:
    """A copy of `original` with small sizes; `above` holds what its owner orders for it."""
    kind = type(original)
    object.__setattr__(original, "allow_global_per_layer_attribute_access", True)
    orders = {**OVERRIDES.get(original.model_type, {}), **(above or {})}
    chosen: dict[str, Any] = {}
    plain = _plain(kind)
    for name in _fields(kind):
        value, order = getattr(original, name, None), _below(name, orders)
        if name in orders:
            continue
        if isinstance(value, PreTrainedConfig):
            chosen[name] = tiny(value, order)
        elif (size := _size(name, value)) is not None:
            chosen[name] = size
        elif value != getattr(plain, name, None):
            chosen[name] = value
    chosen |= _per_layer(original, chosen, orders) | _related(original, chosen)
    chosen |= _plain_orders(orders)
    return kind(**{name: value for name, value in chosen.items() if value is not rules.LEAVE})


def _related(original: PreTrainedConfig, chosen: dict[str, Any]) -> dict[str, Any]:
    """Sizes that depend on another field of the same config."""
    related: dict[str, Any] = {}
    if "kv_lora_rank" in chosen:  # latent attention: as many key heads as heads, and a head_dim of its own
        related |= {"num_key_value_heads": HEADS, "head_dim": rules.LEAVE}
    heads = getattr(original, "num_heads", None)
    if isinstance(heads, (list, tuple)) and isinstance(
        chosen.get("embed_dim"), int
    ):  # twice as wide per stage
        related["embed_dim"] = DIM * heads[0]
    if "mrope_section" in getattr(type(original), "ignore_keys_at_rope_validation", ()):
        related["rope_parameters"] = _sections(getattr(original, "rope_parameters", None) or {})
    if "depths" in chosen and isinstance(chosen.get("image_size"), int):  # halved from stage to stage
        related["image_size"] = rules.STAGED_IMAGE
    return related | _outputs(original, chosen)


def _sections(rope: dict[str, Any]) -> dict[str, Any]:
    """Rotary parameters whose sections (time, height, width) fill the half of a head that is rotated."""
    if any(isinstance(value, dict) for value in rope.values()):
        return {name: _sections(value) if isinstance(value, dict) else value for name, value in rope.items()}
    turned = int(DIM * rope.get("partial_rotary_factor", 1)) // 2
    return {"rope_type": "default", "rope_theta": 10000.0, **rope, "mrope_section": rules.SECTIONS[turned]}


def _outputs(original: PreTrainedConfig, chosen: dict[str, Any]) -> dict[str, Any]:
    """As many output stages of a backbone as the original has, where they are not simply the last one."""
    stages, wanted = getattr(original, "stage_names", None), getattr(original, "_out_features", None)
    count = next((name for name in _LAYER_COUNTS if name in chosen), None)
    if not stages or not wanted or wanted == stages[-1:]:
        return {}
    if "depths" in chosen or count is None:
        return {"out_features": list(wanted)}
    layers = max(chosen[count], len(wanted))
    return {count: layers, "out_features": [f"stage{i + 1}" for i in range(layers - len(wanted), layers)]}


def _below(name: str, orders: dict[str, Any]) -> dict[str, Any]:
    """The orders for the sub-config `name`, written as `name.field`."""
    return {
        key.removeprefix(f"{name}."): value for key, value in orders.items() if key.startswith(f"{name}.")
    }


@cache
def _plain(kind: type[PreTrainedConfig]) -> PreTrainedConfig | None:
    try:
        made = kind()
    except Exception:
        return None
    object.__setattr__(made, "allow_global_per_layer_attribute_access", True)
    return made


def _fields(kind: type[PreTrainedConfig]) -> list[str]:
    """The fields of its own, and those common ones that say what the model is."""
    own = [
        field.name
        for field in dataclasses.fields(kind)
        if field.init and field.name not in _COMMON and field.name not in {"_out_features", "_out_indices"}
    ]
    return [*own, "is_encoder_decoder"]


def _size(name: str, value: Any) -> Any:
    """The small value for a field, None to leave it."""
    if name.endswith(("_token_id", "_token_index")):
        return None if value is None and not name.startswith("pad") else _token(name)
    if name in rules.SIZES and not isinstance(value, (list, tuple)):
        return None if value is None and name in rules.OPTIONAL else rules.SIZES[name]
    if name in {"image_size", "patch_size"}:
        size = rules.IMAGE if name == "image_size" else rules.PATCH
        return [size] * len(value) if isinstance(value, (list, tuple)) else size
    if name == "depths":
        return [2] * len(value)
    if name in rules.AS_WIDE:
        return [rules.HIDDEN] * len(value)
    if name in rules.EIGHTHS and isinstance(value, (list, tuple)):
        return [max(entry // 8, 3) for entry in value]
    return None


def _token(name: str) -> int:
    """One id per name, the same in every config of a model."""
    stem = name.removesuffix("_id").removesuffix("_index").removesuffix("_token")
    span = rules.VOCABULARY - rules.FIRST_SPECIAL
    return rules.IDS.get(stem, rules.FIRST_SPECIAL + zlib.crc32(stem.encode()) % span)


def _per_layer(original: PreTrainedConfig, chosen: dict[str, Any], orders: dict[str, Any]) -> dict[str, Any]:
    """Lists with one entry per layer, cut to as many layers as show every sort of them, and the count."""
    ordered = {**chosen, **orders}
    count_name = next((name for name in _LAYER_COUNTS if name in ordered and hasattr(original, name)), None)
    if count_name is None:
        return {}
    before, after = getattr(original, count_name), ordered[count_name]
    lists = {
        name: list(value)
        for name in _fields(type(original))
        if name not in orders
        and not name.startswith("_")
        and isinstance(value := getattr(original, name, None), (list, tuple))
        and len(value) == before
    }
    if (
        "layer_types" in lists
        and chosen.get("sliding_window")
        and set(lists["layer_types"]) == {"full_attention"}
    ):
        lists["layer_types"] = ["sliding_attention", "full_attention"] * before
    if any(isinstance(entry, (list, dict)) for value in lists.values() for entry in value):
        return {}
    columns = list(zip(*lists.values(), strict=False))
    sorts = list(dict.fromkeys(columns))
    if len(sorts) < 2 or count_name in orders:
        kept = columns[:after]
    else:
        after = max(after, min(len(sorts), 6))
        kept = [sorts[i % len(sorts)] for i in range(after)]
    made = {name: [column[i] for column in kept] for i, name in enumerate(lists)}
    return made | ({count_name: after} if lists else {})


def model_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """AutoModel's class for the config, else another Auto class's, else the tower's own."""
    if config.model_type in CLASSES:
        return getattr(transformers, CLASSES[config.model_type])
    for mapping in ("MODEL_MAPPING", *_FURTHER):
        found = getattr(modeling_auto, mapping).get(type(config), None)
        if found is not None:
            return found[0] if isinstance(found, tuple) else found
    return _tower(type(config))


def _tower(kind: type[PreTrainedConfig]) -> type[PreTrainedModel]:
    """The model class of the modelling file that is made from this very config."""
    try:
        module = importlib.import_module(kind.__module__.replace("configuration_", "modeling_"))
    except ImportError as error:
        raise NotBuildable(f"{kind.__name__} has no modelling file of its own: {error}") from None
    made = [
        found
        for _, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, PreTrainedModel)
        and getattr(found, "config_class", None) is kind
        and not found.__name__.endswith("PreTrainedModel")
        and found.forward is not torch.nn.Module.forward
    ]
    if not made:
        raise NotBuildable(f"{kind.__name__} is a part without a model class of its own")
    stem = kind.__name__.removesuffix("Config")
    return min(made, key=lambda found: (found.__name__ not in {stem, f"{stem}Model"}, len(found.__name__)))
