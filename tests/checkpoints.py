"""Small checkpoints on disk, in ordinary Hugging Face format, with the demo model's tokenizer."""

import shutil
from pathlib import Path
from typing import Any

import torch
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
