"""Tiny models of families that make their attention themselves, past transformers' interface, sharpened.

Every mechanism is switched on: relative positions, slopes, windows, padding, several kinds of masks.
"""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import transformers as hf
from torch import Tensor, nn

TOKENS, BATCH, VOCABULARY = 11, 2, 97

Made = tuple[nn.Module, dict[str, Any]]


def _of(model_class: type, config: Any, **inputs: Any) -> Made:
    return model_class._from_config(config, attn_implementation="eager"), inputs


def _ids(seed: int = 2, length: int = TOKENS) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (BATCH, length), generator=generator)


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def _padding(length: int = TOKENS) -> Tensor:
    """A mask of a full row and one whose last three positions are padding."""
    mask = torch.ones(BATCH, length, dtype=torch.long)
    mask[1, -3:] = 0
    return mask


def _text() -> dict[str, Tensor]:
    return {"input_ids": _ids(), "attention_mask": _padding()}


_SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
_DISENTANGLED = {**_SMALL, "relative_attention": True, "max_relative_positions": 7, "type_vocab_size": 0}
_FALCON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GPT = {"vocab_size": VOCABULARY, "n_layer": 2, "n_head": 6, "n_embd": 48, "n_positions": 64}
_SPEECH = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 40,
    "conv_dim": (24, 24),
    "conv_stride": (4, 4),
    "conv_kernel": (8, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 5,
    "num_conv_pos_embedding_groups": 2,
}

MODELS: dict[str, Callable[[], Made]] = {
    "deberta": lambda: _of(
        hf.DebertaModel, hf.DebertaConfig(**_DISENTANGLED, pos_att_type=["c2p", "p2c"]), **_text()
    ),
    "deberta-v2": lambda: _of(
        hf.DebertaV2Model, hf.DebertaV2Config(**_DISENTANGLED, pos_att_type=["c2p", "p2c"]), **_text()
    ),
    "deberta-v3": lambda: _of(
        hf.DebertaV2Model,
        hf.DebertaV2Config(
            **_DISENTANGLED,
            pos_att_type=["c2p", "p2c"],
            share_att_key=True,
            position_buckets=4,
            norm_rel_ebd="layer_norm",
        ),
        **_text(),
    ),
    "deberta talking heads": lambda: _of(
        hf.DebertaModel, hf.DebertaConfig(**_DISENTANGLED, talking_head=True, pos_att_type=["c2p"]), **_text()
    ),
    "mpnet": lambda: _of(hf.MPNetModel, hf.MPNetConfig(**_SMALL), **_text()),
    "xlnet": lambda: _of(
        hf.XLNetModel,
        hf.XLNetConfig(vocab_size=VOCABULARY, d_model=48, n_layer=2, n_head=6, d_inner=40, pad_token_id=0),
        **_text(),
        token_type_ids=(torch.arange(TOKENS) > 4).long().expand(BATCH, -1).contiguous(),
    ),
    "bloom": lambda: _of(
        hf.BloomModel,
        hf.BloomConfig(vocab_size=VOCABULARY, hidden_size=48, n_layer=2, n_head=6, pad_token_id=0),
        **_text(),
    ),
    "mpt": lambda: _of(
        hf.MptModel, hf.MptConfig(vocab_size=VOCABULARY, d_model=48, n_layers=2, n_heads=6), **_text()
    ),
    "falcon": lambda: _of(hf.FalconModel, hf.FalconConfig(**_FALCON, multi_query=True), **_text()),
    "falcon alibi": lambda: _of(
        hf.FalconModel, hf.FalconConfig(**_FALCON, alibi=True, multi_query=False), **_text()
    ),
    "falcon grouped": lambda: _of(
        hf.FalconModel, hf.FalconConfig(**_FALCON, new_decoder_architecture=True, num_kv_heads=2), **_text()
    ),
    "gptj": lambda: _of(hf.GPTJModel, hf.GPTJConfig(**_GPT, rotary_dim=4), **_text()),
    "codegen": lambda: _of(
        hf.CodeGenModel, hf.CodeGenConfig(**{**_GPT, "n_head": 4, "n_embd": 32}, rotary_dim=4), **_text()
    ),
    "gpt_neo": lambda: _of(
        hf.GPTNeoModel,
        hf.GPTNeoConfig(
            vocab_size=VOCABULARY,
            hidden_size=48,
            num_layers=2,
            num_heads=6,
            attention_types=[[["global", "local"], 1]],
            window_size=4,
            max_position_embeddings=64,
        ),
        **_text(),
    ),
    "openai-gpt": lambda: _of(hf.OpenAIGPTModel, hf.OpenAIGPTConfig(**_GPT), **_text()),
    "gpt2 upcast": lambda: _of(
        hf.GPT2Model,
        hf.GPT2Config(**_GPT, reorder_and_upcast_attn=True, scale_attn_by_inverse_layer_idx=True),
        **_text(),
    ),
    "blip text": lambda: _of(
        hf.models.blip.modeling_blip_text.BlipTextModel,
        hf.BlipTextConfig(**{**_SMALL, "encoder_hidden_size": 48}),
        **_text(),
    ),
    "blip vision": lambda: _of(
        hf.BlipVisionModel,
        hf.BlipVisionConfig(
            hidden_size=48,
            intermediate_size=40,
            num_hidden_layers=2,
            num_attention_heads=6,
            image_size=24,
            patch_size=8,
        ),
        pixel_values=_normal(BATCH, 3, 24, 24),
    ),
    "swinv2": lambda: _of(
        hf.Swinv2Model,
        hf.Swinv2Config(
            image_size=24,
            patch_size=4,
            embed_dim=24,
            depths=[2],
            num_heads=[3],
            window_size=3,
            pretrained_window_sizes=(0,),
        ),
        pixel_values=_normal(BATCH, 3, 24, 24),
    ),
    "sam": lambda: _of(
        hf.models.sam.modeling_sam.SamVisionModel,
        hf.SamVisionConfig(
            hidden_size=48,
            output_channels=8,
            num_hidden_layers=2,
            num_attention_heads=6,
            image_size=24,
            patch_size=6,
            window_size=3,
            global_attn_indexes=[1],
            mlp_ratio=1.0,
        ),
        pixel_values=_normal(BATCH, 3, 24, 24),
    ),
    "roformer": lambda: _of(hf.RoFormerModel, hf.RoFormerConfig(**_SMALL, embedding_size=48), **_text()),
    "luke": lambda: _of(
        hf.LukeModel,
        hf.LukeConfig(**_SMALL, entity_vocab_size=13, entity_emb_size=8, use_entity_aware_attention=True),
        **_text(),
        entity_ids=torch.tensor([[3, 7, 2], [5, 1, 0]]),
        entity_attention_mask=torch.tensor([[1, 1, 1], [1, 1, 0]]),
        entity_position_ids=torch.tensor([[1, 2, -1], [4, -1, -1], [6, 7, 8]]).expand(BATCH, -1, -1),
    ),
    "lxmert": lambda: _of(
        hf.LxmertModel,
        hf.LxmertConfig(
            vocab_size=VOCABULARY,
            hidden_size=48,
            num_attention_heads=6,
            intermediate_size=40,
            l_layers=1,
            x_layers=1,
            r_layers=1,
            visual_feat_dim=13,
        ),
        **_text(),
        visual_feats=_normal(BATCH, 5, 13),
        visual_pos=_normal(BATCH, 5, 4).sigmoid(),
    ),
    "layoutlmv3": lambda: _of(
        hf.LayoutLMv3Model,
        hf.LayoutLMv3Config(
            **_SMALL,
            visual_embed=False,
            coordinate_size=8,
            shape_size=8,
            rel_pos_bins=8,
            max_rel_pos=16,
            rel_2d_pos_bins=8,
            max_rel_2d_pos=32,
            max_2d_position_embeddings=128,
        ),
        **_text(),
        bbox=(_ids(5).unsqueeze(-1) + torch.tensor([0, 1, 2, 5])),
    ),
    "xglm": lambda: _of(
        hf.XGLMModel,
        hf.XGLMConfig(
            vocab_size=VOCABULARY,
            d_model=48,
            ffn_dim=40,
            num_layers=2,
            attention_heads=6,
            max_position_embeddings=64,
        ),
        **_text(),
    ),
    "fsmt": lambda: _of(
        hf.FSMTModel,
        hf.FSMTConfig(
            src_vocab_size=VOCABULARY,
            tgt_vocab_size=VOCABULARY,
            d_model=48,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=6,
            decoder_attention_heads=6,
            encoder_ffn_dim=40,
            decoder_ffn_dim=40,
            pad_token_id=1,
        ),
        **_text(),
        decoder_input_ids=_ids(4, 7),
    ),
    "prophetnet": lambda: _of(
        hf.ProphetNetModel,
        hf.ProphetNetConfig(
            vocab_size=VOCABULARY,
            hidden_size=48,
            encoder_ffn_dim=40,
            decoder_ffn_dim=40,
            num_encoder_layers=1,
            num_decoder_layers=1,
            num_encoder_attention_heads=6,
            num_decoder_attention_heads=6,
            num_buckets=8,
            relative_max_distance=16,
            max_position_embeddings=64,
        ),
        **_text(),
        decoder_input_ids=_ids(4, 7),
    ),
    "speecht5": lambda: _of(
        hf.SpeechT5ForSpeechToText,
        hf.SpeechT5Config(
            **{**_SPEECH, "num_hidden_layers": 1},
            vocab_size=VOCABULARY,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=6,
            decoder_attention_heads=6,
            encoder_ffn_dim=40,
            decoder_ffn_dim=40,
            encoder_max_relative_position=5,
            apply_spec_augment=False,
        ),
        input_values=_normal(BATCH, 360),
        decoder_input_ids=_ids(4, 7),
    ),
    "wavlm": lambda: _of(
        hf.WavLMModel,
        hf.WavLMConfig(**_SPEECH, num_buckets=16, max_bucket_distance=20),
        input_values=_normal(BATCH, 360),
    ),
    "sew-d": lambda: _of(
        hf.SEWDModel,
        hf.SEWDConfig(
            **_SPEECH,
            squeeze_factor=2,
            position_buckets=4,
            max_position_embeddings=8,
            pos_att_type=("p2c", "c2p"),
            share_att_key=True,
            relative_attention=True,
            norm_rel_ebd="layer_norm",
        ),
        input_values=_normal(BATCH, 360),
    ),
    "hiera": lambda: _of(
        hf.HieraModel,
        hf.HieraConfig(
            embed_dim=24,
            image_size=[32, 32],
            patch_size=[3, 3],
            patch_stride=[2, 2],
            patch_padding=[1, 1],
            depths=[1, 1],
            num_heads=[3, 6],
            num_query_pool=1,
            masked_unit_size=[4, 4],
            masked_unit_attention=[True, False],
        ),
        pixel_values=_normal(BATCH, 3, 32, 32),
    ),
    "perceiver": lambda: _of(
        hf.PerceiverModel,
        hf.PerceiverConfig(
            num_latents=5,
            d_latents=48,
            d_model=40,
            num_self_attends_per_block=1,
            num_self_attention_heads=6,
            num_cross_attention_heads=4,
        ),
        inputs=_normal(BATCH, TOKENS, 40),
        attention_mask=_padding(),
    ),
}
UNREBUILT = ("deberta talking heads",)
REBUILT = tuple(name for name in MODELS if name not in UNREBUILT)


def bypassing(name: str) -> Made:
    """A fresh, peaked copy of a model, and inputs with padding where it reads text."""
    model, inputs = _made(name)
    return copy.deepcopy(model), inputs


@cache
def _made(name: str) -> Made:
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model.eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=1.7 * parameter[0].numel() ** -0.5)
            else:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model, inputs
