"""From a capture to results: one head in full, many heads at once, and a whole model."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as hf
from families import (
    CONFIGS,
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
from attnscope.analysis.verification import verify_model
from attnscope.attention import Capture
from attnscope.capture import Selection, provenance_of, record
from attnscope.capture.following.describe import tokens_of
from attnscope.capture.following.takeover import KernelInputs
from attnscope.errors import InputError
from attnscope.results import Kind, Verdict, Verification


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


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_oss", "t5"])
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


def test_one_head_says_where_it_stands():
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


def test_a_window_that_the_model_looks_beyond_is_not_stated():
    captured = record(sharp("mistral"), ids(), Selection(layers=[0]))
    assert recompute_head(captured, 0, 1).window == 4
    told = replace(captured.calls[0], allowed=torch.ones(1, TOKENS, TOKENS).tril().bool())
    assert recompute_head(replace(captured, calls=(told,)), 0, 1).window is None


def test_rows_that_have_no_key_are_nan_and_said_to_be_unanswered():
    captured = record(sharp("llama"), padded("left"), Selection(row=1))
    found = recompute_head(padding_as_tokens(captured), 1, 0)
    assert found.answered.tolist() == [False] * 3 + [True] * 8
    assert np.isnan(found.weights[:3]).all()
    np.testing.assert_allclose(found.weights[3:].sum(1), 1)


@pytest.mark.parametrize("head", [6, -1, 99])
def test_a_head_that_the_layer_does_not_have_is_refused(head):
    with pytest.raises(InputError, match=f"no head {head} in layer 1: heads are 0-5"):
        recompute_head(record(sharp("llama"), ids(), Selection(layers=[1])), 1, head)


def test_a_head_or_layer_that_was_not_captured_is_refused():
    captured = record(sharp("llama"), ids(), Selection(layers=[1], heads=[2]))
    assert recompute_head(captured, 1, 2).certificate.verdict is Verdict.CERTIFIED
    with pytest.raises(InputError, match="head 3 of layer 1 was not captured"):
        recompute_head(captured, 1, 3)
    with pytest.raises(InputError, match="layer 0 was not captured"):
        recompute_head(captured, 0, 2)


def test_one_head_of_a_model_with_another_attention_fails(wrong_kernel):
    assert recompute_head(record(sharp("llama"), ids()), 1, 2).certificate.verdict is Verdict.FAILED


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


def test_chosen_heads_of_chosen_layers_stand_in_the_order_they_were_asked_for():
    captured = record(sharp("llama"), ids(), Selection(layers=[0, 2]))
    every, some = measure_heads(captured), measure_heads(captured, [4, 1])
    assert some.layers == (0, 2)
    assert some.heads == (4, 1)
    assert some.scores["entropy"].values.tolist() == every.scores["entropy"].values[:, [4, 1]].tolist()
    assert some.strongest.tolist() == every.strongest[:, [4, 1]].tolist()
    assert some.certificates[1][0] == every.certificates[1][4]
    assert every.scores["entropy"].unit == "nats"


def test_by_default_every_captured_head_is_taken():
    assert measure_heads(record(sharp("llama"), ids(), Selection(heads=[3, -1]))).heads == (3, 5)


def test_a_head_in_which_no_query_has_a_key_has_no_strongest_link():
    captured = record(sharp("bert"), ids(), Selection(layers=[0]))
    nothing = torch.zeros(1, TOKENS, TOKENS, dtype=torch.bool)
    found = measure_heads(
        Capture((replace(captured.calls[0], allowed=nothing),), 3, captured.provenance), [0]
    )
    assert found.strongest.tolist() == [[[-1, -1]]]
    assert math.isnan(found.strongest_weight[0, 0])
    assert math.isnan(found.scores["entropy"].values[0, 0])
    assert found.certificates[0][0].verdict is not Verdict.CERTIFIED


def test_an_overview_of_a_model_with_another_attention_fails(wrong_kernel):
    found = measure_heads(record(sharp("llama"), ids()))
    assert {each.verdict for row in found.certificates for each in row} == {Verdict.FAILED}


# a whole model


@pytest.mark.parametrize(
    ("family", "kernel"),
    [
        *((family, "eager") for family in ("bert", "gpt2", "llama", "gemma2", "albert")),
        *((family, "sdpa") for family in ("bert", "gpt2", "llama", "albert")),  # knows no soft cap
    ],
)
def test_a_sound_model_is_certified_as_a_whole(family, kernel):
    found = verified(twin(sharp(family), kernel), ids())
    assert found.verdict is Verdict.CERTIFIED
    assert [check.layer for check in found.layers] == [0, 1, 2]
    assert all(len(check.certificates) == HEADS for check in found.layers)
    assert "last_hidden_state" in {check.name for check in found.outputs}
    assert all(check.identical and check.difference == 0 for check in found.outputs)


def test_the_head_of_a_model_is_compared_too():
    torch.manual_seed(0)
    model = hf.AutoModelForMaskedLM.from_config(CONFIGS["bert"](), attn_implementation="eager")
    assert {"logits"} <= {check.name for check in verified(model, ids()).outputs}


def test_every_kind_of_attention_of_an_encoder_decoder_is_certified():
    torch.manual_seed(0)
    model = hf.T5Model._from_config(CONFIGS["t5"](), attn_implementation="eager")
    found = verified(model, {**ids(), "decoder_input_ids": ids(7, seed=5)["input_ids"]})
    assert [check.kind for check in found.layers].count(Kind.ENCODER) == LAYERS
    assert [check.kind for check in found.layers].count(Kind.DECODER) == LAYERS
    assert [check.kind for check in found.layers].count(Kind.CROSS) == LAYERS
    assert found.verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE)
    assert (
        max(c.weight_error / c.weight_tolerance for check in found.layers for c in check.certificates) < 0.7
    )


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


def test_a_takeover_that_changed_the_model_would_fail(monkeypatch):
    honest = KernelInputs.answer

    def meddling(given):
        output, weights = honest(given)
        return output * (1 + 1e-5), weights

    monkeypatch.setattr(KernelInputs, "answer", meddling)
    found = verified(sharp("llama"), ids())
    assert not found.outputs[0].identical
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


def test_layers_that_pool_their_tokens_are_not_put_into_one_overview():
    config = hf.FunnelConfig(
        vocab_size=97, block_sizes=[1, 2], num_decoder_layers=1, d_model=24, n_head=3, d_head=8, d_inner=30
    )
    torch.manual_seed(0)
    captured = record(hf.FunnelModel(config).eval(), ids(), Selection(tower="encoder"))
    with pytest.raises(InputError, match="layers 0 and 1 differ in their numbers of queries and keys"):
        measure_heads(captured)
    assert measure_heads(
        record(hf.FunnelModel(config).eval(), ids(), Selection(tower="encoder", layers=[1]))
    ).layers == (1,)
