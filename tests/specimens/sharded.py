"""Tiny models of seven layers, and their checkpoints cut into a shard for each layer."""

import json
from pathlib import Path
from typing import Any

from checkpoints import bert_config, save, vocabulary_size
from safetensors.torch import load_file, save_file
from transformers import (
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    NomicBertConfig,
    NomicBertModel,
    PreTrainedModel,
)

LAYERS = 7
SHARDS = LAYERS + 2


def llama_config(**changes: Any) -> LlamaConfig:
    settings = {
        "vocab_size": vocabulary_size(), "hidden_size": 24, "intermediate_size": 36,
        "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2,
        "tie_word_embeddings": False,
    }  # fmt: skip
    return LlamaConfig(**{**settings, **changes})


def llama(**changes: Any) -> PreTrainedModel:
    return LlamaForCausalLM(llama_config(**changes))


def mixtral() -> PreTrainedModel:
    """Its files hold each expert by itself, under other names than the loaded model has."""
    shared = llama_config().to_dict()
    chosen = {name: shared[name] for name in ("vocab_size", "hidden_size", "intermediate_size")}
    heads = {"num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2}
    return MixtralForCausalLM(MixtralConfig(**chosen, **heads, num_local_experts=3, num_experts_per_tok=2))


def nomic() -> PreTrainedModel:
    """Its files hold queries, keys and values as one, and go by names of their own throughout."""
    sizes = {
        "hidden_size": 24,
        "intermediate_size": 36,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
    }
    return NomicBertModel(NomicBertConfig(vocab_size=vocabulary_size(), **sizes))


def gpt2() -> PreTrainedModel:
    """Its head is its embeddings, and the files name its parts by another prefix than the headless model."""
    return GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary_size(), n_layer=LAYERS, n_head=4, n_embd=24))


def bert() -> PreTrainedModel:
    return BertForMaskedLM(bert_config(num_hidden_layers=LAYERS))


def shard_name(number: int) -> str:
    return f"model-{number:05}-of-{SHARDS:05}.safetensors"


def in_shards(model: PreTrainedModel, folder: Path) -> Path:
    """`model` in `folder`: shard 0 has the embeddings, shard n layer n - 1, the last one the rest."""
    save(model, folder)
    file = folder / "model.safetensors"
    weights, index = load_file(file), {}
    for name in weights:
        layer = next((int(part) for part in name.split(".") if part.isdigit()), None)
        early = any(part in name for part in ("emb", ".wte", ".wpe"))
        index[name] = shard_name(0 if early else SHARDS - 1 if layer is None else layer + 1)
    for shard in set(index.values()):
        mine = {name: weight for name, weight in weights.items() if index[name] == shard}
        save_file(mine, folder / shard, {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    file.unlink()
    return folder
