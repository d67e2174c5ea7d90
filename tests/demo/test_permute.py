"""Relabelling the heads of a layer must not change what the model computes."""

import copy

import pytest
import torch
from transformers import BertConfig, BertForPreTraining

from attnscope.demo.permute import order_with, permute_heads, rows

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
