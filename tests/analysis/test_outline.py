"""What is said of a model without its weights, against what the model with weights hands its kernel."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers as hf
from outlined import ALL, config, grown, inputs, layers_of, outlined, planned
from torch import nn

from attnscope.attention import AttentionCall
from attnscope.capture.dry_run import run_dry
from attnscope.capture.following.takeover import STAND_INS
from attnscope.capture.run import run_watched
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.results import Gap, LayerOutline, Outline, Position, Route
from attnscope.verbs.model import outline as outlining
from attnscope.verbs.model.outline import outline_plan

LENGTH = 11
TRACED = ("bloom", "falcon", "gpt_neo", "deberta-v2")


@pytest.fixture(autouse=True)
def _no_time_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlining, "rate", lambda dtype: 1e9)


def captured(model: nn.Module, length: int = LENGTH) -> list[AttentionCall]:
    calls: list[AttentionCall] = []
    run_watched(model, inputs(model, length), find_sites(model), calls.append)
    return calls


def differences(result: Outline, calls: list[AttentionCall]) -> list[str]:
    """In what the outline and the calls do not agree."""
    told, found = layers_of(result), []
    for call in calls:
        layer = told[call.tower, str(call.kind), call.layer]
        pairs = _pairs(layer, call) | {"blocks": (layer.blocks, sum(_together(call, each) for each in calls))}
        found += [
            f"{call.module} {name}: {one} and {other}" for name, (one, other) in pairs.items() if one != other
        ]
    return found


def _together(call: AttentionCall, other: AttentionCall) -> bool:
    return (call.tower, call.kind, call.layer) == (other.tower, other.kind, other.layer)


def _pairs(layer: LayerOutline, call: AttentionCall) -> dict[str, tuple[Any, Any]]:
    pairs = {
        "heads": (layer.heads, call.heads),
        "key heads": (layer.key_heads, call.key_heads),
        "dim": (layer.dim, call.q.shape[2]),
        "value dim": (layer.value_dim, call.v.shape[2]),
        "softcap": (layer.softcap, call.softcap),
        "sinks": (layer.sinks, call.sinks is not None),
        "keys": (layer.keys, call.k.shape[1]),
        "rotated": (_rotated(layer), _turned(call)),
        "relative": (any(each.scheme in ("relative", "ALiBi") for each in layer.positions), bool(call.terms)),
    }
    if call.route is Route.TAKEOVER:
        pairs |= {"scale": (layer.scale, pytest.approx(call.scale)), "window": (layer.window, call.window)}
    if call.unrotated_k is None:
        del pairs["rotated"]
    return pairs


def _rotated(layer: LayerOutline) -> int | None:
    return sum(each.dims or 0 for each in layer.positions if each.scheme == "rotary")


def _turned(call: AttentionCall) -> int:
    """How many dimensions of the keys their rotation changed."""
    if call.unrotated_k is None:
        return 0
    return int(((call.k - call.unrotated_k).abs().amax((0, 1)) > 1e-6).sum())


@pytest.mark.parametrize("family", ALL)
def test_what_is_told_without_weights_is_what_the_model_with_weights_hands_over(family: str) -> None:
    made = config(family)
    result = outlined(made, length=LENGTH)
    calls = captured(grown(made))
    assert {(call.tower, str(call.kind), call.layer) for call in calls} == layers_of(result).keys()
    assert all(layer.seen for layer in layers_of(result).values()), result.run
    assert differences(result, calls) == []


def test_a_config_that_is_not_the_models_is_found_out() -> None:
    made = config("gemma2")
    calls = captured(grown(made))
    for name, other, told in (
        ("num_key_value_heads", 3, "key heads"),
        ("attn_logit_softcapping", 4.0, "softcap"),
        ("sliding_window", 5, "window"),
        ("query_pre_attn_scalar", 6, "scale"),
        ("head_dim", 10, "dim"),
    ):
        changed = copy.deepcopy(made)
        setattr(changed, name, other)
        assert any(told in each for each in differences(outlined(changed, length=LENGTH), calls)), name


def test_a_layer_that_the_run_does_not_reach_is_said_to_be_told_by_its_module(monkeypatch) -> None:
    from transformers.models.llama import modeling_llama

    def numbers_wanted(self: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
        return hidden * hidden.sum().item()

    monkeypatch.setattr(modeling_llama.LlamaMLP, "forward", numbers_wanted)
    result = outlined(config("llama"), length=LENGTH)
    assert [layer.seen for layer in result.towers[0].layers] == [True, False, False]
    assert "meta" in result.run
    first, second, _ = result.towers[0].layers
    unseen = replace(first, layer=1, module=second.module, seen=False, queries=None, keys=None, blocks=None)
    assert replace(second, scale=first.scale, positions=first.positions) == unseen
    assert second.positions == (replace(first.positions[0], dims=None),)
    assert result.cost is None


def test_layers_without_attention_are_named_by_what_they_have_instead() -> None:
    result = outlined(config("jamba"), length=LENGTH)
    assert result.gaps == (Gap("layers", (0, 2, 3), "JambaMambaMixer"),)
    assert [layer.layer for layer in result.towers[0].layers] == [1, 4]
    assert outlined(config("llama"), length=LENGTH).gaps == ()
    with pytest.raises(InputError, match="no layer 0 in jamba: attention is in layers 1, 4"):
        outlined(config("jamba"), layer=0, length=LENGTH)


def test_positions_are_told_as_the_models_of_each_family_have_them() -> None:
    def first(family: str, tower: int = 0, layer: int = 0) -> tuple[Position, ...]:
        return outlined(config(family), length=LENGTH).towers[tower].layers[layer].positions

    assert first("bert") == (Position("learned", size=64),)
    assert first("bart") == (Position("learned", size=66),)  # two rows more than places
    assert first("whisper") == (Position("sinusoidal", size=20),)
    assert first("whisper", tower=1) == (Position("learned", size=64),)
    assert first("whisper", tower=2) == ()
    assert first("clip", tower=1) == (Position("learned", size=10),)  # nine patches and the class
    assert first("t5") == (Position("relative"),)
    assert first("swin") == (Position("relative"),)
    assert first("deberta-v2") == (Position("relative"),)
    assert first("bloom") == (Position("ALiBi"),)
    assert first("llama") == (Position("rotary", dims=8, base=10000.0),)
    assert first("phi") == (Position("rotary", dims=4, base=10000.0),)
    assert first("gpt_oss") == (Position("rotary", dims=8, base=150000.0, variant="yarn"),)
    assert [first("modernbert", layer=layer)[0].base for layer in (0, 1)] == [160000.0, 10000.0]
    assert [bool(first("cohere2", layer=layer)) for layer in (0, 1, 2)] == [True, False, True]


def test_a_rotation_has_the_frequencies_and_a_layer_the_window_that_the_model_has() -> None:
    for family in ("llama", "phi", "gemma2"):
        made = config(family)
        position = outlined(made, length=11).towers[0].layers[0].positions[0]
        expected = [position.base ** (-2 * i / position.dims) for i in range(position.dims // 2)]
        assert torch.allclose(grown(made).rotary_emb.inv_freq, torch.tensor(expected))
    for family, windows in {"mistral": [4, 4, 4], "gemma2": [4, None, 4], "gpt_neo": [None, 4]}.items():
        told = outlined(config(family), length=11).towers[0].layers
        assert [layer.window for layer in told] == windows


@pytest.mark.parametrize("family", ["Roberta", "IBert"])
def test_a_table_whose_places_begin_behind_padding_reads_fewer_tokens_than_it_has_rows(family: str) -> None:
    made = getattr(hf, f"{family}Config")(
        vocab_size=97, hidden_size=24, num_attention_heads=4, intermediate_size=30, num_hidden_layers=2,
        max_position_embeddings=40, pad_token_id=5,
    )  # fmt: skip
    told = outlined(made)
    assert told.towers[0].layers[0].positions == (Position("learned", size=40),)
    assert (told.towers[0].context, told.length) == (34, 34)


@pytest.mark.parametrize("family", ["llama", "t5", "deepseek_v3", "jamba"])
def test_a_run_without_weights_leaves_the_model_as_it_was(family: str) -> None:
    plan, _ = planned(config(family))
    before = dict(plan.skeleton.named_parameters())
    settings = plan.skeleton.config.to_dict()
    hooks = [
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in plan.skeleton.modules()
    ]
    run = run_dry(plan.skeleton, find_sites(plan.skeleton), LENGTH, STAND_INS)
    assert run.problem == ""
    assert all(parameter.is_meta for parameter in before.values())
    assert list(map(id, plan.skeleton.parameters())) == list(map(id, before.values()))
    assert plan.skeleton.config.to_dict() == settings
    assert hooks == [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in plan.skeleton.modules()]


def test_a_model_without_attention_has_no_towers_and_no_cost() -> None:
    result = outlined(hf.MambaConfig(vocab_size=97, hidden_size=48, num_hidden_layers=2, state_size=4))
    assert (result.towers, result.cost) == ((), None)
    assert result.gaps == (Gap("layers", (0, 1), "MambaBlock"),)
    assert result.parameters > 97 * 48


def test_a_table_of_places_that_nothing_reads_is_not_told() -> None:
    made = config("bert")
    plan, listing = planned(made)
    plan.skeleton.encoder.position_spare = nn.Embedding(5, 6, device="meta")
    assert outline_plan(plan, listing, length=LENGTH).towers[0].layers[0].positions == (
        Position("learned", size=64),
    )


def test_the_length_is_what_is_asked_for_or_what_the_model_reads(monkeypatch) -> None:
    assert outlined(config("bert")).length == 64
    assert outlined(config("t5")).length == 512
    assert outlined(config("llama"), length=64).towers[0].layers[0].keys == 64
