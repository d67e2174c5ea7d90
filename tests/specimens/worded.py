"""Tiny models of many families with a head for words, whose weights are moved until all they do shows."""

from typing import Any

import torch
import transformers as hf
from families import CONFIGS

CLASSES = {
    "bert": hf.BertForMaskedLM,
    "albert": hf.AlbertForMaskedLM,
    "gpt2": hf.GPT2LMHeadModel,
    "llama": hf.LlamaForCausalLM,
    "gemma2": hf.Gemma2ForCausalLM,
    "gpt_oss": hf.GptOssForCausalLM,
    "t5": hf.T5ForConditionalGeneration,
}


def worded(family: str, seed: int, noise: float, **changed: object) -> Any:
    """`noise` is how far each parameter is moved at random; `changed` are settings of the config."""
    config = CONFIGS[family]()
    for name, value in changed.items():
        setattr(config, name, value)
    torch.manual_seed(seed)
    model = CLASSES[family]._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=noise)
    return model
