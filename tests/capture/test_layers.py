"""Which layer is which: groups that share a module, hybrids, encoder-decoders, caches."""

import pytest
import torch
import transformers as hf
from families import CONFIGS, TOKENS, ids, sharp

from attnscope.analysis.verification import verify_model
from attnscope.capture import Selection, provenance_of, record
from attnscope.capture.following.describe import tokens_of
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites, layers_of
from attnscope.results import Kind, Verdict
from attnscope.verify import certify


def numbered(model, kind: Kind) -> tuple[int, ...]:
    return layers_of(find_sites(model), kind)


def test_the_layers_of_two_sharing_groups_are_those_of_the_untouched_run() -> None:
    torch.manual_seed(1)
    config = CONFIGS["albert"]()
    config.num_hidden_layers, config.num_hidden_groups, config.initializer_range = 4, 2, 0.5
    model = hf.AlbertModel._from_config(config, attn_implementation="eager").eval()
    assert numbered(model, Kind.ENCODER) == (0, 1, 2, 3)
    expected = model(**ids(), output_attentions=True).attentions
    captured = record(model, ids())
    assert [call.layer for call in captured.calls] == [0, 1, 2, 3]
    for call, own in zip(captured.calls, expected, strict=True):
        assert torch.equal(call.weights[1], own[0, 1])
    (third,) = record(model, ids(), Selection(layers=[2])).calls
    assert torch.equal(third.weights[0], expected[2][0, 0])


def test_a_decoder_of_one_layer_beside_a_deeper_encoder_has_one_layer() -> None:
    config = hf.BartConfig(
        vocab_size=90, d_model=24, encoder_layers=3, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=30, decoder_ffn_dim=30,
    )  # fmt: skip
    with torch.device("meta"):
        model = hf.BartModel(config)
    assert numbered(model, Kind.ENCODER) == (0, 1, 2)
    assert numbered(model, Kind.DECODER) == numbered(model, Kind.CROSS) == (0,)


def test_a_hybrid_has_attention_in_the_layers_where_it_stands() -> None:
    model = sharp("llama")
    model.layers[1].self_attn = torch.nn.Identity()
    assert numbered(model, Kind.DECODER) == (0, 2)
    with pytest.raises(InputError, match="no layer 1: the model has attention in layers 0, 2"):
        record(model, ids(), Selection(layers=[1]))


def test_both_sides_of_an_encoder_decoder_have_their_own_tokens() -> None:
    torch.manual_seed(0)
    model = hf.T5Model._from_config(CONFIGS["t5"](), attn_implementation="eager")
    inputs = {**ids(), "decoder_input_ids": ids(7, seed=5)["input_ids"]}
    (cross,) = record(model, inputs, Selection(layers=[1], kind=Kind.CROSS)).calls
    assert cross.query_tokens.ids == tuple(inputs["decoder_input_ids"][0].tolist())
    assert cross.key_tokens.ids == tuple(inputs["input_ids"][0].tolist())


def test_keys_from_a_cache_are_numbered_rather_than_given_wrong_names() -> None:
    model = sharp("llama")
    cache = model(**ids(), use_cache=True).past_key_values
    inputs = {"input_ids": ids(1)["input_ids"], "past_key_values": cache}
    (call,) = record(model, inputs, Selection(layers=[1])).calls
    assert call.query_tokens.ids == tuple(inputs["input_ids"][0].tolist())
    assert call.key_tokens.names == tuple(str(i) for i in range(TOKENS + 1))
    assert certify(call, 2).verdict is Verdict.CERTIFIED


def test_no_layer_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no layer was asked for"):
        record(sharp("bert"), ids(), Selection(layers=[]))


def test_a_verification_leaves_no_hook_behind() -> None:
    model = sharp("bert")

    def hooks() -> list[int]:
        kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
        return [len(getattr(module, kind)) for module in model.modules() for kind in kinds]

    before, forwards = hooks(), [module.forward for module in model.modules()]
    tokens = tokens_of(ids())
    found = verify_model(model, ids(), tokens, provenance_of(model, tokens))
    assert "last_hidden_state" in {check.name for check in found.outputs}
    assert hooks() == before
    assert [module.forward for module in model.modules()] == forwards


@pytest.mark.parametrize("family", ["llama", "gemma2", "bert"])
def test_float64_and_autocast_are_judged_by_the_arithmetic_that_the_kernel_really_used(family: str) -> None:
    model = sharp(family)
    with torch.autocast("cpu", torch.bfloat16):
        captured = record(model, ids(), Selection(layers=[0]))
    assert captured.calls[0].precision.startswith("bfloat16")
    verdicts = {certify(captured.calls[0], head).verdict for head in range(captured.calls[0].heads)}
    double = record(model.double(), ids(), Selection(layers=[0])).calls[0]
    assert Verdict.FAILED not in verdicts
    assert {certify(double, head).verdict for head in range(double.heads)} == {Verdict.CERTIFIED}


def test_no_head_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no head was asked for"):
        record(sharp("bert"), ids(), Selection(heads=[]))
