"""What a model is called with, told by the names in the signature of its forward."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from . import rules
from .rules import BATCH, FRAMES, IMAGE, MELS, PADDING, TOKENS

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
        names = dict.fromkeys([*required, *([main] if main in self.parameters else [])])
        for name in self.parameters:
            if name in rules.EXTRA_INPUTS.get(self.config.model_type, ()) or (
                name in _ALWAYS and _ALWAYS[name](self)
            ):
                names[name] = None
        return list(names)

    def make(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name in self.wanted():
            if name not in MAKERS:
                raise LookupError(f"no rule makes the input {name}")
            made[name] = MAKERS[name](self)
        return made


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
    size = seek(maker.config, "image_size", "img_size", "pretrain_image_size", default=IMAGE)
    high, wide = size if isinstance(size, (list, tuple)) else (size, size)
    return maker.normal(BATCH, _channels(maker), high, wide)


def _channels(maker: Maker) -> int:
    found = seek(maker.config, "num_channels", "in_channels", "in_chans", default=3)
    return found if isinstance(found, int) else 3


def _features(maker: Maker) -> Tensor:
    bins = seek(maker.config, "num_mel_bins", "n_mel_bins", "input_feat_per_channel", "feature_size", "mel_dim",
                "feature_projection_input_dim", "input_feat_size", "input_dim", default=MELS)
    shapes = [(BATCH, bins, FRAMES), (BATCH, FRAMES, bins), (BATCH, 1, FRAMES, bins)]
    return maker.normal(*shapes[maker.layout % len(shapes)])


def _wave(maker: Maker) -> Tensor:
    shapes = [(BATCH, 4000), (BATCH, 1, 4000)]
    return maker.normal(*shapes[maker.layout % len(shapes)])


def _boxes(maker: Maker) -> Tensor:
    corner = torch.randint(0, 40, (BATCH, TOKENS, 2), generator=maker.random)
    return torch.cat([corner, corner + 7], dim=-1)


def _patches(maker: Maker) -> Tensor:
    config = maker.config
    size, time = seek(config, "patch_size"), seek(config, "temporal_patch_size", default=1)
    return maker.normal(2 * 6 * 6, _channels(maker) * time * size * size)


def _grid(maker: Maker) -> Tensor:
    return torch.tensor([[1, 6, 6]] * BATCH)


MAKERS: dict[str, Callable[[Maker], Any]] = {
    "input_ids": lambda maker: maker.ids() * maker.padding(),
    "attention_mask": lambda maker: maker.padding(),
    "decoder_input_ids": lambda maker: maker.ids(SHORTER),
    "pixel_values": _picture,
    "input_features": _features,
    "input_values": _wave,
    "bbox": _boxes,
    "hidden_states": _patches,
    "grid_thw": _grid,
    "image_grid_thw": _grid,
}
_ALWAYS: dict[str, Callable[[Maker], bool]] = {
    "attention_mask": lambda maker: "input_ids" in maker.parameters,
    "decoder_input_ids": lambda maker: True,
    "bbox": lambda maker: True,
}
LAYOUTS = 3
