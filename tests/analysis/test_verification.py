"""Verifying models of several towers: every layer that ran is listed, and what was not seen is said."""

import pytest
import torch
import transformers as hf

from attnscope.analysis.verification import _worse, verify_model
from attnscope.capture import provenance_of
from attnscope.capture.following.describe import tokens_of
from attnscope.errors import InputError
from attnscope.results import Kind, OutputCheck, Verdict, Verification

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
VISION = {**SIZES, "num_hidden_layers": 3, "image_size": 32, "patch_size": 8}
TEXT = {**SIZES, "vocab_size": 97, "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 96}
CONFIGS = {
    "clip": lambda: hf.CLIPConfig(text_config=TEXT, vision_config=VISION),
    "llava": lambda: hf.LlavaConfig(
        text_config={"model_type": "llama", **TEXT, "num_key_value_heads": 2},
        vision_config={"model_type": "clip_vision_model", **VISION},
        image_token_id=96,
    ),
    "led": lambda: hf.LEDConfig(
        vocab_size=97, d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=2, encoder_ffn_dim=40, decoder_ffn_dim=40, attention_window=8,
    ),
    "mamba": lambda: hf.MambaConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2),
}  # fmt: skip


def verified(name: str, **further: torch.Tensor) -> Verification:
    torch.manual_seed(4)
    model = hf.AutoModel.from_config(CONFIGS[name](), attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=1.5 * parameter.shape[-1] ** -0.5)
    ids = torch.randint(3, 95, (1, 7))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), **further}
    tokens = tokens_of(inputs)
    assert tokens is not None
    return verify_model(model, inputs, tokens, provenance_of(model, tokens))


def places(result: Verification) -> list[tuple[str, str, int]]:
    return [(check.tower, check.kind.value, check.layer) for check in result.layers]


def test_two_towers_of_one_kind_are_both_certified_under_their_names() -> None:
    result = verified("clip", pixel_values=torch.randn(1, 3, 32, 32))
    text, vision = (
        [(name, "encoder", layer) for layer in range(depth)]
        for name, depth in (("text_model", 2), ("vision_model", 3))
    )
    assert places(result) == text + vision
    assert (result.verdict, result.notes) == (Verdict.CERTIFIED, ())
    assert {len(check.certificates) for check in result.layers} == {4}


def test_a_tower_that_the_input_does_not_reach_is_said_to_be_left_out() -> None:
    result = verified("llava")
    assert {check.kind for check in result.layers} == {Kind.DECODER}
    assert result.notes == ("not run for this input: encoder",)
    assert result.verdict is Verdict.CERTIFIED


def test_layers_that_ran_without_dense_attention_are_uncertified_and_so_is_the_whole() -> None:
    result = verified("led", decoder_input_ids=torch.tensor([[2, 5, 6]]))
    assert [kind for _, kind, _ in places(result)] == ["encoder", "encoder", "decoder", "cross"]
    verdicts = [[one.verdict.value for one in check.certificates] for check in result.layers]
    assert verdicts == [["uncertified"] * 4] * 2 + [["certified"] * 2] * 2
    assert [check.route for check in result.layers] == ["none", "none", *["traced operations"] * 2]
    assert (result.verdict, result.notes) == (Verdict.UNCERTIFIED, ())


def test_a_model_without_attention_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="its layers are MambaBlock"):
        verified("mamba")


def test_of_two_watched_runs_the_one_that_changed_a_result_counts() -> None:
    same, changed = OutputCheck("logits", 0.0, True), OutputCheck("logits", 2e-7, False)
    further = OutputCheck("logits", 3e-7, False)
    assert _worse([same], [changed]) == _worse([changed], [same]) == (changed,)
    assert _worse([changed], [further]) == _worse([further], [changed]) == (further,)
    assert _worse([same], [same]) == (same,)
