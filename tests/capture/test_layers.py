"""Which layer is which: groups that share a module, hybrids, caches, layers that attend several times."""

import pytest
import torch
import transformers as hf
from families import CONFIGS, TOKENS, ids, sharp

from attnscope.analysis.heads.head import recompute_head
from attnscope.analysis.heads.overview import measure_heads
from attnscope.capture import Selection, record
from attnscope.capture.following.describe import Sides, tokens_of
from attnscope.capture.run import run_watched
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


def test_a_hybrid_has_attention_in_the_layers_where_it_stands() -> None:
    model = sharp("llama")
    model.layers[1].self_attn = torch.nn.Identity()
    assert numbered(model, Kind.DECODER) == (0, 2)
    with pytest.raises(InputError, match="no layer 1: the model has attention in layers 0, 2"):
        record(model, ids(), Selection(layers=[1]))


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


def test_neither_patches_nor_keys_are_called_after_a_text_that_has_as_many_tokens() -> None:
    queries, keys = Sides(None, tokens_of(ids(3))).of(Kind.CROSS, 3, 3)
    assert (queries.ids, keys.names) == (tokens_of(ids(3)).ids, ("0", "1", "2"))
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 30}
    text = {**sizes, "num_attention_heads": 4, "vocab_size": 97, "max_position_embeddings": 16}
    vision = {**sizes, "num_attention_heads": 3, "image_size": 32, "patch_size": 16}
    model = hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)).eval()
    inputs = {"input_ids": torch.tensor([[7, 5, 9, 11, 96]]), "pixel_values": torch.randn(1, 3, 32, 32)}
    (words,) = record(model, inputs, Selection(layers=[0], tower="text_model")).calls
    (patches,) = record(model, inputs, Selection(layers=[0], tower="vision_model")).calls
    assert words.query_tokens.ids == words.key_tokens.ids == (7, 5, 9, 11, 96)
    assert patches.query_tokens.names == patches.key_tokens.names == ("0", "1", "2", "3", "4")
