"""From a capture to results: one head in full, many heads, whole models, models of several towers."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as hf
from families import (
    HEADS,
    KEY_HEADS,
    LAYERS,
    TOKENS,
    eager_weights,
    ids,
    padded,
    padding_as_tokens,
    sharp,
    twin,
)
from torch import nn
from transformers import AttentionInterface
from transformers.models.llama.modeling_llama import eager_attention_forward

from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.overview import measure_heads
from attnscope.capture import Selection, provenance_of, record
from attnscope.capture.following.describe import tokens_of
from attnscope.errors import InputError
from attnscope.results import Kind, OutputCheck, Verdict, Verification
from attnscope.verbs.verify.answer import _worse, verify_model


def verified(model: nn.Module, inputs: dict[str, torch.Tensor]) -> Verification:
    tokens = tokens_of(inputs)
    return verify_model(model, inputs, tokens, provenance_of(model, tokens))


@pytest.fixture
def wrong_kernel(registries):
    """Llama's attention with its scale 1% off, under the name that models use."""

    def attention(module, query, key, value, attention_mask, scaling, **options):
        return eager_attention_forward(module, query, key, value, attention_mask, scaling * 1.01, **options)

    AttentionInterface.register("eager", attention)


# one head


@pytest.mark.parametrize("family", ["gemma2", "gpt_oss", "t5"])
def test_one_head_holds_every_stage_as_a_slow_loop_finds_it(family):
    model, layer, head = sharp(family), 2, 4
    captured = record(model, ids(), Selection(layers=[layer]))
    found, call = recompute_head(captured, layer, head), captured.calls[0]
    key_head = 1 if call.key_heads == KEY_HEADS else head
    assert found.key_head == key_head
    for query in range(TOKENS):
        for key in range(TOKENS):
            score = sum(
                float(x) * float(y) for x, y in zip(call.q[head, query], call.k[key_head, key], strict=True)
            )
            logit = score * call.scale
            logit = logit if call.softcap is None else call.softcap * math.tanh(logit / call.softcap)
            logit += 0 if call.bias is None else float(call.bias[head, query, key])
            assert found.scores[query, key] == pytest.approx(score, abs=1e-9)
            if found.allowed[query, key]:
                assert found.scaled[query, key] == pytest.approx(logit, abs=1e-9)
            else:
                assert math.isnan(found.scaled[query, key])
                assert found.weights[query, key] == 0
    expected = eager_weights(model, ids())[layer][0, head]
    np.testing.assert_allclose(found.weights, expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(found.output, found.weights @ call.v[key_head].double().numpy(), atol=1e-12)
    np.testing.assert_allclose(found.output, call.output[head].numpy(), atol=1e-5)
    assert found.certificate.verdict is Verdict.CERTIFIED


def test_one_head_says_where_it_stands_and_no_window_that_it_looks_beyond():
    found = recompute_head(record(sharp("gemma2"), ids(), Selection(layers=[0])), 0, 5)
    assert (found.name, found.module, found.kind) == ("L0 H5", "layers.0.self_attn", Kind.DECODER)
    assert (found.heads, found.key_heads, found.key_head, found.layers) == (HEADS, KEY_HEADS, 1, LAYERS)
    assert (found.window, found.softcap, found.sink) == (4, 3.0, None)
    assert found.provenance.architecture == "Gemma2Model"
    assert found.provenance.kernel == "eager"
    assert found.provenance.dtype == "float32"
    assert found.provenance.token_ids == found.query_tokens.ids == tuple(ids()["input_ids"][0].tolist())
    sinks = sharp("gpt_oss").layers[1].self_attn.sinks.detach()
    assert recompute_head(record(sharp("gpt_oss"), ids()), 1, 3).sink == float(sinks[3])
    captured = record(sharp("mistral"), ids(), Selection(layers=[0]))
    assert recompute_head(captured, 0, 1).window == 4
    told = replace(captured.calls[0], allowed=torch.ones(1, TOKENS, TOKENS).tril().bool())
    assert recompute_head(replace(captured, calls=(told,)), 0, 1).window is None


def test_a_head_or_layer_that_is_not_there_or_was_not_captured_is_refused():
    for head in (6, -1):
        with pytest.raises(InputError, match=f"no head {head} in layer 1: heads are 0-5"):
            recompute_head(record(sharp("llama"), ids(), Selection(layers=[1])), 1, head)
    captured = record(sharp("llama"), ids(), Selection(layers=[1], heads=[2]))
    assert recompute_head(captured, 1, 2).certificate.verdict is Verdict.CERTIFIED
    with pytest.raises(InputError, match="head 3 of layer 1 was not captured"):
        recompute_head(captured, 1, 3)
    with pytest.raises(InputError, match="layer 0 was not captured"):
        recompute_head(captured, 0, 2)


# many heads


@pytest.mark.parametrize(("inputs", "row"), [(ids(), 0), (padded("left"), 1)], ids=["one", "padded"])
def test_the_strongest_link_and_the_entropy_are_those_of_a_slow_loop(inputs, row):
    model = sharp("llama")
    found = measure_heads(padding_as_tokens(record(model, inputs, Selection(row=row))))
    expected = eager_weights(model, inputs)
    first = 3 if row else 0  # the padding in front has no key to look at
    assert found.layers == (0, 1, 2)
    assert found.heads == tuple(range(HEADS))
    for layer in range(LAYERS):
        for head in range(HEADS):
            weights = expected[layer][row, head].tolist()
            best, entropies = (-1, -1, -1.0), []
            taken = [sum(row[key] for row in weights[first:]) / (TOKENS - first) for key in range(TOKENS)]
            sink = next((key for key in range(TOKENS) if taken[key] > 0.5), -1)
            for query in range(first, TOKENS):
                for key, weight in enumerate(weights[query]):
                    own = query == key
                    if weight > best[2] + 1e-6 and not own and key != sink and query > first:
                        best = (query, key, weight)
                entropies.append(-sum(p * math.log(p) for p in weights[query] if p > 0))
            query, key = found.strongest[layer, head]
            assert found.strongest_weight[layer, head] == pytest.approx(best[2], abs=1e-5)
            assert weights[query][key] == pytest.approx(best[2], abs=1e-5)
            assert query >= first
            mean = sum(entropies) / len(entropies)
            assert found.scores["entropy"].values[layer, head] == pytest.approx(mean, abs=1e-4)
            np.testing.assert_allclose(found.weights[layer][head][first:], weights[first:], atol=1e-5)
            assert found.certificates[layer][head].verdict is Verdict.CERTIFIED


# a whole model


@pytest.mark.parametrize(("family", "kernel"), [("gemma2", "eager"), ("albert", "sdpa"), ("llama", "sdpa")])
def test_a_sound_model_is_certified_as_a_whole(family, kernel):
    found = verified(twin(sharp(family), kernel), ids())
    assert found.verdict is Verdict.CERTIFIED
    assert [check.layer for check in found.layers] == [0, 1, 2]
    assert all(len(check.certificates) == HEADS for check in found.layers)
    assert "last_hidden_state" in {check.name for check in found.outputs}
    assert all(check.identical and check.difference == 0 for check in found.outputs)


def test_a_model_whose_result_changes_fails_though_every_head_is_certified():
    model, runs = sharp("llama"), []

    def drift(_module, _inputs, output):
        runs.append(1)
        return output if len(runs) == 1 else output + 1e-6

    model.norm.register_forward_hook(drift)
    found = verified(model, ids())
    assert {c.verdict for check in found.layers for c in check.certificates} == {Verdict.CERTIFIED}
    assert [check.identical for check in found.outputs if check.name == "last_hidden_state"] == [False]
    assert found.outputs[0].difference == pytest.approx(1e-6, rel=0.5)
    assert found.verdict is Verdict.FAILED


def test_a_model_with_another_attention_fails_though_its_results_stay(wrong_kernel):
    found = verified(sharp("llama"), ids())
    assert all(check.identical for check in found.outputs)
    assert {c.verdict for check in found.layers for c in check.certificates} == {Verdict.FAILED}
    assert found.verdict is Verdict.FAILED


def test_the_verdict_of_a_model_is_that_of_its_worst_head():
    assert verified(sharp("llama"), ids(1)).verdict is Verdict.INCONCLUSIVE
    found = verified(sharp("llama"), ids())
    worse = replace(found.layers[1].certificates[3], verdict=Verdict.PARTIAL)
    layer = replace(found.layers[1], certificates=(*found.layers[1].certificates[:5], worse))
    assert replace(found, layers=(found.layers[0], layer, found.layers[2])).verdict is Verdict.PARTIAL
    assert replace(found, layers=()).verdict is Verdict.UNCERTIFIED


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
VISION = {**SIZES, "num_hidden_layers": 3, "image_size": 32, "patch_size": 8}
TEXT = {**SIZES, "vocab_size": 97, "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 96}
TOWERS = {
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


def verified_towers(name: str, **further: torch.Tensor) -> Verification:
    torch.manual_seed(4)
    model = hf.AutoModel.from_config(TOWERS[name](), attn_implementation="eager").eval()
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
    result = verified_towers("clip", pixel_values=torch.randn(1, 3, 32, 32))
    text, vision = (
        [(name, "encoder", layer) for layer in range(depth)]
        for name, depth in (("text_model", 2), ("vision_model", 3))
    )
    assert places(result) == text + vision
    assert (result.verdict, result.notes) == (Verdict.CERTIFIED, ())
    assert {len(check.certificates) for check in result.layers} == {4}
    result = verified_towers("llava")
    assert {check.kind for check in result.layers} == {Kind.DECODER}
    assert result.notes == ("not run for this input: encoder",)
    assert result.verdict is Verdict.CERTIFIED
    with pytest.raises(InputError, match="its layers are MambaBlock"):
        verified_towers("mamba")


def test_layers_that_ran_without_dense_attention_are_uncertified_and_so_is_the_whole() -> None:
    result = verified_towers("led", decoder_input_ids=torch.tensor([[2, 5, 6]]))
    assert [kind for _, kind, _ in places(result)] == ["encoder", "encoder", "decoder", "cross"]
    verdicts = [[one.verdict.value for one in check.certificates] for check in result.layers]
    assert verdicts == [["uncertified"] * 4] * 2 + [["certified"] * 2] * 2
    assert [check.route for check in result.layers] == ["none", "none", *["traced operations"] * 2]
    assert (result.verdict, result.notes) == (Verdict.UNCERTIFIED, ())


def test_of_two_watched_runs_the_one_that_changed_a_result_counts() -> None:
    same, changed = OutputCheck("logits", 0.0, True), OutputCheck("logits", 2e-7, False)
    further = OutputCheck("logits", 3e-7, False)
    assert _worse([same], [changed]) == _worse([changed], [same]) == (changed,)
    assert _worse([changed], [further]) == _worse([further], [changed]) == (further,)
    assert _worse([same], [same]) == (same,)


def test_layers_of_other_lengths_are_not_put_into_one_overview() -> None:
    long, short = (record(sharp("bert"), ids(n), Selection(layers=[i])) for i, n in enumerate((11, 9)))
    both = replace(long, calls=(*long.calls, *short.calls))
    with pytest.raises(InputError, match="layers 0 and 1 differ in their numbers of queries and keys"):
        measure_heads(both)
