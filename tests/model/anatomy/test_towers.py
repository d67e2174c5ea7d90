"""Towers: where a model has attention, how its parts are called, and how one of them is chosen."""

import pytest
import torch
import transformers as hf
from families import CONFIGS, HEADS, LAYERS, sharp
from torch import nn

from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.model.anatomy.towers import choose_tower, find_towers, reading_text, tower_names
from attnscope.results import Kind, Route

SMALL = {"hidden_size": 24, "intermediate_size": 30, "num_hidden_layers": 2, "num_attention_heads": 4}


def on_meta(make) -> nn.Module:
    with torch.device("meta"):
        return make()


def clip() -> nn.Module:
    text = {**SMALL, "vocab_size": 97, "num_hidden_layers": 3}
    vision = {**SMALL, "image_size": 8, "patch_size": 4, "num_attention_heads": 6}
    return hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=vision))


def swin() -> nn.Module:
    return hf.SwinModel(
        hf.SwinConfig(
            image_size=16, patch_size=2, embed_dim=12, depths=[2, 1], num_heads=[2, 4], window_size=2
        )
    )


def test_the_two_halves_of_clip_are_told_apart_by_the_first_word_that_differs() -> None:
    text, vision = find_towers(find_sites(on_meta(clip)))
    assert (text.name, vision.name) == ("text_model", "vision_model")
    assert (text.layers, vision.layers) == ((0, 1, 2), (0, 1))
    assert (set(text.heads.values()), set(vision.heads.values())) == ({4}, {6})
    assert text.pattern == "text_model.encoder.layers.*.self_attn"
    assert text.called == "text_model (encoder)"


def test_a_model_with_one_tower_needs_no_name_for_it() -> None:
    (only,) = find_towers(find_sites(sharp("llama")))
    assert (only.name, only.called, only.kind, only.route) == ("", "decoder", Kind.DECODER, Route.TAKEOVER)
    assert only.heads == dict.fromkeys(range(LAYERS), HEADS)


def test_the_three_kinds_of_an_encoder_decoder_are_called_by_their_kind() -> None:
    found = find_towers(find_sites(on_meta(lambda: hf.T5Model(CONFIGS["t5"]()))))
    assert [tower.called for tower in found] == ["encoder", "decoder", "cross"]
    assert reading_text(found).kind is Kind.CROSS


def test_the_blocks_of_a_models_stages_are_counted_through_and_keep_their_own_heads() -> None:
    (only,) = find_towers(find_sites(on_meta(swin)))
    assert only.layers == (0, 1, 2)
    assert only.heads == {0: 2, 1: 2, 2: 4}


def test_a_text_is_looked_at_in_a_tower_that_reads_text() -> None:
    found = find_towers(find_sites(on_meta(clip)))
    assert reading_text(found).name == "text_model"
    assert reading_text(tuple(reversed(found))).name == "text_model"


def test_a_tower_is_chosen_by_name_or_by_a_part_of_its_path() -> None:
    found = find_towers(find_sites(on_meta(clip)))
    assert choose_tower(found, None, "vision_model", "clip").name == "vision_model"
    assert choose_tower(found, Kind.ENCODER, "vision", "clip").name == "vision_model"
    with pytest.raises(
        InputError, match=r"^clip has no tower 'audio': it has text_model \(encoder\), vision"
    ):
        choose_tower(found, None, "audio", "clip")
    with pytest.raises(InputError, match=r"^clip has several towers of attention: choose one of text_model"):
        choose_tower(found, None, None, "clip")
    with pytest.raises(InputError, match=r"^clip has no cross attention: it has encoder$"):
        choose_tower(found, Kind.CROSS, None, "clip")
    with pytest.raises(InputError, match=r"^mamba has no attention that can be read$"):
        choose_tower((), None, None, "mamba")


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["layers.*.self_attn"], [""]),
        (["a.layers.*.attn", "b.layers.*.attn"], ["a", "b"]),
        (["e.*.attention.self", "e.*.crossattention.self"], ["attention", "crossattention"]),
        (["a.x.*.s", "a.y.*.s", "b.x.*.s", "b.y.*.s"], ["a.x", "a.y", "b.x", "b.y"]),
        (["a.*.s", "a.*.s.t"], ["a.*.s", "t"]),
    ],
)
def test_a_tower_has_the_shortest_name_that_is_its_own(patterns: list[str], names: list[str]) -> None:
    found = tower_names(patterns)
    assert [found[pattern] for pattern in patterns] == names
    assert len(set(names)) == len(names)


def test_a_module_that_several_layers_share_serves_each_of_them_in_turn() -> None:
    model = sharp("llama")
    model.layers[2].self_attn = model.layers[0].self_attn
    shared, other = find_sites(model)
    assert (shared.layers, other.layers) == ((0, 2), (1,))
    assert find_towers(find_sites(model))[0].layers == (0, 1, 2)
