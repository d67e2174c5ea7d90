"""Tiny checkpoints in the layout of well-known ones, with smaller sizes and stand-ins for their tokenizers.

What is no size is as in theirs: kinds and order of layers, activations, norms, biases, tied weights, how
heads share keys, what a decoder starts and ends with.
"""

import json
from pathlib import Path
from typing import Any

import media_models
import torch
import transformers as hf
from checkpoints import save, vocabulary_size
from safetensors.torch import load_file, save_file

PAD, END = 0, 3  # of the stand-in tokenizer


def _sharp(model: Any) -> Any:
    """With weights drawn so large that no attention is even."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                asks = any(part in name for part in ("q_proj", "k_proj", "query", "key"))
                weight.normal_(std=(2 if asks else 1) * weight.shape[-1] ** -0.5)
    return model.eval()


def opus_mt(folder: Path) -> Path:
    """Helsinki-NLP/opus-mt-*: Marian, sinusoidal positions, scaled embeddings, swish, one vocabulary for both
    sides, a decoder that starts with the padding and writes along four beams.
    """
    config = hf.MarianConfig(
        vocab_size=vocabulary_size(), d_model=32, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=64, decoder_ffn_dim=64,
        activation_function="swish", scale_embedding=True, static_position_embeddings=True,
        normalize_before=False, normalize_embedding=False, add_final_layer_norm=False, add_bias_logits=False,
        share_encoder_decoder_embeddings=True, tie_word_embeddings=True, max_position_embeddings=32,
        pad_token_id=PAD, decoder_start_token_id=PAD, eos_token_id=END, bos_token_id=END,
    )  # fmt: skip
    model = _sharp(hf.MarianMTModel(config))
    model.generation_config.update(num_beams=4, max_length=24, bad_words_ids=[[PAD]], forced_eos_token_id=END)
    return save(model, folder)


def ms_marco_minilm(folder: Path) -> Path:
    """cross-encoder/ms-marco-MiniLM-L6-v2: a BERT of 6 x 12 that gives a question and a passage one score."""
    config = hf.BertConfig(
        vocab_size=vocabulary_size(), hidden_size=48, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=96, max_position_embeddings=64, type_vocab_size=2, num_labels=1,
        id2label={0: "LABEL_0"},
    )  # fmt: skip
    config.sbert_ce_default_activation_function = "torch.nn.modules.linear.Identity"
    return save(_sharp(hf.BertForSequenceClassification(config)), folder)


def llava_1_5(folder: Path) -> Path:
    """llava-hf/llava-1.5-7b-hf: CLIP of which the last layer but one is read, without its class token, two
    projections, and a Llama with as many keys as queries.
    """
    vision = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 16, "intermediate_size": 64}
    text = {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 32, "intermediate_size": 96}
    tokenizer = media_models.word_tokenizer("<image>")
    config = hf.LlavaConfig(
        text_config=hf.LlamaConfig(
            **text, num_key_value_heads=32, vocab_size=30, max_position_embeddings=96, rms_norm_eps=1e-5,
            bos_token_id=1, eos_token_id=2,
        ),
        vision_config=hf.CLIPVisionConfig(**vision, image_size=40, patch_size=10, hidden_act="quick_gelu"),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"), pad_token_id=0,
        projector_hidden_act="gelu", vision_feature_layer=-2,
        vision_feature_select_strategy="default", image_seq_length=16,
    )  # fmt: skip
    processor = hf.LlavaProcessor(
        hf.CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size=40), tokenizer, patch_size=10,
        vision_feature_select_strategy="default", num_additional_image_tokens=1,
    )  # fmt: skip
    _sharp(hf.LlavaForConditionalGeneration(config)).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def gpt_oss(folder: Path) -> Path:
    """openai/gpt-oss-20b: layers with and without a window in turn, sinks, eight queries to a key, YaRN, and
    experts of four bits in blocks of 32 with a scale each (mxfp4).
    """
    config = hf.GptOssConfig(
        vocab_size=vocabulary_size(), hidden_size=64, intermediate_size=64, num_hidden_layers=4, head_dim=8,
        num_attention_heads=16, num_key_value_heads=2, num_local_experts=8, num_experts_per_tok=4,
        sliding_window=4, layer_types=["sliding_attention", "full_attention"] * 2, attention_bias=True,
        tie_word_embeddings=False, dtype="bfloat16", pad_token_id=PAD, eos_token_id=END, swiglu_limit=7.0,
        rope_parameters={
            "rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "truncate": False, "original_max_position_embeddings": 4096,
        },
    )  # fmt: skip
    save(_sharp(hf.GptOssForCausalLM(config)).to(torch.bfloat16), folder)
    stored = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            stored[name] = weight
            continue
        experts, columns, rows = weight.shape
        blocks = (experts, rows, columns // 32)
        stored[f"{name}_blocks"] = torch.randint(0, 256, (*blocks, 16), dtype=torch.uint8)
        stored[f"{name}_scales"] = torch.randint(122, 125, blocks, dtype=torch.uint8)
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    file = folder / "config.json"
    kept = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    told = {"quant_method": "mxfp4", "modules_to_not_convert": kept}
    file.write_text(json.dumps({**json.loads(file.read_text()), "quantization_config": told}))
    return folder
