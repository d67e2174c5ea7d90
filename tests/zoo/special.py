"""Inputs that single model types need and no name tells: per type, input -> what makes it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .rules import BATCH, FRAMES, HIDDEN, IMAGE, MELS, TOKENS

if TYPE_CHECKING:
    from .inputs import Maker

Make = Callable[["Maker"], Any]


LEFT_OUT: Make = lambda maker: None  # noqa: E731  an input that would be made and must not be


def normal(*shape: int) -> Make:
    return lambda maker: maker.normal(BATCH, *shape)


def words(*shape: int) -> Make:
    return lambda maker: (
        maker.ids(shape[0]) if len(shape) == 1 else maker.ids(shape[0] * shape[1]).view(BATCH, *shape)
    )


def fixed(value: Any) -> Make:
    return lambda maker: torch.tensor(value)


def ones(*shape: int) -> Make:
    return lambda maker: torch.ones(BATCH, *shape, dtype=torch.long)


def _series(past: int, future: int) -> dict[str, Make]:
    return {
        "past_values": normal(past),
        "past_time_features": normal(past, 1),
        "past_observed_mask": ones(past),
        "future_values": normal(future),
        "future_time_features": normal(future, 1),
    }


_TILES = {"pixel_values": normal(3, 3, IMAGE, IMAGE), "image_sizes": fixed([[IMAGE, IMAGE]] * BATCH)}
_PAIR = {"pixel_values": normal(2, 3, 64, 64)}
_PHRASES = [  # 101 and 102 begin and end, 1012 is a full stop: Grounding DINO's own ids
    [101, 7, 21, 1012, 33, 9, 14, 1012, 25, 1012, 102],
    [101, 19, 5, 30, 1012, 12, 1012, 102, 0, 0, 0],
]
_CAUSAL = torch.full((BATCH, 1, TOKENS, TOKENS), torch.finfo().min).triu(1)
_POOLED = torch.arange(36).view(3, 2, 3, 2).transpose(1, 2).reshape(9, 4).clone()  # 2 x 2 of 6 x 6 patches
_POOLED[8, 2:] = -1  # patches that are not there
_INKLING: dict[str, Make] = {
    "pixel_values": lambda maker: maker.normal(18, 8, 8, 3),
    "image_grid_thw": fixed([[1, 3, 3]] * BATCH),
}
_SAM3_MASKS: dict[str, Make] = {
    "decoder_queries": normal(5, HIDDEN),
    "backbone_features": lambda maker: [maker.normal(BATCH, HIDDEN, side, side) for side in (12, 6)],
    "encoder_hidden_states": normal(36, HIDDEN),
    "prompt_features": normal(TOKENS, HIDDEN),
    "prompt_mask": lambda maker: maker.padding().bool(),
}
_QFORMER = {"qformer_input_ids": words(7)}

SPECIAL: dict[str, dict[str, Make]] = {
    "autoformer": _series(10, 3),
    "blip_2_qformer": {"encoder_hidden_states": normal(9, HIDDEN)},
    "blt_global_transformer": {"inputs_embeds": normal(TOKENS, HIDDEN)},
    "blt_local_decoder": {
        "inputs_embeds": normal(TOKENS, HIDDEN),
        "patch_embeds": normal(5, HIDDEN),
        "attention_mask": lambda maker: _CAUSAL,
    },
    "blt_local_encoder": {
        "attention_mask": lambda maker: _CAUSAL,
        "num_patches": lambda maker: 5,
        "patch_ids": fixed([[0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4], [0, 0, 0, 1, 2, 2, 3, 3, 4, 4, 4]]),
    },
    "bridgetower_vision_model": {"image": normal(3, IMAGE, IMAGE)},
    "clap": {"input_features": normal(1, 256, MELS), "is_longer": fixed([[False]] * BATCH)},
    "clap_audio_model": {"input_features": normal(1, 256, MELS), "is_longer": fixed([[False]] * BATCH)},
    "clvp": {"input_features": normal(HIDDEN, FRAMES)},
    "decision_transformer": {
        "states": normal(5, 17),
        "actions": normal(5, 4),
        "rewards": normal(5, 1),
        "returns_to_go": normal(5, 1),
        "timesteps": fixed([list(range(5))] * BATCH),
        "attention_mask": ones(5),
    },
    "deepseek_ocr2_encoder": {"inputs_embeds": normal(TOKENS, HIDDEN), "num_patches": lambda maker: 6},
    "dia": {"decoder_input_ids": words(7, 9)},
    "dia_decoder": {"input_ids": words(TOKENS, 9), "encoder_hidden_states": normal(7, HIDDEN)},
    "efficientloftr": _PAIR,
    "flava_multimodal_model": {"hidden_states": normal(TOKENS, HIDDEN)},
    "florence_vision": {"hidden_states": normal(3, 64, 64)},
    "fun_asr_nano": {"input_features": normal(FRAMES, 112)},
    "fun_asr_nano_encoder": {"input_features": normal(FRAMES, 112)},
    "fuyu": {"pixel_values": normal(36, 48)},
    "gemma4": {"pixel_values": normal(36, 48)},
    "glm_image": {  # the second grid of each row is that of the picture to be made
        "image_grid_thw": fixed([[1, 6, 6], [1, 4, 4]] * BATCH),
        "images_per_sample": fixed([2] * BATCH),
    },
    "granite4_vision": {"pixel_values": normal(3, 3, 32, 32), "image_sizes": fixed([[32, 32]] * BATCH)},
    "granite_speech_encoder": {"hidden_states": normal(FRAMES, MELS)},
    "granite_speech_plus_encoder": {"hidden_states": normal(FRAMES, MELS)},
    "grounding-dino": {"input_ids": fixed(_PHRASES)},
    "idefics": {"pixel_values": normal(1, 3, IMAGE, IMAGE), "image_attention_mask": ones(TOKENS, 1)},
    "idefics2_perceiver": {"context": normal(TOKENS, HIDDEN)},
    "informer": _series(10, 3),
    "inkling2": _INKLING,
    "inkling2_vision": _INKLING,
    "instructblip": _QFORMER,
    "instructblipvideo": _QFORMER,
    "kimi_k25": {"pixel_values": lambda maker: maker.normal(72, 3, 4, 4)},
    "kimi_k25_vision": {"pixel_values": lambda maker: maker.normal(72, 3, 4, 4)},
    "kosmos-2": {"image_embeds_position_mask": lambda maker: _first(4)},
    "kyutai_speech_to_text": {"input_ids": words(TOKENS, 3)},
    "layoutlmv3": {"pixel_values": normal(3, IMAGE, IMAGE)},
    "lightglue": {"pixel_values": normal(2, 3, 32, 32)},
    "llava_next": _TILES,
    "llava_next_video": _TILES,
    "llava_onevision": _TILES,
    "lxmert": {"visual_feats": normal(5, HIDDEN), "visual_pos": normal(5, 4)},
    "mimi_decoder": {"latents": normal(HIDDEN, TOKENS)},
    "minicpm_ocr_vision": {"pixel_values": lambda maker: maker.normal(1, 3, 4, 4 * 72)},
    "minicpmv4_6_vision": {"pixel_values": lambda maker: maker.normal(1, 3, 4, 4 * 72)},
    "minicpmv4_7_vision": {"pixel_values": lambda maker: maker.normal(1, 3, 4, 4 * 72)},
    "mm-grounding-dino": {"input_ids": fixed(_PHRASES)},
    "mllama_vision_model": {
        "pixel_values": normal(1, 4, 3, IMAGE, IMAGE),
        "aspect_ratio_ids": fixed([[6], [1]]),
        "aspect_ratio_mask": fixed([[[1, 1, 1, 1]], [[1, 0, 0, 0]]]),
    },
    "molmo2": {
        "pixel_values": normal(36, 48),
        "image_token_pooling": lambda maker: torch.cat([_POOLED, torch.where(_POOLED < 0, -1, _POOLED + 36)]),
        "image_grids": fixed([[3, 3, 0, 0]] * BATCH),
    },
    "molmo2_adapter": {"image_features": normal(36, 2 * HIDDEN), "pooled_patches_idx": lambda maker: _POOLED},
    "molmo2_vision": {"pixel_values": normal(36, 48)},
    "moshi_depth": {"last_hidden_state": normal(TOKENS, HIDDEN)},
    "muse_glimmer_assistant": {
        "noise_embeds": normal(7, HIDDEN),
        "context_hidden_states": normal(TOKENS, 5 * HIDDEN),
    },
    "musicgen": {"decoder_input_ids": lambda maker: maker.ids(7, 2 * BATCH)},
    "musicgen_melody": {"decoder_input_ids": lambda maker: maker.ids(7, 2 * BATCH)},
    "nemotron_h_omni": {
        "pixel_values": lambda maker: maker.normal(72, 48),
        "image_grid_hw": fixed([[6, 6]] * BATCH),
    },
    "nemotron3_5_transcribe_word_timestamp": {"inputs_embeds": normal(TOKENS, HIDDEN)},
    "omdet-turbo": {
        "classes_input_ids": lambda maker: maker.ids(5, BATCH * 3),
        "classes_attention_mask": lambda maker: torch.ones(BATCH * 3, 5, dtype=torch.long),
        "tasks_input_ids": words(7),
        "tasks_attention_mask": ones(7),
        "classes_structure": fixed([3] * BATCH),
    },
    "oneformer": {"task_inputs": normal(77)},
    "paddleocr_vl": {"pixel_values": lambda maker: maker.normal(72, 3, 4, 4)},
    "paddleocr_vl_vision": {"pixel_values": lambda maker: maker.normal(1, 72, 3, 4, 4)},
    "patchtsmixer": {"past_values": normal(32, 1)},
    "patchtst": {"past_values": normal(32, 1)},
    "perceiver": {"inputs": normal(TOKENS, HIDDEN)},
    "phi4_multimodal_audio": {"hidden_states": normal(FRAMES, 80), "mask": ones(FRAMES)},
    "pocket_tts_audio_tokenizer_decoder": {"latents": normal(HIDDEN, TOKENS)},
    "pp_formulanet_text": {
        "input_ids": words(TOKENS),
        "attention_mask": lambda maker: maker.padding(),
        "encoder_hidden_states": normal(7, HIDDEN),
    },
    "pp_ocrv5_mobile_rec": {"pixel_values": normal(3, 96, 320)},
    "pp_ocrv6_small_rec": {"pixel_values": normal(3, 48, 320)},
    "pp_ocrv6_tiny_rec": {"pixel_values": normal(3, 48, 320)},
    "qwen2_5_omni_audio_encoder": {
        "input_features": lambda maker: maker.normal(MELS, 40),
        "feature_lens": fixed([24, 16]),
    },
    "qwen3_asr": {"input_features": normal(MELS, 200), "input_features_mask": ones(200)},
    "qwen3_asr_encoder": {"input_features": normal(MELS, 200), "input_features_mask": ones(200)},
    "qwen3_omni_moe_audio_encoder": {
        "input_features": lambda maker: maker.normal(MELS, 320),
        "feature_lens": fixed([200, 120]),
    },
    "qwen3_omni_moe_talker_code_predictor": {"input_ids": LEFT_OUT, "inputs_embeds": normal(TOKENS, HIDDEN)},
    "qwen3_omni_moe_talker_text": {"input_ids": LEFT_OUT, "inputs_embeds": normal(TOKENS, HIDDEN)},
    "sam3_detr_decoder": {
        "vision_features": normal(36, HIDDEN),
        "vision_pos_encoding": normal(36, HIDDEN),
        "text_features": normal(TOKENS, HIDDEN),
        "text_mask": lambda maker: maker.padding().bool(),
        "spatial_shapes": fixed([[6, 6]]),
    },
    "sam3_detr_encoder": {
        "vision_features": lambda maker: [maker.normal(BATCH, HIDDEN, 6, 6)],
        "vision_pos_embeds": lambda maker: [maker.normal(BATCH, HIDDEN, 6, 6)],
        "text_features": normal(TOKENS, HIDDEN),
        "text_mask": lambda maker: maker.padding().bool(),
    },
    "sam3_lite_text_detr_decoder": {
        "vision_features": normal(36, HIDDEN),
        "vision_pos_encoding": normal(36, HIDDEN),
        "text_features": normal(TOKENS, HIDDEN),
        "text_mask": lambda maker: maker.padding().bool(),
        "spatial_shapes": fixed([[6, 6]]),
    },
    "sam3_lite_text_detr_encoder": {
        "vision_features": lambda maker: [maker.normal(BATCH, HIDDEN, 6, 6)],
        "vision_pos_embeds": lambda maker: [maker.normal(BATCH, HIDDEN, 6, 6)],
        "text_features": normal(TOKENS, HIDDEN),
        "text_mask": lambda maker: maker.padding().bool(),
    },
    "sam3_lite_text_mask_decoder": _SAM3_MASKS,
    "sam3_lite_text_text_model": {"input_ids": words(TOKENS), "attention_mask": ones(TOKENS)},
    "sam3_mask_decoder": _SAM3_MASKS,
    "seggpt": {
        "pixel_values": normal(3, IMAGE, IMAGE),
        "prompt_pixel_values": normal(3, IMAGE, IMAGE),
        "prompt_masks": normal(3, IMAGE, IMAGE),
    },
    "speech-encoder-decoder": {"inputs": normal(4000), "decoder_input_ids": words(7)},
    "speecht5": {"input_values": normal(TOKENS, HIDDEN), "decoder_input_values": normal(7, HIDDEN)},
    "superglue": _PAIR,
    "t5gemma2_decoder": {"encoder_hidden_states": normal(TOKENS, HIDDEN)},
    "time_series_transformer": _series(10, 3),
    "timesfm": {
        "past_values": normal(32),
        "past_values_padding": lambda maker: torch.zeros(BATCH, 32, dtype=torch.long),
        "freq": fixed([[0], [1]]),
    },
    "timesfm2_5": {
        "past_values": normal(40),
        "past_values_padding": lambda maker: torch.zeros(BATCH, 40, dtype=torch.long),
    },
    "tvp": {  # the library adds places of patches to one row only
        "pixel_values": lambda maker: maker.normal(1, 4, 3, 128, 128),
        "input_ids": lambda maker: maker.ids(TOKENS, 1),
        "attention_mask": lambda maker: maker.padding()[1:],
    },
    "unlimited_ocr_vision_encoder": {"patch_embeds": normal(HIDDEN, 6, 6)},
    "video_llava": {"pixel_values": normal(3, IMAGE, IMAGE)},
    "vjepa2": {"pixel_values_videos": normal(4, 3, IMAGE, IMAGE)},
    "voxtral_realtime": {"input_features": normal(MELS, 8 * TOKENS)},
    "xclip": {"pixel_values": normal(4, 3, IMAGE, IMAGE)},
    "xclip_vision_model": {"pixel_values": lambda maker: maker.normal(BATCH * 4, 3, IMAGE, IMAGE)},
}

PLACEHOLDERS = {"glm_image": 36, "granite4_vision": 36}  # per picture, where the features do not tell by rows


def _first(count: int) -> torch.Tensor:
    mask = torch.zeros(BATCH, TOKENS, dtype=torch.bool)
    mask[:, 1 : 1 + count] = True
    return mask
