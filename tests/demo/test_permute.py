"""Relabelling the heads of a layer must not change what the model computes."""

import copy

import pytest
import torch
from transformers import BertConfig, BertForPreTraining, LlamaConfig, LlamaForCausalLM

from attnscope.demo.train.permute import (
    grouped_order_with,
    order_with,
    permute_grouped_heads,
    permute_heads,
    rows,
)

LAYERS, HEADS, SIZE = 2, 3, 4


@pytest.fixture
def model() -> BertForPreTraining:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30, hidden_size=HEADS * SIZE, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=20, max_position_embeddings=10, initializer_range=0.5, attn_implementation="eager",
    )  # fmt: skip
    return BertForPreTraining(config).eval()


@torch.no_grad()
def answers(model: BertForPreTraining) -> tuple[torch.Tensor, list[torch.Tensor]]:
    output = model(torch.arange(1, 8)[None], output_attentions=True)
    return output.prediction_logits, [weights[0] for weights in output.attentions]


def test_permuting_heads_leaves_the_function_unchanged_and_moves_the_attention(model) -> None:
    changed, order = copy.deepcopy(model), [2, 0, 1]
    permute_heads(changed, 1, order)
    (logits, attention), (new_logits, new_attention) = answers(model), answers(changed)
    torch.testing.assert_close(new_logits, logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(new_attention[1], attention[1][order])
    torch.testing.assert_close(new_attention[0], attention[0])
    assert not torch.allclose(attention[1], attention[1][order], atol=1e-3)


def test_permuting_only_the_queries_changes_the_function(model) -> None:
    changed = copy.deepcopy(model)
    query = changed.bert.encoder.layer[1].attention.self.query
    moved = rows([2, 0, 1], SIZE)
    with torch.no_grad():
        query.weight.copy_(query.weight[moved].clone())
        query.bias.copy_(query.bias[moved].clone())
    assert (answers(changed)[0] - answers(model)[0]).abs().max() > 1e-2


def test_permuting_forth_and_back_gives_every_weight_back(model) -> None:
    changed = copy.deepcopy(model)
    for order in ([2, 0, 1], [1, 2, 0]):
        permute_heads(changed, 0, order)
    for name, value in model.state_dict().items():
        assert torch.equal(value, changed.state_dict()[name]), name


def test_exchanging_two_heads_leaves_the_others_in_place() -> None:
    assert order_with(1, 3, 5) == [0, 3, 2, 1, 4]
    assert order_with(3, 3, 5) == [0, 1, 2, 3, 4]


def test_what_is_not_an_order_of_the_heads_is_refused(model) -> None:
    with pytest.raises(ValueError, match="not an order of heads 0-2"):
        permute_heads(model, 0, [0, 1, 1])


@pytest.fixture
def llama() -> LlamaForCausalLM:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=30, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=3,
        head_dim=8, intermediate_size=20, max_position_embeddings=10, initializer_range=0.4,
    )  # fmt: skip
    config._attn_implementation = "eager"
    return LlamaForCausalLM(config).eval()


def test_permuting_grouped_heads_leaves_the_function_unchanged_and_moves_the_attention(llama) -> None:
    changed, order, ids = copy.deepcopy(llama), [4, 5, 3, 2, 0, 1], torch.arange(1, 9)[None]
    permute_grouped_heads(changed, 1, order)
    with torch.no_grad():
        old, new = llama(ids, output_attentions=True), changed(ids, output_attentions=True)
    torch.testing.assert_close(new.logits, old.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(new.attentions[1], old.attentions[1][:, order])
    assert not torch.allclose(new.attentions[1], old.attentions[1], atol=1e-3)


def test_query_heads_never_leave_the_ones_they_share_a_key_head_with(llama) -> None:
    with pytest.raises(ValueError, match="in 3 groups"):
        permute_grouped_heads(llama, 0, [0, 2, 1, 3, 4, 5])
    with pytest.raises(ValueError, match="not an order"):
        permute_grouped_heads(llama, 0, [0, 1, 0, 1, 4, 5])


def test_the_chosen_query_head_comes_to_its_place_with_its_group() -> None:
    assert grouped_order_with(4, 11, 12, 4) == [0, 1, 2, 9, 10, 11, 6, 7, 8, 3, 5, 4]
    assert grouped_order_with(11, 11, 12, 4) == list(range(12))
    assert grouped_order_with(9, 11, 12, 4) == [*range(9), 11, 10, 9]
