"""Relabel the heads of one BERT layer: the same function, the same heads, other numbers.

Heads are summed, so their order is arbitrary. Moving a head means moving its rows of the query, key and value
projections and its columns of the output projection together; nothing else in the model knows the order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import BertForPreTraining


def order_with(best: int, place: int, heads: int) -> list[int]:
    """An order of the old heads that puts `best` at `place` by exchanging the two."""
    order = list(range(heads))
    order[best], order[place] = order[place], order[best]
    return order


def rows(order: Sequence[int], size: int) -> Tensor:
    """The old row of every new row, for heads of `size` rows each."""
    return torch.tensor([old * size + row for old in order for row in range(size)])


@torch.no_grad()
def permute_heads(model: BertForPreTraining, layer: int, order: Sequence[int]) -> None:
    """Make new head `j` of a layer the old head `order[j]`, in place; the model computes what it did."""
    attention = model.bert.encoder.layer[layer].attention
    heads, size = attention.self.num_attention_heads, attention.self.attention_head_size
    if sorted(order) != list(range(heads)):
        raise ValueError(f"not an order of heads 0-{heads - 1}: {list(order)}")
    moved = rows(order, size)
    for projection in (attention.self.query, attention.self.key, attention.self.value):
        projection.weight.copy_(projection.weight[moved].clone())
        projection.bias.copy_(projection.bias[moved].clone())
    attention.output.dense.weight.copy_(attention.output.dense.weight[:, moved].clone())
