"""A tiny Llama whose attention modules ask for the kernel, and then do something with its answer."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from families import sharp
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import eager_attention_forward

Onward = Callable[["Unfaithful", Tensor, Tensor], Tensor]


class Unfaithful(nn.Module):
    """Attention by the interface whose `onward` makes the module's result of hidden states and the answer."""

    def __init__(self, config, inner: nn.Module, onward: Onward) -> None:
        super().__init__()
        self.config, self.onward, self.head_dim, self.is_causal = config, onward, inner.head_dim, True
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            inner.q_proj,
            inner.k_proj,
            inner.v_proj,
            inner.o_proj,
        )
        generator = torch.Generator().manual_seed(5)
        width = inner.o_proj.in_features
        self.gate = nn.Parameter(torch.rand(width, generator=generator) + 0.5)
        self.by_head = nn.Parameter(torch.rand(6, 1, generator=generator) + 0.5)
        self.once = nn.Parameter(torch.tensor(0.7))
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("constant", torch.rand(width, generator=generator) + 0.5, persistent=False)
        self.kept: list[Tensor] = []
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext

    def forward(self, hidden_states, attention_mask=None, **options):
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )
        query, key, value = (
            each(hidden_states).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for each in (self.q_proj, self.k_proj, self.v_proj)
        )
        self.num_key_value_groups = query.shape[1] // key.shape[1]
        gate = torch.sigmoid(self.q_proj(hidden_states))
        with self.around():
            output, weights = attend(self, query, key, value, attention_mask, scaling=0.3)
        self.computed = gate
        return self.onward(self, hidden_states, output), weights


def unfaithful(onward: Onward) -> nn.Module:
    """The tiny Llama with `onward` in each of its layers."""
    model = sharp("llama")
    for layer in model.layers:
        layer.self_attn = Unfaithful(model.config, layer.self_attn, onward)
    return model.eval()
