"""The zoo's rules by name, as data: which small size a config field of a given name gets.

One size per name for every model type, so that relations between fields hold by themselves: everything that
is as wide as the hidden states is HIDDEN wide, whether the library calls it d_model, n_embd or embed_dim.
The sizes differ from each other, so that no two axes can be taken for one another. Mechanisms that a default
leaves off (windows, soft caps, relative positions) are switched on here.
"""

from typing import Any

BATCH, TOKENS, PADDING = 2, 11, 3
LAYERS, HEADS, KEY_HEADS, DIM, HIDDEN = 3, 6, 2, 8, 48
INNER, VOCABULARY, POSITIONS, WINDOW = 40, 97, 96, 4
IMAGE, STAGED_IMAGE, PATCH, MELS, FRAMES = 24, 96, 4, 16, 64

_GROUPS: list[tuple[Any, str]] = [
    (
        HIDDEN,
        """
        hidden_size d_model n_embd embed_dim emb_dim dim hidden_dim embedding_size embedding_dim
        encoder_hidden_size decoder_hidden_size cross_hidden_size vision_hidden_size text_hidden_size
        encoder_hidden_dim decoder_hidden_dim projection_dim project_dim projection_size word_embed_proj_dim
        out_hidden_size output_hidden_size output_dim text_embed_dim image_embed_dim backbone_hidden_size
        image_text_hidden_size projector_hidden_size projection_hidden_size output_proj_dims
        pooler_output_size visual_embedding_dim patch_embed_hidden_size patch_embeds_hidden_size
        vision_output_dim head_hidden_size fusion_hidden_size fpn_hidden_size fpn_feature_size mask_dim
        attention_hidden_size query_hidden_size memory_attention_hidden_size memory_encoder_hidden_size
        mask_downsampler_embed_dim memory_fuser_embed_dim feature_size mask_feature_size output_channels
        entity_emb_size class_embed_dim lang_embed_dim unit_embed_dim spkr_embed_dim image_token_embed_dim
        mm_embed_dim hidden_size_global pairwise_hidden_size pred_hidden_size task_encoder_hidden_dim
        router_hidden_size perceiver_resampler_hidden_size resampler_hidden_size retrieval_vector_size
        downsample_hidden_size adapter_input_size adapter_out_dim model_dim text_projection_in_dim
        text_projection_out_dim text_encoder_width xvector_output_dim output_embedding_size
        input_embedding_size mlp_hidden_size projector_output_dim projector_input_dim descriptor_dim
        keypoint_dim global_hidden_size ple_embed_dim shape_embed_dim pronunciation_embed_dim audio_embed_dim
        audio_prompt_dim speaker_embedding_dim t2u_variance_predictor_embed_dim d_latents lru_width
        query_projection_dim prompt_mid_dim intra_bottleneck_size upsample_groups head_dim_total codebook_dim
        condition_dim audio_hidden_size vector_quantization_hidden_dimension x4_feat_dim
        """,
    ),
    (
        INNER,
        """
        intermediate_size encoder_ffn_dim decoder_ffn_dim ffn_dim d_ff d_inner dim_ff dff n_inner
        ffn_hidden_size moe_intermediate_size shared_expert_intermediate_size shared_experts_intermediate_size
        mlp_dim dense_intermediate_size intermediate_size_mlp moe_shared_expert_intermediate_size
        dim_feedforward encoder_feedforward_dim decoder_dim_feedforward encoder_dim_feedforward
        feed_forward_size decoder_intermediate_size expert_ffn_hidden_size iou_head_hidden_dim
        t2u_encoder_ffn_dim t2u_decoder_ffn_dim speech_encoder_intermediate_size
        memory_attention_feed_forward_hidden_size memory_attention_mlp_hidden_size
        memory_fuser_intermediate_dim mit_intermediate_size prompt_intermediate_size
        projection_intermediate_size alignment_intermediate_size projection_intermediate_dim
        perceiver_resampler_mlp_intermediate_size pair_transition_intermediate_size encoder_linear_units
        decoder_linear_units share_expert_dim moe_hidden_size projection_hidden_dim
        """,
    ),
    (
        HEADS,
        """
        num_heads num_attention_heads n_head n_heads encoder_attention_heads decoder_attention_heads
        num_encoder_attention_heads num_decoder_attention_heads attention_heads decoder_num_attention_heads
        encoder_num_attention_heads cross_num_attention_heads t2u_encoder_attention_heads
        t2u_decoder_attention_heads conf_num_attention_heads speech_encoder_attention_heads
        decoder_self_attention_heads decoder_cross_attention_heads num_self_attention_heads
        num_cross_attention_heads mit_num_attention_heads pred_num_attention_heads prompt_num_attention_heads
        resampler_n_heads resampler_heads decoder_num_heads swa_num_attention_heads
        num_sliding_attention_heads
        """,
    ),
    (
        KEY_HEADS,
        """
        num_key_value_heads num_kv_heads swa_num_key_value_heads num_global_key_value_heads
        encoder_num_key_value_heads decoder_num_key_value_heads cross_num_key_value_heads
        num_key_value_attention_heads
        """,
    ),
    (
        DIM,
        """
        head_dim d_kv d_head attention_head_size kv_channels global_head_dim cross_head_dim swa_head_dim
        swa_v_head_dim resampler_head_dim resampler_dim_head perceiver_resampler_attention_head_dim dim_head
        attention_head_dim global_pointer_head_size linear_head_dim
        """,
    ),
    (LAYERS, "num_hidden_layers n_layer num_layers n_layers depth layers"),
    (
        VOCABULARY,
        """
        vocab_size src_vocab_size tgt_vocab_size decoder_vocab_size text_vocab_size vocab_size_per_layer_input
        text_encoder_vocab_size unpadded_vocab_size char_vocab_size t2u_vocab_size entity_vocab_size
        pronunciation_vocab_size shape_vocab_size num_embeddings composer_vocab_size num_hash_buckets
        unit_hifi_gan_vocab_size encoder_hash_byte_group_vocab
        """,
    ),
    (
        POSITIONS,
        """
        max_position_embeddings n_positions n_ctx max_target_positions max_speech_positions max_text_positions
        max_text_tokens max_seq_len t2u_max_position_embeddings max_encoder_position_embeddings
        max_decoder_position_embeddings max_2d_position_embeddings max_pos_emb max_text_len
        position_embedding_size seq_len
        """,
    ),
    (
        WINDOW,
        """
        sliding_window sliding_window_size attention_window_size local_attention_window_len
        attention_chunk_size
        """,
    ),
    (MELS, "num_mel_bins n_mel_bins mel_dim input_feat_per_channel feat_dim"),
    (FRAMES, "max_length"),
    (IMAGE, "max_img_size max_image_size resolution"),
    (
        1,
        """
        n_group topk_group num_hidden_groups inner_group_num max_window_layers insert_layer_id
        first_k_dense_replace num_conv_layers
        """,
    ),
    (
        2,
        """
        encoder_layers decoder_layers num_encoder_layers num_decoder_layers encoder_num_hidden_layers
        decoder_num_hidden_layers decoder_num_layers t2u_encoder_layers t2u_decoder_layers l_layers x_layers
        r_layers speech_encoder_layers text_encoder_num_layers pred_num_hidden_layers conf_num_hidden_layers
        resampler_depth folding_trunk_num_hidden_layers moe_topk num_experts_per_tok moe_k
        num_experts_per_token n_shared_experts query_dec_layers iou_head_depth num_local_experts_per_tok
        num_register_tokens top_k_experts aligner_num_add_layers sinkhorn_iterations hc_sinkhorn_iters
        decoder_depth encoder_depth num_self_attends_per_block num_adapter_layers linear_num_key_heads
        n_groups num_groups num_codebooks num_code_groups pixel_shuffle_factor
        """,
    ),
    (3.0, "attn_logit_softcapping attention_logit_cap conf_attention_logit_cap"),
    (3, "index_n_heads window_size"),
    (
        4,
        """
        num_experts num_local_experts n_routed_experts moe_num_experts moe_num_shared_experts zero_expert_num
        num_query_tokens latent_query_num perceiver_resampler_num_latents resampler_n_latents
        resampler_num_latents num_latents num_global_tokens qk_rope_head_dim rotary_dim chunk_size
        mamba_chunk_size num_frames index_kpool index_topk_blocks linear_num_value_heads linear_num_heads
        swa_rope_head_dim num_filters attention_window
        """,
    ),
    (
        5,
        """
        index_topk relative_attention_num_buckets relative_attention_max_distance num_queries
        num_detection_tokens num_denoising position_buckets mamba_dt_rank time_step_rank
        num_conv_pos_embeddings num_maskmem query_pre_attn_scalar
        """,
    ),
    (5.0, "final_logit_softcapping"),
    (6, "qk_nope_head_dim"),
    (7, "fsmn_kernel_size"),
    (
        8,
        """
        mamba_d_head mamba_head_dim mamba_d_state state_size ssm_state_size context_size linear_key_head_dim
        patch_length coordinate_size shape_size
        """,
    ),
    (10, "index_head_dim qk_head_dim linear_value_head_dim"),
    (12, "kv_lora_rank o_lora_rank mamba_n_heads mamba_num_heads"),
    (14, "q_lora_rank v_head_dim"),
    (32, "max_source_positions base_channels"),
    (64, "codebook_size quantization_dim upsample_initial_channel"),
    (65, "codebook_vocab_size"),
    (96, "mamba_d_ssm"),
    (
        True,
        """
        use_sliding_window use_relative_position_bias use_rel_pos relative_attention qkv_bias
        position_biased_input attention_bias use_qk_norm qk_layernorm qk_layernorms use_qk_layernorm
        """,
    ),
    (False, "use_timm_backbone use_pretrained_backbone"),
]

SIZES: dict[str, Any] = {name: value for value, names in _GROUPS for name in names.split()}

# Numbers that differ per stage or per layer: kept as short as the default, small, and divisible by the heads.
IDS = {"pad": 0, "bos": 1, "eos": 2, "decoder_start": 1, "forced_eos": 2, "cls": 1, "sep": 2, "eod": 2}
FIRST_SPECIAL = 40  # ids from here to VOCABULARY stand for images, videos and the like; words are below

LEAVE = object()  # as an order: say nothing about this field, the library derives it
OPTIONAL = frozenset(["n_inner", "q_lora_rank"])  # None has a meaning of its own in these

AS_WIDE = frozenset({"decoder_in_channels", "vision_features_channels"})  # lists of HIDDEN
SECTIONS = {4: [2, 1, 1], 2: [1, 1, 0], 1: [1, 0, 0]}  # of a rotation, by its number of frequencies
EIGHTHS = frozenset(  # channels per stage, divided by 8 each, so that their relations stay
    """
    backbone_channel_list base_attn_unit_dims conv_dim convstream_hidden_sizes downsample_channels
    embed_dim embed_dim_per_stage embed_dims encoder_hidden_sizes encoder_in_channels
    fusion_hidden_sizes hidden_sizes keypoint_encoder_sizes neck_hidden_sizes post_process_channels
    stage_in_channels stage_mid_channels stage_out_channels stem_channels subsampling_channels
    subsampling_conv_channels tdnn_dim
    """.split()  # noqa: SIM905  (a list of that length is harder to read)
)
