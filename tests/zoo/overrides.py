"""What single model types need besides the rules by name: fields of their configs, and the types left out.

A name with a dot orders a field of a sub-config; a plain name holds wherever that type occurs, inside other
types too.
"""

from dataclasses import dataclass
from typing import Any

from .rules import HEADS, HIDDEN, IMAGE, LEAVE, STAGED_IMAGE, WINDOW

_ROPE = {"rope_type": "default", "rope_theta": 10000.0}


@dataclass(frozen=True)
class Part:
    """As an order: the tiny config of another type, with `changes`."""

    model_type: str
    changes: dict[str, Any]

    def __init__(self, model_type: str, **changes: Any) -> None:
        object.__setattr__(self, "model_type", model_type)
        object.__setattr__(self, "changes", changes)


def _chameleon(code: int) -> str:
    """Chameleon's word for a code of the picture: its digits as letters."""
    return f"IMGIMG{''.join('ABCDEFGHIJ'[int(digit)] for digit in str(code))}Z"


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
_GROUNDING = {  # a vocabulary with the full stop: words see each other only between two of them
    **_DETR,
    "d_model": 64,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "text_config.vocab_size": 1013,
}
_UNGROUPED = {"num_key_value_heads": HEADS}
_SERIES = {
    "label_length": 4,
    "prediction_length": 3,
    "context_length": 8,
    "lags_sequence": [1, 2],
    "num_time_features": 1,
}
_EFFICIENT = {"image_size": 96, "width_coefficient": 0.1, "depth_coefficient": 0.1, "hidden_dim": 64}
_TWO_STAGES = {"depths": [2, 2], "num_heads": [3, 6], "image_size": IMAGE}  # 6 x 6 and 3 x 3 patches
_FOUR_STAGES = {
    "backbone_config.depths": [1, 1, 1, 1],
    "backbone_config.num_heads": [3, 6, 12, 24],
    "backbone_config.image_size": STAGED_IMAGE,
}

OVERRIDES: dict[str, dict[str, Any]] = {
    "align": {"projection_dim": 32},
    "align_vision_model": _EFFICIENT,
    "aria": {"projector_patch_to_query_dict": {36: 4}},
    "autoformer": _SERIES,
    "bamba": {"attn_layer_indices": [1]},
    "big_bird": {"block_size": 4},
    "bigbird_pegasus": {"block_size": 4},
    "blip-2": {"image_token_index": 95},
    "blt": {"num_hidden_layers": 3, "patching_threshold": 4.15},
    "bridgetower": {"hidden_size": 128, "num_attention_heads": 4},
    "bridgetower_text_model": {"hidden_size": 128, "num_attention_heads": 4},
    "bridgetower_vision_model": {"hidden_size": 128},
    "bros": {"hidden_size": 128, "num_attention_heads": 4},
    "chameleon": {"vocabulary_map": {"<image>": 95, **{_chameleon(code): 20 + code for code in range(64)}}},
    "chameleon_vqgan": {"num_embeddings": 64},
    "chmv2": {"backbone_config.return_class_token": True},
    "clap_audio_model": {
        "num_mel_bins": 16,
        "spec_size": 64,
        "window_size": 4,
        "patch_embeds_hidden_size": 24,
        "hidden_size": 48,
        "depths": [2, 2],
        "num_attention_heads": [3, 6],
        "num_hidden_layers": 2,
    },
    "clvp_decoder": {"hidden_size": 192, "decoder_fixing_codes": [83, 45, 45, 24]},
    "clvp_encoder": {"hidden_size": 192, "projection_dim": 192},
    "codegen": {"n_head": 4},
    "cohere_compass_text": {
        "rope_parameters": {
            kind: {**_ROPE, "mrope_section": [2, 1, 1]} for kind in ("full_attention", "sliding_attention")
        }
    },
    "conditional_detr": _DETR,
    "csm_depth_decoder_model": {"num_codebooks": 12},
    "d_fine": {"anchor_image_size": None},
    "dab-detr": _DETR,
    "dac": {"encoder_hidden_size": 4, "decoder_hidden_size": 64},
    "dbrx": {"attn_config.rope_theta": 10000.0, "attn_config.clip_qkv": 3.0},
    "deberta": {"pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"pos_att_type": ["c2p", "p2c"]},
    "deepseek_ocr2_sam_vision_model": {"downsample_channels": [24, 48]},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse", "sparse"], **_UNGROUPED},
    "deformable_detr": {**_DETR, "d_model": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4},
    "depth_anything": {"neck_hidden_sizes": [6, 12, 24, 48], "reassemble_hidden_size": HIDDEN},
    "detr": _DETR,
    "doge": {"keep_window_size": 5},
    "donut-swin": _TWO_STAGES,
    "dots3_note_text": {
        **_UNGROUPED,
        "ngram_vocab_size_base": 97,
        "swa_num_attention_heads": HEADS,
        "swa_num_key_value_heads": HEADS,
        "swa_q_lora_rank": 14,
        "swa_kv_lora_rank": 12,
        "swa_head_dim": 10,
        "swa_qk_nope_head_dim": 6,
        "swa_v_head_dim": 10,
    },
    "dots3_note_vision_encoder": {"adapter_in_dim": HIDDEN},
    "efficientloftr": {"hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 8},
    "efficientnet": {**_EFFICIENT, "hidden_dim": 128},
    "emu3": {
        "vocabulary_map": {
            "<image>": 95,
            "<|extra_200|>": 90,  # the end of a row of the picture
            **{f"<|visual token {code:06}|>": 20 + code for code in range(64)},
        }
    },
    "emu3_vqgan": {"hidden_size": 128, "num_attention_heads": 4},
    "eomt": {"num_blocks": 2},
    "eomt_dinov3": {"num_blocks": 2},
    "ernie4_5_vl_moe_text": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
    },
    "esm": {"position_embedding_type": "rotary"},
    "esmc": _UNGROUPED,
    "exaone4_5_vision": {"window_size": 16},
    "fun_asr_nano": {"adaptor_config.intermediate_size": 12},
    "gemma3": {"mm_tokens_per_image": 9},
    "gemma3n_audio": {"input_feat_size": 16},
    "gemma3n_text": {
        "num_kv_shared_layers": 2,
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "activation_sparsity_pattern": None,
    },
    "gemma4": {"vision_config": Part("gemma4_vision")},
    "gemma4_assistant": {
        "text_config": Part("gemma4_text", hidden_size_per_layer_input=0, vocab_size_per_layer_input=0)
    },
    "gemma4_unified_assistant": {"text_config.num_kv_shared_layers": 0},
    "glm5_next_text": {**_UNGROUPED, "index_topk": 4, "index_kpool": 2, "qk_rope_head_dim": 0},
    "glm_image_vqmodel": {"latent_channels": HIDDEN},
    "glmasr_encoder": {"intermediate_size": 4 * HIDDEN},
    "glpn": {"image_size": 96},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "num_layers": 4, "window_size": WINDOW},
    "granite4_vision": {
        "vision_config.hidden_size": 128,
        "vision_config.num_attention_heads": 4,
        "vision_config.image_size": 32,
        "qformer_config.num_hidden_layers": 1,
        "downsample_rate": "2/4",
        "deepstack_layer_map": [[1, 0], [2, 1]],
        "spatial_target_layers": [0, 1, 2, 2],
        "image_grid_pinpoints": [[32, 64], [64, 32]],
    },
    "granite_docling_vision": {"image_size": 32},
    "granite_speech": {"downsample_rate": 1},
    "granite_speech5_encoder": _UNGROUPED,
    "granite_speech_encoder": {"input_dim": 16},
    "granite_speech_plus": {"downsample_rate": 1},
    "granite_speech_plus_encoder": {"input_dim": 16},
    "granitemoehybrid": {"layer_types": ["mamba", "attention", "mamba"]},
    "grounding-dino": _GROUNDING,
    "hiera": {"image_size": [64, 64], "patch_stride": [4, 4], "patch_size": [7, 7]},
    "hunyuan_vl_vision": {"max_image_size": 24, "img_max_token_num": 64, "text_hidden_size": HIDDEN},
    "informer": {key: value for key, value in _SERIES.items() if key != "label_length"},
    "instructblip": {"image_token_index": 95},
    "instructblipvideo": {"video_token_index": 95},
    "internlm3": {"qkv_bias": False, "bias": False},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2},
    "janus_vision_model": {"use_qk_norm": False},
    "janus_vqgan": {"num_patches": 4},
    "layoutlmv3": {"input_size": 24},
    "levit": {
        "image_size": 96,
        "patch_size": 16,
        "hidden_sizes": [16, 32, 48],
        "num_attention_heads": [2, 4, 6],
        "key_dim": [8, 8, 8],
    },
    "lfm2": {
        "num_hidden_layers": 3,
        "layer_types": ["conv", "full_attention", "conv"],
        "full_attn_idxs": LEAVE,
    },
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"]},
    "llama4_vision_model": {"intermediate_size": 192, "projector_input_dim": HIDDEN},
    "llava_next": {"image_grid_pinpoints": [[24, 48], [48, 24]]},
    "llava_next_video": {"image_grid_pinpoints": [[24, 48], [48, 24]]},
    "llava_onevision": {"image_grid_pinpoints": [[24, 48], [48, 24]]},
    "longcat_flash": {"head_dim": 4},
    "longt5": {"local_radius": 3, "global_block_size": 4},
    "lw_detr": {"projector_scale_factors": [1.0], "num_feature_levels": 1},
    "lw_detr_vit": {"image_size": 64},
    "lxmert": {"visual_feat_dim": HIDDEN},
    "mamba2": {"num_heads": 12, "head_dim": 8},
    "mask2former": {
        **_FOUR_STAGES,
        "feature_size": 64,
        "mask_feature_size": 64,
        "hidden_dim": 64,
        "num_attention_heads": 4,
    },
    "maskformer": {
        **_FOUR_STAGES,
        "backbone_config.num_heads": [4, 8, 16, 32],
        "fpn_feature_size": 64,
        "mask_feature_size": 64,
    },
    "maskformer-swin": _TWO_STAGES,
    "mimi": {"vector_quantization_hidden_dimension": HIDDEN},
    "mimo_v2_flash": {"num_key_value_heads": 1},
    "minimax_m3_vl_text": {
        "layer_types": ["minimax_m3_sparse", "full_attention", "minimax_m3_sparse"],
        "index_block_size": 2,
        "index_topk_blocks": 2,
    },
    "mllama_vision_model": {"intermediate_layers_indices": [0, 1], "num_global_layers": 2},
    "mm-grounding-dino": _GROUNDING,
    "mobilevit": {"image_size": 128, "patch_size": 2},
    "mobilevitv2": {"image_size": 64, "patch_size": 2},
    "modernbert": {"local_attention": 2 * WINDOW},
    "modernbert-decoder": {"local_attention": 2 * WINDOW},
    "molmo2": {"image_patch_id": 95, "adapter_config.vision_feature_layer": [2, 1]},
    "moonshine": {"encoder_num_key_value_heads": HEADS, "decoder_num_key_value_heads": HEADS},
    "moonshine_streaming": {"num_key_value_heads": HEADS, **_UNGROUPED},
    "moshi_depth": {"num_codebooks": 12, "max_position_embeddings": 12, "input_size": HIDDEN},
    "mpnet": {"relative_attention_num_buckets": 32},
    "muse_glimmer": {"projector_input_dim": 4 * HIDDEN},
    "nemotron3_5_asr": {"default_num_lookahead_tokens": 1},
    "nemotron3_5_transcribe_asr_audio": _UNGROUPED,
    "nemotron3_5_transcribe_word_timestamp": _UNGROUPED,
    "nemotron3_diarization_audio": _UNGROUPED,
    "nemotron_asr_streaming": {"default_num_lookahead_tokens": 1},
    "nemotron_asr_streaming_encoder": {"default_num_lookahead_tokens": 1, "sliding_window": 5},
    "nemotron_h_omni": {"image_token_id": 95},
    "neomme": {
        "rope_parameters": {
            kind: {**_ROPE, "partial_rotary_factor": 0.5} for kind in ("full_attention", "sliding_attention")
        }
    },
    "omdet-turbo": _DETR,
    "oneformer": {**_FOUR_STAGES, "conv_dim": 64, "mask_dim": 64, "hidden_dim": 64, "num_attention_heads": 4},
    "paddleocr_vl_text": {"rope_parameters": {**_ROPE, "mrope_section": [2, 1, 1]}},
    "patchtsmixer": {"context_length": 32, "patch_length": 8, "patch_stride": 8},
    "patchtst": {"context_length": 32, "patch_length": 4, "patch_stride": 4},
    "pegasus_x": {"block_size": 4},
    "perceiver": {
        "d_latents": HIDDEN,
        "d_model": HIDDEN,
        "num_blocks": 2,
        "num_self_attention_heads": HEADS,
        "num_cross_attention_heads": HEADS,
        "num_self_attends_per_block": 2,
    },
    "phi4_multimodal_audio": {
        "ext_pw_out_channel": HIDDEN,
        "nemo_conv_channels": HIDDEN,
        "depthwise_separable_out_channel": HIDDEN,
    },
    "pix2struct_text_model": {"initializer_range": 0.02},
    "pp_formulanet": {"post_conv_in_channels": HIDDEN},
    "pp_formulanet_vision": {"post_conv_in_channels": HIDDEN},
    "pp_lcnet_v4": {"stem_channels": LEAVE},
    "prompt_depth_anything": {"neck_hidden_sizes": [6, 12, 24, 48], "reassemble_hidden_size": HIDDEN},
    "pvt": {"image_size": 96},
    "pvt_v2": {"image_size": 96},
    "qwen2_5_omni_audio_encoder": {"n_window": 4, "n_window_infer": 8},
    "qwen2_5_omni_thinker": {"vision_start_token_id": 60},
    "qwen2_5_omni_vision_encoder": {"window_size": 16},
    "qwen2_5_vl_vision": {"window_size": 16},
    "qwen3_omni_moe_talker_code_predictor": {"layer_types": ["full_attention"] * 3},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 40},
    "qwen3_omni_moe_thinker": {"vision_start_token_id": 60},
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 4,
        "indexer_compress_ratio": 1,
    },
    "reformer": {
        "axial_pos_shape": [4, 4],
        "axial_pos_embds_dim": [16, 32],
        "local_attn_chunk_length": 4,
        "lsh_attn_chunk_length": 4,
    },
    "rf_detr_dinov2": {"image_size": 32},
    "sam2_hiera_det_model": {
        "embed_dim_per_stage": [12, 24, 48, 96],
        "blocks_per_stage": [1, 1, 2, 1],
        "num_attention_heads_per_stage": [1, 2, 4, 8],
        "num_attention_heads": 1,
        "hidden_size": 12,
        "global_attention_blocks": [3],
        "window_positional_embedding_background_size": [3, 3],
        "window_size_per_stage": [8, 4, 6, 3],
        "image_size": [96, 96],
    },
    "sam2_vision_model": {"backbone_feature_sizes": [[24, 24], [12, 12], [6, 6]]},
    "sam3_vision_model": {"backbone_feature_sizes": [[24, 24], [12, 12], [6, 6]]},
    "sam_hq_mask_decoder": {"vit_dim": HIDDEN},
    "sam_hq_vision_model": {"num_pos_feats": 24},
    "sam_vision_model": {"num_pos_feats": 24},
    "sapiens2": {"num_key_value_heads_per_layer": [6, 2, 2]},
    "segformer": {"image_size": 96},
    "seggpt": {"image_size": [48, 24]},
    "shieldgemma2": {"mm_tokens_per_image": 9},
    "slanext": {"post_conv_in_channels": HIDDEN},
    "slanext_vision": {"post_conv_in_channels": HIDDEN},
    "speech_to_text": {"num_conv_layers": 2},
    "superglue": {
        "keypoint_encoder_sizes": [6, 12, 24, 48],
        "gnn_layers_types": ["self", "cross"] * 2,
        "keypoint_detector_config.descriptor_decoder_dim": HIDDEN,
        "keypoint_detector_config.max_keypoints": 9,
    },
    "swin": _TWO_STAGES,
    "swin2sr": {"image_size": 24, "patch_size": 1, "embed_dim": 48, "num_heads": [6, 6], "depths": [2, 2]},
    "swinv2": {**_TWO_STAGES, "pretrained_window_sizes": [0, 0]},
    "t5gemma2": {"encoder.text_config.dropout_rate": LEAVE},
    "t5gemma2_decoder": {"dropout_rate": 0.0},
    "t5gemma2_encoder": {"mm_tokens_per_image": 9},
    "t5gemma2_text": {"dropout_rate": 0.0},
    "table-transformer": _DETR,
    "textnet": {"hidden_sizes": LEAVE},
    "time_series_transformer": {key: value for key, value in _SERIES.items() if key != "label_length"},
    "tvp": {"max_img_size": 128, "visual_prompt_size": 8},
    "unlimited_ocr_sam_vision_model": {"downsample_channels": [24, 48]},
    "unlimited_ocr_text": _UNGROUPED,
    "videoprism_vision_model": {"tubelet_size": [1, 8, 8], "num_spatial_layers": 3, "num_temporal_layers": 2},
    "vipllava": {"vision_feature_layers": [-2, -1]},
    "vitpose_backbone": {
        "part_features": 12,
        "image_size": [64, 48],
        "patch_size": [16, 16],
        "num_experts": 1,
    },
    "vjepa2": {"crop_size": IMAGE, "frames_per_clip": 4},
    "xclip_vision_model": {"mit_hidden_size": HIDDEN},
    "xlstm": {"num_heads": 4, "hidden_size": 64, "embedding_dim": 64, "qk_dim_factor": 1.0},
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "num_hidden_layers": 5,
        "layers_block_type": ["linear_attention", "hybrid"] * 2 + ["linear_attention"],
        "attention_hidden_size": 96,
        "attention_head_dim": 16,
    },
    "zaya": {"num_experts_per_tok": 1},
    "zoedepth": {"bottleneck_features": 48, "reassemble_hidden_size": HIDDEN},
}

ABSENT = {
    "bark": "the library's model has no forward of its own: it chains three others when it generates",
    "qwen2_5_omni": "the library's model has no forward of its own: it chains others when it generates",
    "qwen3_omni_moe": "the library's model has no forward of its own: it chains others when it generates",
    "glm_image_vqmodel": "the library's model has no forward of its own",
    "voxtral_realtime_text": "the library names a class for it that it does not have",
    "nougat": "its default config names a type that the library does not have (donut_swin)",
    "layoutxlm": "the library has a config for it and no model file: its checkpoints are layoutlmv2's",
    "pp_chart2table_vision": "the library has a config for it and no model file of its own",
    "edgetam_video": "takes a video session, not tensors",
    "sam2_video": "takes a video session, not tensors",
    "sam3_tracker_video": "takes a video session, not tensors",
    "sam3_video": "takes a video session, not tensors",
    "rag": "takes documents from a retriever",
    "timm_backbone": "needs the package timm",
    "timm_wrapper": "needs the package timm",
}
CLASSES = {
    "musicgen": "MusicgenForConditionalGeneration",
    "musicgen_melody": "MusicgenMelodyForConditionalGeneration",
}
GAINS = {  # of queries and keys, where a good mean hides softmaxes that are saturated
    "efficientloftr": 1.0,
    "florence2": 1.0,
    "florence_vision": 1.0,
    "fsmt": 0.25,
    "mobilebert": 0.25,
    "molmo2": 1.0,
    "vits": 0.5,
}
