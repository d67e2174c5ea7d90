"""What single model types need besides the rules by name: fields of their configs, and the types left out.

A name with a dot orders a field of a sub-config; a plain name holds wherever that type occurs, inside other
types too.
"""

from typing import Any

from .rules import HEADS, HIDDEN, LEAVE, WINDOW

_RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 24, 32],
    "depths": [1, 1, 1, 1],
    "out_features": ["stage2", "stage3", "stage4"],
}
_DETR = {  # the default's backbone comes from timm
    "backbone_config": _RESNET,
    "use_timm_backbone": False,
    "backbone": None,
    "use_pretrained_backbone": False,
}
_UNGROUPED = {"num_key_value_heads": HEADS}
_SERIES = {"prediction_length": 3, "context_length": 8, "lags_sequence": [1, 2], "num_time_features": 1}
_EFFICIENT = {"width_coefficient": 0.1, "depth_coefficient": 0.1, "hidden_dim": 64}
_SMALL_VIT = {"image_size": 24, "patch_size": 4}

OVERRIDES: dict[str, dict[str, Any]] = {
    "align_vision_model": _EFFICIENT,
    "autoformer": _SERIES,
    "bamba": {"attn_layer_indices": [1]},
    "bridgetower_vision_model": {"hidden_size": 128},
    "bridgetower_text_model": {"hidden_size": 128, "num_attention_heads": 4},
    "bridgetower": {"hidden_size": 128, "num_attention_heads": 4},
    "bros": {"hidden_size": 128, "num_attention_heads": 4},
    "chameleon": {"vocabulary_map": {"<image>": 95}},
    "clvp_encoder": {"hidden_size": 192, "projection_dim": 192},
    "clvp_decoder": {"hidden_size": 192},
    "codegen": {"n_head": 4},
    "conditional_detr": _DETR,
    "csm_depth_decoder_model": {"num_codebooks": 12},
    "dab-detr": _DETR,
    "dac": {"encoder_hidden_size": 4, "decoder_hidden_size": 64},
    "dbrx": {"attn_config.rope_theta": 10000.0},
    "deformable_detr": _DETR,
    "detr": _DETR,
    "dots3_note_text": _UNGROUPED,
    "dots3_note_vision_encoder": {"adapter_in_dim": HIDDEN},
    "efficientnet": _EFFICIENT,
    "emu3": {"vocabulary_map": {"<image>": 95}},
    "ernie4_5_vl_moe_text": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
    },
    "esmc": _UNGROUPED,
    "exaone4_5_vision": {"window_size": 16},
    "gemma3n_text": {"num_kv_shared_layers": 2, "num_hidden_layers": 4,
                     "layer_types": ["sliding_attention", "full_attention"] * 2, "activation_sparsity_pattern": None},
    "glm5_next_text": {**_UNGROUPED, "index_topk": 4, "index_kpool": 2},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "num_layers": 4, "window_size": WINDOW},
    "granitemoehybrid": {"layer_types": ["mamba", "attention", "mamba"]},
    "grounding-dino": {**_DETR, "d_model": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4},
    "mm-grounding-dino": {**_DETR, "d_model": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4},
    "informer": _SERIES,
    "internlm3": {"qkv_bias": False, "bias": False},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"]},
    "longcat_flash": {"head_dim": 4},
    "mamba2": {"num_heads": 12, "head_dim": 8},
    "molmo2": {"adapter_config.vision_feature_layer": [2, 1]},
    "moonshine": {"encoder_num_key_value_heads": HEADS, "decoder_num_key_value_heads": HEADS},
    "mpnet": {"relative_attention_num_buckets": 32},
    "omdet-turbo": _DETR,
    "pix2struct_text_model": {"initializer_range": 0.02},
    "qwen2_5_omni_vision_encoder": {"window_size": 16},
    "qwen2_5_vl_vision": {"window_size": 16},
    "reformer": {"axial_pos_shape": [4, 4], "axial_pos_embds_dim": [16, 32]},
    "speech_to_text": {"num_conv_layers": 2},
    "table-transformer": _DETR,
    "time_series_transformer": _SERIES,
    "zaya": {"num_experts_per_tok": 1},
}

ABSENT = {
    "timm_backbone": "needs the package timm",
    "timm_wrapper": "needs the package timm",
}
EXTRA_INPUTS: dict[str, tuple[str, ...]] = {}
CLASSES = {
    "musicgen": "MusicgenForConditionalGeneration",
    "musicgen_melody": "MusicgenMelodyForConditionalGeneration",
}
assert LEAVE is not None
