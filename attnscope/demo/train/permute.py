"""Relabel the heads of one BERT, BART or Llama layer: the same function, the same heads, other numbers.

Heads are summed, so their order is arbitrary. Moving a head means moving its rows of the query, key and value
projections and its columns of the output projection together; nothing else in the model knows the order.
Where several query heads share a key head, they move with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import Linear
from transformers import BartForConditionalGeneration, BertForPreTraining, LlamaForCausalLM


def order_with(best: int, place: int, heads: int) -> list[int]:
    """An order of the old heads that puts `best` at `place` by exchanging the two."""
    order = list(range(heads))
    order[best], order[place] = order[place], order[best]
    return order


def rows(order: Sequence[int], size: int) -> Tensor:
    """The old row of every new row, for heads of `size` rows each."""
    return torch.tensor([old * size + row for old in order for row in range(size)])


def _move(made: Sequence[Linear], read: Linear | None, moved: Tensor) -> None:
    for projection in made:
        for part in projection.parameters():
            part.copy_(part[moved].clone())
    if read is not None:
        read.weight.copy_(read.weight[:, moved].clone())


@torch.no_grad()
def permute_heads(model: BertForPreTraining, layer: int, order: Sequence[int]) -> None:
    """Make new head `j` of a layer the old head `order[j]`, in place; the model computes what it did."""
    attention = model.bert.encoder.layer[layer].attention
    heads, size = attention.self.num_attention_heads, attention.self.attention_head_size
    if sorted(order) != list(range(heads)):
        raise ValueError(f"not an order of heads 0-{heads - 1}: {list(order)}")
    made = (attention.self.query, attention.self.key, attention.self.value)
    _move(made, attention.output.dense, rows(order, size))


@torch.no_grad()
def permute_cross_heads(model: BartForConditionalGeneration, layer: int, order: Sequence[int]) -> None:
    """Make new cross-attention head `j` of a decoder layer the old head `order[j]`, in place."""
    attention = model.model.decoder.layers[layer].encoder_attn
    made = (attention.q_proj, attention.k_proj, attention.v_proj)
    _move(made, attention.out_proj, rows(order, attention.head_dim))


def grouped_order_with(best: int, place: int, heads: int, key_heads: int) -> list[int]:
    """An order of the old query heads that puts `best` at `place` and leaves those of a key head together."""
    size = heads // key_heads
    groups = [list(range(start, start + size)) for start in range(0, heads, size)]
    old, new = best // size, place // size
    groups[old], groups[new] = groups[new], groups[old]
    group, target = groups[new], place % size
    source = group.index(best)
    group[source], group[target] = group[target], group[source]
    return [head for one in groups for head in one]


@torch.no_grad()
def permute_grouped_heads(model: LlamaForCausalLM, layer: int, order: Sequence[int]) -> None:
    """Make new query head `j` of a layer the old query head `order[j]`, in place, each with its key head."""
    heads, key_heads = model.config.num_attention_heads, model.config.num_key_value_heads
    sharing, size = heads // key_heads, model.config.head_dim
    groups = [
        [head // sharing for head in order[start : start + sharing]] for start in range(0, heads, sharing)
    ]
    if sorted(order) != list(range(heads)) or any(len(set(group)) > 1 for group in groups):
        raise ValueError(f"not an order of heads 0-{heads - 1} in {key_heads} groups: {list(order)}")
    attention = model.model.layers[layer].self_attn
    queries, keys = rows(order, size), rows([group[0] for group in groups], size)
    _move((attention.q_proj,), attention.o_proj, queries)
    _move((attention.k_proj, attention.v_proj), None, keys)
