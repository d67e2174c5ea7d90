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
