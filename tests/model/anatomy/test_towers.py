"""Towers: where a model has attention, how one is chosen, and what looks like attention from its code."""

import pytest
import torch
import transformers as hf
from torch import Tensor, nn
from transformers.models.bert.modeling_bert import BertSelfAttention
from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Layer, DisentangledSelfAttention
from transformers.models.mixtral.modeling_mixtral import MixtralTopKRouter
from transformers.models.squeezebert.modeling_squeezebert import SqueezeBertSelfAttention
from transformers.models.wavlm.modeling_wavlm import WavLMAttention
from transformers.models.xlnet.modeling_xlnet import XLNetLMHeadModel

from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites, looks_traceable
from attnscope.model.anatomy.towers import choose_tower, find_towers, tower_names
from attnscope.results import Kind

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


def test_the_blocks_of_a_models_stages_are_counted_through_and_keep_their_own_heads() -> None:
    (only,) = find_towers(find_sites(on_meta(swin)))
    assert only.layers == (0, 1, 2)
    assert only.heads == {0: 2, 1: 2, 2: 4}


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


def helper(q: Tensor, k: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT, dim=-1)


scripted = torch.jit.script(helper)


class WithHelper(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return helper(q, k) @ v


class WithScriptedHelper(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scripted(q, k) @ v


class Inherits(WithHelper):
    pass


class ScoresOnly(nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return helper(q, k)


class LogProbabilities(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.log_softmax(q @ k.mT, dim=-1) @ v


@pytest.mark.parametrize(
    "attention",
    [
        DisentangledSelfAttention,
        WavLMAttention,  # one call of torch's multi-head attention
        SqueezeBertSelfAttention,  # its products stand in a module of their own
        nn.MultiheadAttention,
        WithHelper,
        WithScriptedHelper,
        Inherits,
    ],
)
def test_attention_past_the_interface_is_seen(attention):
    assert looks_traceable(attention)


@pytest.mark.parametrize(
    "other",
    [
        BertSelfAttention,  # asks the interface
        DebertaV2Layer,
        XLNetLMHeadModel,
        MixtralTopKRouter,
        ScoresOnly,
        LogProbabilities,
    ],
)
def test_what_is_none_or_asks_the_interface_is_not(other):
    assert not looks_traceable(other)
