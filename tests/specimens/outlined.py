"""Models outlined from their config alone, and tiny configs of more families than `families` has."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from families import CONFIGS, HEADS, HIDDEN, KEY_HEADS, LAYERS, WINDOW
from torch import nn
from transformers import PreTrainedConfig

from attnscope.model.anatomy.sites import find_sites
from attnscope.model.anatomy.towers import find_towers
from attnscope.model.loading.load import Plan
from attnscope.model.source.checkpoint import Checkpoint
from attnscope.model.source.find import Source
from attnscope.model.source.listing import Listing
from attnscope.results import LayerOutline, Outline
from attnscope.verbs.model.outline import outline_plan

_TEXT = {"vocab_size": 97, "max_position_embeddings": 64, "pad_token_id": 0}
_PLAIN = {**_TEXT, "hidden_size": HIDDEN, "num_attention_heads": HEADS, "intermediate_size": 40}
_GROUPED = {**_PLAIN, "num_key_value_heads": KEY_HEADS, "num_hidden_layers": LAYERS}
_HALVES = {
    "vocab_size": 97, "d_model": HIDDEN, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 30,
    "encoder_attention_heads": 4, "decoder_attention_heads": HEADS, "decoder_ffn_dim": 30, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
_SLIDES = ["sliding_attention"]
_SIGHT = {
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
}

MORE: dict[str, Callable[[], PreTrainedConfig]] = {
    "bart": lambda: hf.BartConfig(**_HALVES, max_position_embeddings=64),
    "whisper": lambda: hf.WhisperConfig(
        **_HALVES, num_mel_bins=16, max_source_positions=20, max_target_positions=64
    ),
    "clip": lambda: hf.CLIPConfig(
        text_config={**_PLAIN, "num_hidden_layers": 3, "projection_dim": 32},
        vision_config={**_SIGHT, "image_size": 24, "patch_size": 8, "num_attention_heads": 4},
        projection_dim=32,
    ),
    "swin": lambda: hf.SwinConfig(
        image_size=32, patch_size=4, embed_dim=12, depths=[2, 1], num_heads=[2, 3], window_size=2
    ),
    "deepseek_v3": lambda: hf.DeepseekV3Config(
        **{**_GROUPED, "num_key_value_heads": HEADS}, q_lora_rank=16, kv_lora_rank=12, qk_nope_head_dim=8,
        qk_rope_head_dim=4, v_head_dim=10, n_routed_experts=4, num_experts_per_tok=2, n_group=1,
        topk_group=1, first_k_dense_replace=1, moe_intermediate_size=20,
    ),
    "jamba": lambda: hf.JambaConfig(
        **{**_GROUPED, "num_hidden_layers": 5}, attn_layer_period=3, attn_layer_offset=1, num_experts=2,
        num_experts_per_tok=1, use_mamba_kernels=False, mamba_d_state=4, mamba_dt_rank=3,
    ),
    "phi": lambda: hf.PhiConfig(**_GROUPED, partial_rotary_factor=0.5),
    "cohere2": lambda: hf.Cohere2Config(
        **_GROUPED, sliding_window=WINDOW, layer_types=[*_SLIDES, "full_attention", *_SLIDES],
    ),
    "bloom": lambda: hf.BloomConfig(vocab_size=97, hidden_size=HIDDEN, n_head=HEADS, n_layer=LAYERS),
    "falcon": lambda: hf.FalconConfig(
        vocab_size=97, hidden_size=HIDDEN, num_attention_heads=HEADS, num_hidden_layers=2, multi_query=True
    ),
    "gpt_neo": lambda: hf.GPTNeoConfig(
        vocab_size=97, hidden_size=HIDDEN, num_heads=HEADS, num_layers=2, window_size=WINDOW,
        attention_types=[[["global", "local"], 1]], max_position_embeddings=64,
    ),
    "deberta-v2": lambda: hf.DebertaV2Config(
        **_PLAIN, num_hidden_layers=2, relative_attention=True, pos_att_type=["c2p", "p2c"],
        position_buckets=5, position_biased_input=False,
    ),
}  # fmt: skip
ALL = {**CONFIGS, **MORE}


def config(family: str) -> PreTrainedConfig:
    made = ALL[family]()
    made._attn_implementation = "eager"
    return made


def model_class(made: PreTrainedConfig) -> Any:
    return hf.T5EncoderModel if made.model_type == "t5" else hf.AutoModel._model_mapping[type(made)]


def planned(made: PreTrainedConfig) -> tuple[Plan, Listing]:
    """A model of which there is nothing but its config."""
    made, kind = copy.deepcopy(made), model_class(made)
    with torch.device("meta"):
        skeleton = kind(made)
    bare = Checkpoint(Source(made.model_type, made.model_type, Path()), (), {})
    return Plan(bare, made, kind, skeleton, find_towers(find_sites(skeleton))), Listing(bare, None, {})


def outlined(made: PreTrainedConfig, **options: Any) -> Outline:
    return outline_plan(*planned(made), **options)


def grown(made: PreTrainedConfig, seed: int = 0) -> nn.Module:
    """The same model with weights, drawn at random."""
    torch.manual_seed(seed)
    model = model_class(made)._from_config(copy.deepcopy(made), attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1 and parameter.is_floating_point():
                parameter.normal_(std=parameter.shape[-1] ** -0.5)
    return model


def inputs(model: nn.Module, length: int) -> dict[str, torch.Tensor]:
    """Text, a picture or a sound, as the model takes them."""
    generator, config = torch.Generator().manual_seed(1), model.config
    text = {"input_ids": torch.randint(3, 97, (1, length), generator=generator)}
    if config.model_type == "whisper":
        frames = 2 * config.max_source_positions
        sound = torch.randn(1, config.num_mel_bins, frames, generator=generator)
        return {"input_features": sound, "decoder_input_ids": text["input_ids"]}
    if config.model_type in ("clip", "swin"):
        side = 24 if config.model_type == "clip" else 32
        picture = {"pixel_values": torch.randn(1, 3, side, side, generator=generator)}
        return picture if config.model_type == "swin" else {**text, **picture}
    decodes = config.is_encoder_decoder and config.model_type != "t5"
    return {**text, "decoder_input_ids": text["input_ids"]} if decodes else text


def layers_of(result: Outline) -> dict[tuple[str, str, int], LayerOutline]:
    """The layers by the pattern and kind of their tower and their number."""
    return {
        (tower.pattern, str(tower.kind), layer.layer): layer
        for tower in result.towers
        for layer in tower.layers
    }
