"""A text that is long for a test, a Llama that reads it, and an eye for tensors of all of its pairs."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM


def llama(times: float) -> LlamaForCausalLM:
    """Grouped queries, and weights so many times as large that heads look somewhere."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=90, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=48, max_position_embeddings=128, attn_implementation="eager",
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(times)
    return model


def ids(length: int) -> list[int]:
    return torch.randint(3, 90, (length,), generator=torch.Generator().manual_seed(1)).tolist()


class Squares(TorchDispatchMode):
    """While open, keeps in `made` which functions make a tensor of so many queries by as many keys."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length, self.made = length, list[Callable[..., Any]]()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and found.shape[-2:] == (self.length, self.length):
            self.made.append(function)
        return found
