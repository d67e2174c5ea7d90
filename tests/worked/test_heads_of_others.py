"""A head of any model worked out: its matrices found by what they do, and said where there are none."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    T5Config,
    T5EncoderModel,
)

from attnscope.analysis.heads.head import recompute_head
from attnscope.capture import Selection, record
from attnscope.errors import InputError
from attnscope.results import Verdict, load
from attnscope.worked import work_head
from attnscope.worked.model_head import theatre

IDS = {"input_ids": torch.tensor([[5, 3, 8, 1, 9, 2]])}
LAYER, HEAD, WIDTH = 1, 2, 8
GPT2 = GPT2Config(vocab_size=20, n_embd=4 * WIDTH, n_layer=2, n_head=4, n_positions=16)
T5 = T5Config(vocab_size=20, d_model=24, d_kv=WIDTH, num_heads=4, num_layers=2, d_ff=16)
ALBERT = AlbertConfig(
    vocab_size=20, embedding_size=12, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=16,
)  # fmt: skip


def built(kind: type, config: object) -> torch.nn.Module:
    torch.manual_seed(0)
    return kind._from_config(config, attn_implementation="eager").eval()


def shown(model: torch.nn.Module):
    return theatre(model, IDS, record(model, IDS, Selection(layers=[LAYER])), LAYER, HEAD)


def test_a_fused_projection_that_lies_the_other_way_round_is_taken_apart() -> None:
    model = built(GPT2Model, GPT2)
    result = shown(model)
    fused, mine = model.h[LAYER].attn.c_attn.weight.double(), slice(HEAD * WIDTH, (HEAD + 1) * WIDTH)
    for i, letter in enumerate("qkv"):
        expected = fused[:, i * 4 * WIDTH :][:, mine].detach().numpy()
        assert result.step(f"w{letter}").matrix.values == pytest.approx(expected)
    wo = model.h[LAYER].attn.c_proj.weight.double()[mine].detach().numpy()
    assert result.step("wo").matrix.values == pytest.approx(wo)
    assert result.step("masked").formula == "scaled, −∞ for later keys"
    assert result.verdict is Verdict.CERTIFIED
    assert len(result.checks) == 4


def test_a_layer_that_is_used_twice_is_read_where_it_is_meant() -> None:
    model = built(AlbertModel, ALBERT)
    result = shown(model)
    with torch.no_grad():
        told = model(**IDS, output_hidden_states=True).hidden_states[LAYER][0]
    assert result.step("x").matrix.values == pytest.approx(told.numpy(), abs=1e-6)
    assert result.verdict is Verdict.CERTIFIED


def test_a_scale_of_one_and_learned_biases_are_part_of_the_sum() -> None:
    result = shown(built(T5EncoderModel, T5))
    keys = [step.key for step in result.steps]
    assert "biased" in keys
    assert "bq" not in keys
    assert "scaled" not in keys or result.step("scaled").formula == "scores · 1"
    assert result.verdict is Verdict.CERTIFIED


def test_rotary_positions_stand_between_and_that_is_said() -> None:
    config = LlamaConfig(
        vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    with pytest.raises(InputError, match="is no plain X W: rotary positions are turned into") as no:
        shown(built(LlamaModel, config))
    assert str(no.value).startswith("L1 H2 of LlamaModel")
    assert "attnscope sdpa head.npz" in str(no.value)


def test_no_hook_is_left_where_nothing_was_found() -> None:
    config = LlamaConfig(vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)
    model = built(LlamaModel, config)
    with pytest.raises(InputError):
        shown(model)
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_head_that_was_stored_is_worked_out_to_what_it_was(tmp_path, suffix: str) -> None:
    captured = record(built(T5EncoderModel, T5), IDS, Selection(layers=[LAYER]))
    head = recompute_head(captured, LAYER, HEAD)
    path = tmp_path / f"head{suffix}"
    head.save(path)
    result = work_head(load(path))
    assert result.step("weights").matrix.values == pytest.approx(head.weights)
    assert result.step("output").matrix.values == pytest.approx(head.output)
    assert result.verdict is Verdict.RECOMPUTED
    assert [check.passed for check in result.checks] == [True, True]
    assert result.title.endswith("L1 H2 of T5EncoderModel")


def test_a_head_whose_weights_are_not_those_of_its_vectors_fails() -> None:
    head = recompute_head(record(built(GPT2Model, GPT2), IDS, Selection(layers=[LAYER])), LAYER, HEAD)
    bent = replace(head, weights=head.weights * 1.001)
    assert work_head(bent).verdict is Verdict.FAILED
    with pytest.raises(InputError, match="does not hold its q, k and v"):
        work_head(replace(head, q=np.full_like(head.q, np.nan)))
