"""Small checkpoints on disk, in ordinary Hugging Face format, with the demo model's tokenizer."""

import shutil
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from transformers import BertConfig, BertModel, PreTrainedModel

from attnscope import demo

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def vocabulary_size() -> int:
    """How many ids the demo tokenizer can produce."""
    from transformers import AutoTokenizer

    return len(AutoTokenizer.from_pretrained(demo.folder()))


def bert_config(**changes: Any) -> BertConfig:
    """A BERT of 5 layers with 4 heads of 6 dimensions, 32 positions."""
    settings = {
        "vocab_size": vocabulary_size(),
        "hidden_size": 24,
        "num_hidden_layers": 5,
        "num_attention_heads": 4,
        "intermediate_size": 36,
        "max_position_embeddings": 32,
        "initializer_range": 0.6,
    }
    return BertConfig(**{**settings, **changes})


def save(model: PreTrainedModel, folder: Path, **options: Any) -> Path:
    """`model` in `folder`, with a tokenizer."""
    model.save_pretrained(folder, **options)
    for name in TOKENIZER_FILES:
        shutil.copy(demo.folder() / name, folder / name)
    return folder


def tiny_bert(folder: Path, model_class: type[PreTrainedModel] = BertModel, **changes: Any) -> Path:
    """A seeded tiny BERT in `folder`."""
    torch.manual_seed(7)
    return save(model_class(bert_config(**changes)), folder)


def tiny_translator(folder: Path, family: str = "bart") -> Path:
    """A seeded, sharpened encoder-decoder in `folder`: 2 or 3 encoder and 3 decoder layers.

    `bart` and `marian` have 4 heads in the encoder, 6 in the decoder; `t5` has 4 in both.
    """
    halves = {
        "vocab_size": vocabulary_size(), "d_model": 24, "encoder_layers": 2, "decoder_layers": 3,
        "encoder_attention_heads": 4, "decoder_attention_heads": 6, "encoder_ffn_dim": 30,
        "decoder_ffn_dim": 30, "max_position_embeddings": 40, "pad_token_id": 0, "eos_token_id": 3,
        "bos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 3,
    }  # fmt: skip
    t5 = {
        "vocab_size": vocabulary_size(), "d_model": 24, "d_kv": 5, "d_ff": 30, "num_layers": 3,
        "num_heads": 4, "pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0,
    }  # fmt: skip
    torch.manual_seed(11)
    made: dict[str, Any] = {
        "bart": lambda: hf.BartForConditionalGeneration(hf.BartConfig(**halves)),
        "marian": lambda: hf.MarianMTModel(hf.MarianConfig(**halves)),
        "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**t5)),
    }
    model = made[family]()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                asks = any(part in name for part in ("q_proj", "k_proj", ".q.", ".k."))
                weight.normal_(std=(2 if asks else 1) * weight.shape[-1] ** -0.5)
    return save(model, folder)


_OF_GGUF = {
    "model.embed_tokens": "token_embd", "model.layers": "blk", "model.norm": "output_norm",
    "lm_head": "output", "self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "self_attn.": "attn_", "mlp.": "ffn_", "_proj": "",
}  # fmt: skip


def gguf_file(file: Path, llama: hf.LlamaForCausalLM) -> Path:
    """The model as llama.cpp keeps it: other names, queries and keys in the order of its rotation."""
    from gguf import GGUFWriter
    from tokenizers import pre_tokenizers

    config, made = llama.config, GGUFWriter(file, "llama")
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "the", "Ġthe", "<s>", "</s>"]
    made.add_context_length(config.max_position_embeddings)
    made.add_embedding_length(config.hidden_size)
    made.add_block_count(config.num_hidden_layers)
    made.add_feed_forward_length(config.intermediate_size)
    made.add_head_count(config.num_attention_heads)
    made.add_head_count_kv(config.num_key_value_heads)
    made.add_layer_norm_rms_eps(config.rms_norm_eps)
    made.add_rope_freq_base(1e4)
    made.add_tokenizer_model("gpt2")
    made.add_token_list(pieces)
    made.add_token_types([1] * (len(pieces) - 2) + [3, 3])
    made.add_token_merges(["t h", "th e", "Ġ the"])
    for name, weight in llama.state_dict().items():
        for one, other in _OF_GGUF.items():
            name = name.replace(one, other)
        heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}
        if (count := heads.get(name.partition("attn_")[2].partition(".")[0])) is not None:
            weight = weight.unflatten(0, (count, 2, -1)).transpose(1, 2).flatten(0, 2)
        made.add_tensor(name, weight.contiguous().numpy())
    made.write_header_to_file()
    made.write_kv_data_to_file()
    made.write_tensors_to_file()
    made.close()
    return file
