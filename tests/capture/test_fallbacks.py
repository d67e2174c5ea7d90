"""What is read when a model does not do what its code says, and what cannot be rebuilt to the end."""

import pytest
import torch
import transformers as hf
from bypassing import bypassing
from families import CONFIGS, HEADS, LAYERS, ids

from attnscope.analysis.verification import verify_model
from attnscope.capture import Selection, provenance_of, record
from attnscope.capture.following.describe import tokens_of
from attnscope.results import Route, Verdict
from attnscope.verify import certify


@pytest.fixture(scope="module")
def upcast() -> torch.nn.Module:
    config = CONFIGS["gpt2"]()
    config.reorder_and_upcast_attn, config.scale_attn_by_inverse_layer_idx = True, True
    config.initializer_range = 0.5
    torch.manual_seed(0)
    return hf.GPT2Model._from_config(config, attn_implementation="eager").eval()


def test_a_model_that_could_ask_for_its_kernel_and_does_not_is_traced(upcast) -> None:
    with torch.no_grad():
        own = upcast(**ids(), output_attentions=True).attentions
    captured = record(upcast, ids(), Selection(layers=[1]))
    (call,) = captured.calls
    assert (call.route, captured.provenance.route) == (Route.TRACED, "traced operations")
    for head in range(HEADS):
        torch.testing.assert_close(call.weights[head], own[1][0, head], rtol=0, atol=1e-7)
        assert certify(call, head).verdict is Verdict.CERTIFIED


def test_such_a_model_is_verified_as_it_is_read(upcast) -> None:
    tokens = tokens_of(ids())
    found = verify_model(upcast, ids(), tokens, provenance_of(upcast, tokens))
    assert [(check.layer, check.route) for check in found.layers] == [
        (layer, "traced operations") for layer in range(LAYERS)
    ]
    assert found.verdict is Verdict.CERTIFIED
    assert found.provenance.route == "traced operations"
    assert all(check.identical for check in found.outputs)


@pytest.fixture(scope="module")
def talking() -> torch.nn.Module:
    config = hf.DebertaConfig(
        vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40,
        talking_head=True, relative_attention=False, initializer_range=0.4, type_vocab_size=0,
    )  # fmt: skip
    torch.manual_seed(1)
    return hf.DebertaModel(config).eval()


def test_heads_that_talk_to_each_other_are_read_in_part(talking) -> None:
    call = record(talking, ids(), Selection(layers=[1])).calls[0]
    certificate = certify(call, 2)
    assert call.reweighted is not None
    assert not torch.allclose(call.reweighted[2], call.weights[2])
    assert certificate.verdict is Verdict.PARTIAL
    assert certificate.weight_error <= certificate.weight_tolerance
    assert certificate.output_error <= certificate.output_tolerance


def test_blocks_beside_a_softmax_that_could_not_be_followed_are_read_in_part() -> None:
    config = hf.BigBirdConfig(
        vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40,
        block_size=4, num_random_blocks=1, initializer_range=0.4, max_position_embeddings=128,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.BigBirdModel(config).eval()
    calls = record(model, ids(64), Selection(layers=[1])).calls
    assert [call.unread for call in calls] == [1, 1, 1, 1]  # the middle of the text, in windows
    certificate = certify(calls[0], 1)
    assert certificate.verdict is Verdict.PARTIAL
    assert certificate.reason == "1 more softmax of this layer could not be read"
    assert certificate.weight_error <= certificate.weight_tolerance


def test_scores_that_are_not_numbers_are_a_failure_and_no_mask() -> None:
    model, inputs = bypassing("mpnet")
    model.encoder.layer[0].output.dense.bias.data[0] = torch.nan
    for call in record(model, inputs, Selection(layers=[1])).calls:
        assert call.allowed_matrix(0).any(-1).all()
        assert {certify(call, head).verdict for head in range(call.heads)} == {Verdict.FAILED}
