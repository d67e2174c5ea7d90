"""Matrices of heads and the way from head to head: found, and refused where they are not proved."""

from collections.abc import Callable

import pytest
import torch
from families import HEADS, HIDDEN, KEY_HEADS, ids, sharp
from torch import Tensor, nn
from transformers.models.llama import modeling_llama

from attnscope.capture import Labels, Selection
from attnscope.capture.circuits.paths import Circuits, read_circuits
from attnscope.capture.circuits.skeleton import gain_of

WHY = "what its queries and keys pass after their matrix is more than rotary positions"


def circuits_of(model: nn.Module) -> Circuits:
    return read_circuits(model, ids(), Selection(), Labels())


def test_each_head_has_its_rows_of_the_module_that_makes_it_before_rotary_positions() -> None:
    model = sharp("llama")
    for layer in circuits_of(model).layers:
        own = model.layers[layer.layer].self_attn
        for name, heads in (("query", HEADS), ("key", KEY_HEADS), ("value", KEY_HEADS)):
            found, part = getattr(layer, name), getattr(own, f"{name[0]}_proj")
            assert found.part is part
            assert torch.equal(found.matrix, part.weight.T.reshape(HIDDEN, heads, -1).transpose(0, 1))
            assert found.turned is (name != "value")
        assert layer.output.part is own.o_proj


def exchanged(_part: nn.Module, _given: object, made: Tensor) -> Tensor:
    return made.roll(made.shape[-1] // HEADS, -1)


def normed(_part: nn.Module, _given: object, made: Tensor) -> Tensor:
    return made / made.norm(dim=-1, keepdim=True)


@pytest.mark.parametrize("change", [exchanged, normed])
@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_where_more_than_the_matrix_makes_them_none_is_told(
    change: Callable[[nn.Module, object, Tensor], Tensor], name: str
) -> None:
    model = sharp("bert")
    getattr(model.encoder.layer[1].attention.self, name).register_forward_hook(change)
    first, second, _ = circuits_of(model).layers
    assert getattr(first, name) is not None
    assert getattr(second, name) is None
    assert second.reasons[name].startswith("no matrix alone makes its ")


@pytest.mark.parametrize("keeps", ["lengths", "nothing"])
def test_a_head_that_is_turned_otherwise_than_the_others_is_no_rotary_position(
    monkeypatch: pytest.MonkeyPatch, keeps: str
) -> None:
    own = modeling_llama.apply_rotary_pos_emb

    def turned(queries: Tensor, keys: Tensor, *rest: object) -> tuple[Tensor, Tensor]:
        queries, keys = own(queries, keys, *rest)
        queries = queries.clone()
        other = queries[:, 2, 1:].flip(-1) * (1.0 if keeps == "lengths" else 1.1)
        queries[:, 2, 1:] = other  # the first token stays as it is
        return queries, keys

    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", turned)
    layers = circuits_of(sharp("llama")).layers
    assert all(layer.query is None and layer.key is None for layer in layers)
    assert all(layer.value is not None for layer in layers)
    assert {layer.reasons["query"] for layer in layers} == {WHY}


def bent(_layer: nn.Module, _given: object, made: Tensor) -> Tensor:
    return made.tanh()


def mixed(_layer: nn.Module, _given: object, made: Tensor) -> Tensor:
    return made + made.roll(1, 1)


def two_ways(_layer: nn.Module, _given: object, made: Tensor) -> Tensor:
    return made + made.flip(-1)


@pytest.mark.parametrize("change", [bent, mixed, two_ways])
def test_where_more_than_residuals_and_norms_lie_between_layers_there_is_no_way(
    change: Callable[[nn.Module, object, Tensor], Tensor],
) -> None:
    model = sharp("llama")
    model.layers[0].register_forward_hook(change)
    paths = circuits_of(model).paths
    assert {place[:2] for place in paths.way} == {(1, 2)}
    assert {place[:2] for place in paths.reasons} == {(0, 1), (0, 2)}
    assert set(paths.reasons.values()) == {
        "what lies on the way is more than residuals and norms, or more than one way"
    }


def test_norms_that_stand_on_the_stream_and_those_that_only_a_layer_reads_are_told_apart() -> None:
    before, after = circuits_of(sharp("gpt2")).paths, circuits_of(sharp("bert")).paths
    assert all(gain is not None and gain.centred for gain in before.reader.values())
    assert {len(way) for way in before.way.values()} == {0}
    assert set(after.reader.values()) == {None}
    assert [len(after.way[0, late, "key"]) for late in (1, 2)] == [2, 4]


def test_the_model_is_left_as_it_was() -> None:
    model, own = sharp("gpt2"), torch.random.get_rng_state()
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    before = model(**ids()).last_hidden_state
    circuits_of(model)
    assert torch.equal(model(**ids()).last_hidden_state, before)
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
    assert not any("forward" in part.__dict__ or part._forward_hooks for part in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.random.get_rng_state(), own)


class Scaled(nn.Module):
    """A norm by the root mean square; `plus` is added to its weight."""

    def __init__(self, plus: float, power: float = 1.0) -> None:
        super().__init__()
        self.weight, self.plus, self.power = nn.Parameter(torch.randn(HIDDEN)), plus, power

    def forward(self, x: Tensor) -> Tensor:
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return (x * (self.plus + self.weight)).sign() * (x * (self.plus + self.weight)).abs() ** self.power


def test_a_norm_is_told_by_what_it_makes() -> None:
    torch.manual_seed(0)
    x, layer = torch.randn(2, 9, HIDDEN) + 0.5, nn.LayerNorm(HIDDEN)
    layer.weight.data.normal_()
    layer.bias.data.normal_()
    cases = {
        "layer": (layer, True, layer.weight),
        "plain": (nn.LayerNorm(HIDDEN, elementwise_affine=False), True, torch.ones(HIDDEN)),
        "root": (norm := Scaled(0.0), False, norm.weight),
        "one more": (norm := Scaled(1.0), False, 1 + norm.weight),
    }
    for name, (part, centred, weight) in cases.items():
        found = gain_of(part, x, part(x))
        assert found is not None, name
        assert (found.centred, found.scales, found.offset) == (centred, True, name == "layer")
        assert torch.allclose(found.weight, weight.detach().double())
    for part in (nn.Dropout().eval(), nn.GELU(), Scaled(0.0, power=1.1)):
        assert gain_of(part, x, part(x)) is None
    other = nn.LayerNorm(HIDDEN)
    other.weight.data.normal_()
    assert gain_of(other, x, layer(x)) is None  # the weights of another one
