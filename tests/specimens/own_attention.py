"""A tiny BERT whose attention is written out by hand, for what an author may do to weights on their way."""

from collections.abc import Callable
from functools import partial

import torch
from families import DIM, HEADS, sharp
from torch import Tensor, nn

Meet = Callable[["OwnAttention", Tensor, Tensor], Tensor]
Normalise = Callable[[Tensor], Tensor]


class OwnAttention(nn.Module):
    """Attention by products of its own; `meet` brings weights to values, `normalise` is the softmax."""

    def __init__(self, inner: nn.Module, meet: Meet, normalise: Normalise, tokens: int) -> None:
        super().__init__()
        self.query, self.key, self.value = inner.query, inner.key, inner.value
        self.meet, self.normalise, self.num_attention_heads = meet, normalise, HEADS
        normal = partial(torch.randn, generator=torch.Generator().manual_seed(tokens))
        self.keys = nn.Parameter(normal(tokens, tokens) / tokens**0.5)  # mixes keys (or queries)
        self.heads = nn.Parameter(normal(HEADS, HEADS) / HEADS**0.5)  # mixes heads
        self.fewer = nn.Parameter(normal(tokens, 5))  # keys to five places
        self.memory = nn.Parameter(normal(HEADS, tokens, DIM))  # values that no token made
        self.register_buffer("constant", normal(tokens, tokens), persistent=False)
        self.attribute = [normal(tokens, tokens)]

    def forward(self, hidden_states: Tensor, *_given: object, **_options: object) -> tuple[Tensor, None]:
        query, key, value = (
            each(hidden_states).unflatten(-1, (HEADS, DIM)).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        scores = torch.matmul(query, key.transpose(2, 3)) / DIM**0.5
        context = self.meet(self, self.normalise(scores), value)
        return context.transpose(1, 2).flatten(2), None

    @staticmethod
    def plain(self: "OwnAttention", weights: Tensor, value: Tensor) -> Tensor:
        return torch.matmul(weights, value)

    @staticmethod
    def softmax(scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


def with_own_attention(
    meet: Meet = OwnAttention.plain, normalise: Normalise = OwnAttention.softmax, tokens: int = 11
) -> nn.Module:
    """The tiny BERT with this attention in each of its layers, for texts of `tokens` tokens."""
    model = sharp("bert")
    for layer in model.encoder.layer:
        layer.attention.self = OwnAttention(layer.attention.self, meet, normalise, tokens)
    return model.eval()
