"""What a model is called with, told by the names in the signature of its forward.

Prompts that hold pictures or sound have as many placeholder tokens as the model makes features.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from . import rules
from .configs import NotBuildable
from .rules import BATCH, FRAMES, HIDDEN, IMAGE, MELS, PADDING, TOKENS
from .special import PLACEHOLDERS, SPECIAL

FREE_IMAGE = 64  # pixels where the config names no size
SIDE = 6  # patches along the side of a picture
IMAGE_TOKENS = ("image_token_id", "image_token_index", "image_patch_id", "img_context_token_id")
SHORTER = 7  # tokens of the decoder, fewer than of the encoder
_NEVER = {"self", "args", "kwargs", "labels", "return_dict", "inputs_embeds", "past_key_values"}


class Maker:
    """Makes one set of inputs for one model; `layout` numbers the shapes tried for features."""

    def __init__(self, model: nn.Module, seed: int, layout: int = 0) -> None:
        self.model, self.config, self.layout = model, model.config, layout
        self.random = torch.Generator().manual_seed(seed)
        self.parameters = {
            name: parameter
            for name, parameter in inspect.signature(model.forward).parameters.items()
            if name not in _NEVER
        }

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.random)

    def ids(self, length: int = TOKENS, batch: int = BATCH) -> Tensor:
        """Ids of plain words: no special token."""
        return torch.randint(3, rules.FIRST_SPECIAL, (batch, length), generator=self.random)

    def padding(self, length: int = TOKENS) -> Tensor:
        """All ones, and zeros at the end of the second row."""
        mask = torch.ones(BATCH, length, dtype=torch.long)
        mask[1, length - PADDING :] = 0
        return mask

    def wanted(self) -> list[str]:
        """The parameters without a default, the main input, and what goes with them."""
        required = [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        main = getattr(self.model, "main_input_name", "input_ids")
        mains = [main] if isinstance(main, str) else main
        names = dict.fromkeys([*required, *(name for name in mains if name in self.parameters)])
        for name in self.parameters:
            if name in _ALWAYS and _ALWAYS[name](self):
                names[name] = None
        return list(names)

    def make(self) -> dict[str, Any]:
        special = SPECIAL.get(self.config.model_type, {})
        made = {name: self.one(name) for name in dict.fromkeys([*self.wanted(), *special])}
        return {name: value for name, value in made.items() if value is not None}

    def one(self, name: str) -> Any:
        """The input of this name."""
        make = SPECIAL.get(self.config.model_type, {}).get(name) or MAKERS.get(name)
        if make is None:
            raise NotBuildable(f"the zoo has no rule for its input {name}")
        return make(self)


def seek(config: PreTrainedConfig, *names: str, default: Any = None) -> Any:
    """The first of the fields that the config or, going down, one of its sub-configs has a value for."""
    for part in parts(config):
        for name in names:
            value = part.__dict__.get(name)
            if value is not None:
                return value
    return default


def parts(config: PreTrainedConfig) -> Iterator[PreTrainedConfig]:
    """A config and all its sub-configs, vision and audio before text."""
    yield config
    below = [value for value in config.__dict__.values() if isinstance(value, PreTrainedConfig)]
    for part in sorted(below, key=lambda part: "text" in part.model_type or "decoder" in part.model_type):
        yield from parts(part)


def _picture(maker: Maker) -> Tensor:
    high, wide = _image_size(maker)
    if "spatial_shapes" in maker.parameters or "pixel_position_ids" in maker.parameters:
        return maker.normal(BATCH, SIDE * SIDE, _patch_numbers(maker))
    if "image_grid_thw" in maker.parameters or "grid_thw" in maker.parameters:
        return _patches(maker)
    one, film = (_channels(maker), high, wide), (_frames(maker), _channels(maker), high, wide)
    return maker.normal(BATCH, *[one, film, (1, *one)][maker.layout])


def _film(maker: Maker) -> Tensor:
    return maker.normal(BATCH, _frames(maker), _channels(maker), *_image_size(maker))


def _frames(maker: Maker) -> int:
    return seek(maker.config, "num_frames", "frames_per_clip", default=4)


def _image_size(maker: Maker) -> tuple[int, int]:
    size = seek(
        maker.config, "image_size", "img_size", "pretrain_image_size", "crop_size", default=FREE_IMAGE
    )
    return tuple(size) if isinstance(size, (list, tuple)) else (size, size)


def _channels(maker: Maker) -> int:
    found = seek(maker.config, "num_channels", "in_channels", "in_chans", default=3)
    return found if isinstance(found, int) else 3


def _features(maker: Maker) -> Tensor:
    bins = seek(
        maker.config,
        *("num_mel_bins", "n_mel_bins", "input_feat_per_channel", "feature_size", "mel_dim"),
        *("feature_projection_input_dim", "input_feat_size", "input_dim"),
        default=MELS,
    )
    return maker.normal(BATCH, *[(bins, FRAMES), (FRAMES, bins), (1, FRAMES, bins)][maker.layout])


def _wave(maker: Maker) -> Tensor:
    if seek(maker.config, "num_mel_bins"):
        return maker.normal(BATCH, FRAMES, seek(maker.config, "num_mel_bins"))
    return maker.normal(BATCH, *[(4000,), (1, 4000), (1, 4000)][maker.layout])


def _boxes(maker: Maker) -> Tensor:
    corner = torch.randint(0, 40, (BATCH, TOKENS, 2), generator=maker.random)
    return torch.cat([corner, corner + 7], dim=-1)


def _patch_numbers(maker: Maker) -> int:
    """Numbers in one flattened patch."""
    size = seek(maker.config, "patch_size")
    time = seek(maker.config, "temporal_patch_size", "patch_temporal", default=1)
    if size is None:
        return seek(maker.config, "patch_embed_hidden_size", default=HIDDEN)
    size, time = (value[0] if isinstance(value, (list, tuple)) else value for value in (size, time))
    return _channels(maker) * time * size * size


def _patches(maker: Maker) -> Tensor:
    return maker.normal(BATCH * SIDE * SIDE, _patch_numbers(maker))


def _grid(maker: Maker) -> Tensor:
    return torch.tensor([[1, SIDE, SIDE]] * BATCH)


def _places(side: int) -> Tensor:
    """Column and row of each patch."""
    return torch.cartesian_prod(torch.arange(side), torch.arange(side)).flip(-1).expand(BATCH, -1, -1)


MAKERS: dict[str, Callable[[Maker], Any]] = {
    "input_ids": lambda maker: maker.ids() * maker.padding(),
    "attention_mask": lambda maker: maker.padding(),
    "decoder_input_ids": lambda maker: maker.ids(SHORTER),
    "pixel_values": _picture,
    "pixel_values_videos": _film,
    "prompt_pixel_values": _picture,
    "prompt_masks": _picture,
    "input_features": _features,
    "input_features_mask": lambda maker: torch.ones(BATCH, FRAMES, dtype=torch.long),
    "input_values": _wave,
    "bbox": _boxes,
    "hidden_states": _patches,
    "grid_thw": _grid,
    "image_grid_thw": _grid,
    "spatial_shapes": lambda maker: torch.tensor([[SIDE, SIDE]] * BATCH),
    "pixel_attention_mask": lambda maker: torch.ones(BATCH, SIDE * SIDE, dtype=torch.long),
    "image_sizes": lambda maker: torch.tensor([list(_image_size(maker))] * BATCH),
    "image_merge_sizes": lambda maker: torch.tensor([2] * BATCH),
    "high_res_pixel_values": lambda maker: maker.normal(BATCH, 3, IMAGE, IMAGE),
    "pixel_position_ids": lambda maker: _places(SIDE),
    "image_position_ids": lambda maker: _places(SIDE),
    "target_sizes": lambda maker: torch.tensor([[SIDE, SIDE]] * BATCH),
    "audio_mel": lambda maker: maker.normal(BATCH, FRAMES, MELS),
    "audio_mel_mask": lambda maker: torch.zeros(BATCH, FRAMES, dtype=torch.bool),
    "query_embeds": lambda maker: maker.normal(BATCH, 5, HIDDEN),
    "merge_sizes": lambda maker: torch.tensor([2] * BATCH),
    "flattened_patches": lambda maker: torch.cat(
        [
            torch.cartesian_prod(torch.arange(SIDE), torch.arange(SIDE)).expand(BATCH, -1, -1).float() + 1,
            maker.normal(BATCH, SIDE * SIDE, _patch_numbers(maker)),
        ],
        dim=-1,
    ),
}
_ALWAYS: dict[str, Callable[[Maker], bool]] = {
    "attention_mask": lambda maker: "input_ids" in maker.parameters,
    "decoder_input_ids": lambda maker: True,
    "bbox": lambda maker: True,
    "input_ids": lambda maker: "pixel_values" in maker.parameters,
    "pixel_values": lambda maker: seek(maker.config, *IMAGE_TOKENS) is None,
    "input_features_mask": lambda maker: "input_ids" not in maker.parameters,
    "spatial_shapes": lambda maker: True,
    "pixel_attention_mask": lambda maker: "spatial_shapes" in maker.parameters,
    "grid_thw": lambda maker: True,
    "target_sizes": lambda maker: "input_ids" not in maker.parameters,
    "flattened_patches": lambda maker: True,
}
LAYOUTS = 3

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
