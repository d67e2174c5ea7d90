"""Layers that attend several times for one input: windows, halves of the values, shared modules."""

import pytest
import torch
import transformers as hf
from families import CONFIGS, ids, sharp

from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.overview import measure_heads
from attnscope.capture import Selection, record
from attnscope.capture.following.describe import Sides, tokens_of
from attnscope.capture.run import run_watched
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.results import Kind, Verdict
from attnscope.verify import certify


@pytest.fixture(scope="module")
def swin() -> torch.nn.Module:
    torch.manual_seed(3)
    config = hf.SwinConfig(
        image_size=16, patch_size=2, embed_dim=12, depths=[2, 1], num_heads=[2, 4], window_size=2,
        initializer_range=0.5,
    )  # fmt: skip
    model = hf.SwinModel._from_config(config, attn_implementation="eager").eval()
    for name, parameter in model.named_parameters():
        if "relative_position_bias" in name:  # zero as the library makes it
            torch.nn.init.normal_(parameter)
    return model


@pytest.fixture(scope="module")
def pictures() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(4))}


@pytest.mark.parametrize("row", [0, 1])
def test_every_window_of_a_picture_is_a_block_and_belongs_to_its_picture(swin, pictures, row: int) -> None:
    with torch.no_grad():
        own = swin(**pictures, output_attentions=True).attentions
    captured = record(swin, pictures, Selection(row=row))
    assert [captured.blocks(layer) for layer in (0, 1, 2)] == [16, 16, 4]
    last = captured.call(2, block=3)
    assert (last.q.shape, last.key_tokens.names) == ((4, 4, 6), ("0", "1", "2", "3"))
    for head in range(4):
        assert torch.equal(last.weights[head], own[1][row * 4 + 3, head])
        assert certify(last, head).verdict is Verdict.CERTIFIED
    assert {term.name for term in last.terms} == {"bias in the mask"}
    shown = recompute_head(captured, 2, 1, block=3)
    assert (shown.block, shown.blocks) == (3, 4)
    with pytest.raises(InputError, match="no block 4 in layer 2: blocks are 0-3"):
        captured.call(2, block=4)


def test_two_attentions_over_halves_of_the_values_are_two_blocks() -> None:
    config = hf.DiffLlamaConfig(
        vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
        intermediate_size=40, initializer_range=0.4, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.DiffLlamaModel._from_config(config, attn_implementation="eager").eval()
    captured = record(model, ids(), Selection(layers=[1]))
    first, second = captured.calls
    assert (first.call, second.call, first.block, second.block) == (0, 1, 0, 1)
    assert torch.equal(first.weights[3], second.weights[3])
    assert not torch.equal(first.v, second.v)
    assert {certify(call, 3).verdict for call in captured.calls} == {Verdict.CERTIFIED}


def test_a_module_of_several_layers_gives_each_layer_its_own_call(read_once: None) -> None:
    model = sharp("llama")
    model.layers[2].self_attn = model.layers[0].self_attn
    own: list[torch.Tensor] = []
    model.layers[0].self_attn.register_forward_hook(lambda _, args, out: own.append(out[1]))
    inputs = {**ids(), "use_cache": False}  # the library's cache takes the two for one layer
    captured = record(model, inputs)
    assert len(own) == 2 * 2  # once to read, once to try whose rows they are
    assert [(call.layer, call.module) for call in captured.calls] == [
        (0, "layers.0.self_attn"), (1, "layers.1.self_attn"), (2, "layers.0.self_attn"),
    ]  # fmt: skip
    (last,) = record(model, inputs, Selection(layers=[2])).calls
    assert torch.equal(last.weights[4], own[1][0, 4])
    assert not torch.equal(own[1], own[0])


def test_a_module_that_runs_more_often_than_it_has_layers_is_refused() -> None:
    model = sharp("llama")
    model.layers[2].self_attn = model.layers[0].self_attn
    shared = model.layers[0].self_attn
    again = torch.zeros(1, 4, 48), (torch.ones(1, 4, 8), torch.zeros(1, 4, 8)), None
    model.layers[1].register_forward_pre_hook(lambda *_: shared(*again) and None)
    with pytest.raises(InputError, match="runs more often than it has layers"):
        run_watched(model, {**ids(), "use_cache": False}, find_sites(model), lambda call: None)


def test_merged_keys_are_the_decoders_own_and_then_the_encoders() -> None:
    source, target = tokens_of(ids(7)), tokens_of(ids(4, seed=9))
    queries, keys = Sides(source, target).of(Kind.DECODER, 4, 11)
    assert queries is target
    assert keys.ids == target.ids + source.ids
    assert Sides(source, target).of(Kind.DECODER, 4, 10)[1].names == tuple(str(i) for i in range(10))
    assert Sides(source).of(Kind.ENCODER, 5, 5)[0].names == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize("groups", [1, 2])
def test_albert_still_counts_its_layers(groups: int) -> None:
    torch.manual_seed(1)
    config = CONFIGS["albert"]()
    config.num_hidden_layers, config.num_hidden_groups = 4, groups
    model = hf.AlbertModel._from_config(config, attn_implementation="eager").eval()
    assert [call.layer for call in record(model, ids(), Selection(layers=[1, 3])).calls] == [1, 3]


@pytest.mark.parametrize(("kind", "queries"), [("block_sparse", 4), ("original_full", 40)])
def test_blocks_that_leave_tokens_out_say_so(kind: str, queries: int) -> None:
    config = hf.BigBirdConfig(
        vocab_size=97, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=30,
        attention_type=kind, block_size=4, num_random_blocks=1, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(0)
    captured = record(hf.BigBirdModel(config).eval(), {"input_ids": torch.randint(3, 97, (1, 40))})
    told = ("its 4 blocks hold 16 queries of 40 tokens: the others were not seen",)
    expected = told if kind == "block_sparse" else ()
    assert captured.call(1).q.shape[1] == queries
    assert recompute_head(captured, 1, 2).notes == measure_heads(captured).notes == expected
