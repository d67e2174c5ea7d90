"""Prompts that hold pictures or sound: as many placeholder tokens as the model makes features."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from .inputs import IMAGE_TOKENS, Maker, seek
from .rules import BATCH, PADDING, TOKENS
from .special import PLACEHOLDERS, SPECIAL

MEDIA = {  # the model's maker of features, the fields of the placeholder's id, the input that must be there
    "image": ("get_image_features", IMAGE_TOKENS, "pixel_values"),
    "audio": ("get_audio_features", ("audio_token_id", "audio_token_index"), "input_features"),
}
BEFORE = 3  # words in front of the placeholders
_TYPES = ("mm_token_type_ids", "token_type_ids")


def media(maker: Maker) -> list[str]:
    """The media that can stand in a prompt of this model."""
    return [
        name
        for name, (method, token, needed) in MEDIA.items()
        if seek(maker.config, *token) is not None
        and {"input_ids", needed} <= set(maker.parameters)
        and _owner(maker.model, method) is not None
    ]


def prompt(maker: Maker, name: str) -> dict[str, Any]:
    """Inputs with one picture (sound) per row: words, placeholders, words; the second row ends in padding."""
    method, token, _ = MEDIA[name]
    features_of = getattr(_owner(maker.model, method), method)
    accepted = inspect.signature(features_of).parameters
    made = {
        key: maker.one(key)
        for key, parameter in accepted.items()
        if key not in {"self", "kwargs"} and (parameter.default is parameter.empty or _helps(key, maker))
    }
    count = PLACEHOLDERS.get(maker.config.model_type, 0)
    if not count:
        with torch.no_grad():
            count = _rows(features_of(**made)) // BATCH
    words = maker.ids()
    placeholders = torch.full((BATCH, count), seek(maker.config, *token))
    ids = torch.cat([words[:, :BEFORE], placeholders, words[:, BEFORE:]], dim=1)
    mask = torch.ones_like(ids)
    mask[1, TOKENS + count - PADDING :] = 0
    kinds = {key: (ids == placeholders[0, 0]).long() for key in _TYPES if key in maker.parameters}
    shared = {key: value for key, value in made.items() if key in maker.parameters}
    if "decoder_input_ids" in maker.parameters:
        shared["decoder_input_ids"] = maker.one("decoder_input_ids")
    return {"input_ids": ids * mask, "attention_mask": mask, **shared, **kinds}


def _helps(key: str, maker: Maker) -> bool:
    """Whether an optional argument is one that the pixels cannot be understood without."""
    return (
        key
        in {"image_grid_thw", "spatial_shapes", "image_position_ids", "input_features_mask", "target_sizes"}
        or key in SPECIAL.get(maker.config.model_type, {})
        or (key == "pixel_attention_mask" and "spatial_shapes" in maker.parameters)
    )


def _owner(model: nn.Module, method: str) -> nn.Module | None:
    return next((module for module in model.modules() if hasattr(module, method)), None)


def _rows(features: Any) -> int:
    """How many placeholder positions the features fill."""
    if hasattr(features, "last_hidden_state"):
        features = features.last_hidden_state if features.pooler_output is None else features.pooler_output
    if isinstance(features, Tensor):
        return features.shape[:-1].numel()
    return sum(_rows(part) for part in features)
