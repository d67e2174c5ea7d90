"""A long capture holds nothing of queries by keys, and is what a plain capture of the same text is."""

import pytest
import torch
from moved_weights import carried, moved
from transformers import AutoConfig, AutoModel

from attnscope.arithmetic import attend
from attnscope.capture import Selection, record
from attnscope.capture.long import chunked
from attnscope.capture.long.run import record_long
from attnscope.errors import DoesNotFitError, InputError
from attnscope.results import Verdict
from attnscope.tiles.softmax import Heads, certify_long, rows_of
from attnscope.tiles.tiling import Sizes
from attnscope.verify import certify

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": 64,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
MODELS = {
    "llama": (GROUPED, None, "sdpa"),
    "mistral": (GROUPED | {"sliding_window": 9}, None, "sdpa"),
    "gpt2": ({"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128}, None, "sdpa"),
    "bert": ({}, None, "sdpa"),
    "gemma2": (GROUPED | {"sliding_window": 9, "query_pre_attn_scalar": 8}, None, "eager"),
    "gpt_oss": (
        GROUPED | {"sliding_window": 9, "num_local_experts": 2, "num_experts_per_tok": 1},
        None,
        "eager",
    ),
    "t5": ({"d_model": 32, "num_layers": 3, "num_heads": 4, "d_kv": 8, "d_ff": 48}, "decoder", "eager"),
    "bart": ({"d_model": 32, "encoder_attention_heads": 4, "decoder_attention_heads": 4}, "cross", "sdpa"),
}
CROSSES = ("t5", "bart")


def model_of(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **{**SMALL, **MODELS[name][0]})
    config._attn_implementation = "eager"
    model = AutoModel.from_config(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(6)  # far from uniform
    return model


def inputs_of(name: str, padded: int = 0) -> dict[str, torch.Tensor]:
    ids = torch.randint(3, 60, (1, 41), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[:, :padded] = 0
    decoder = {"decoder_input_ids": ids[:, :23]} if name in CROSSES else {}
    return {"input_ids": ids, "attention_mask": mask, **decoder}


@pytest.mark.parametrize("name", MODELS)
def test_a_long_capture_is_what_a_plain_one_is_with_the_same_certificate(name, monkeypatch):
    def no_squares(mask):
        raise AssertionError(f"a mask of {tuple(mask.shape)} was written out")

    model, (_, kind, kernel) = model_of(name), MODELS[name]
    selection = Selection(layers=[-1], heads=[1, 2], kind=kind)
    inputs = inputs_of(name)
    plain, *others = (
        record(each, inputs, selection).calls[0] for each in (model, moved(model, 0), moved(model, 1))
    )
    monkeypatch.setattr(chunked.SymbolicMask, "written", no_squares)
    monkeypatch.setattr(chunked, "_EAGER_PAIRS", 4 * 41 * 7)
    monkeypatch.setattr(chunked, "_FUSED_PAIRS", 41 * 17)
    captured = record_long(model, inputs, selection)
    (call,) = captured.calls
    assert captured.provenance.kernel == f"{kernel}, some queries at a time"
    assert not call.weights
    assert call.allowed is None
    assert call.standing == plain.standing
    heads = Heads(call, Sizes(16, 11, 11), torch.float32)
    for head in (1, 2):
        rows = rows_of(heads.head(head))
        expected, other = (attend(plain.operands(each)).output[0] for each in (head, 3 - head))
        short, long = certify(plain, head), certify_long(call, head, rows)
        off = long.output_tolerance * float(plain.v[plain.key_head(head)].abs().max())
        outputs = [attend(each.operands(head)).output[0].numpy() for each in others]
        off += carried(expected.numpy(), outputs)  # by the layers before
        torch.testing.assert_close(rows.output, expected, rtol=0, atol=off)
        assert (rows.output - other).abs().max() > 10 * off, "another head's answer is far from it"
        assert long.verdict is short.verdict is Verdict.CERTIFIED
        assert {fault.name for fault in long.faults} == {fault.name for fault in short.faults}


@pytest.mark.parametrize("name", ["llama", "bert", "gpt2"])
def test_padding_is_a_rule_too(name):
    model, inputs = model_of(name), inputs_of(name, padded=5)
    selection = Selection(layers=[1], heads=[0])
    plain, call = (each(model, inputs, selection).calls[0] for each in (record, record_long))
    every = torch.arange(41)
    assert torch.equal(call.rule.block(0, every, every), plain.allowed_matrix(0))
    assert not plain.allowed_matrix(0)[:, :5].any()
    assert (
        certify_long(call, 0, rows_of(Heads(call, Sizes(16, 11, 11), torch.float32).head(0))).verdict
        == "certified"
    )


def test_the_library_is_left_as_it_was():
    registry = chunked.AttentionMaskInterface._global_mapping
    before = dict(registry)
    model = model_of("llama")
    record_long(model, inputs_of("llama"), Selection(layers=[0]))
    assert registry == before
    with pytest.raises(InputError, match="no layer 7"):
        record_long(model, inputs_of("llama"), Selection(layers=[7]))
    assert registry == before


def test_a_model_that_works_on_its_mask_gets_a_plain_one():
    with chunked.symbolic_masks():
        made = chunked.AttentionMaskInterface._global_mapping["eager"](2, 5, 5)
    assert isinstance(made, chunked.SymbolicMask)
    worked = made + 1
    assert worked.shape == (2, 1, 5, 5)
    assert worked[0, 0, 3, 3] == 1
    assert worked[0, 0, 3, 4] == torch.finfo(torch.float32).min
    assert isinstance(made[:, :, :, :5], chunked.SymbolicMask)
    assert not isinstance(made[:, :, :, :3], chunked.SymbolicMask)


def test_a_mask_that_would_not_fit_is_refused_and_not_written():
    with chunked.symbolic_masks():
        made = chunked.AttentionMaskInterface._global_mapping["sdpa"](
            1, 10**6, 10**6, allow_is_causal_skip=False
        )
    with pytest.raises(DoesNotFitError, match="1,000,000 x 1,000,000"):
        made.logical_not()


def test_a_fused_kernel_that_answers_otherwise_is_not_used(monkeypatch):
    wrong = chunked.scaled_dot_product_attention
    monkeypatch.setattr(
        chunked, "scaled_dot_product_attention", lambda *args, **kwargs: wrong(*args, **kwargs) * 1.01
    )
    captured = record_long(model_of("llama"), inputs_of("llama"), Selection(layers=[1], heads=[0]))
    assert captured.provenance.kernel == "eager, some queries at a time"


def test_code_that_makes_its_squares_itself_is_told():
    config = AutoConfig.for_model("mpnet", **SMALL)
    with pytest.raises(InputError, match="asks for no kernel"):
        record_long(AutoModel.from_config(config).eval(), inputs_of("mpnet"), Selection(layers=[0]))
