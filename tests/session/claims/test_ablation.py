"""`reading.ablate` as a notebook uses it: the same as the command, and results that show themselves."""

from pathlib import Path

import pytest
import torch
from families import sharp

import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Ablation


def test_the_library_asks_what_the_command_asks(reading: at.Reading) -> None:
    result = reading.ablate()
    assert len(result.heads) == 48
    assert result.group is None
    one = reading.ablate(3, 11)
    (same,) = [each for each in result.heads if (each.layer, each.head) == (3, 11)]
    assert one.heads[0].change == pytest.approx(same.change, abs=1e-4)
    assert reading.ablate(heads="L3H7,L2H4").group.heads == ((3, 7), (2, 4))
    assert all(each in " ".join(str(result).split()) for each in ("L3 H7", "“box”", "8.3 %", "3.2 %"))
    assert "each taken away alone; output replaced by zeros" in one.text(width=120)
    frame = result.to_pandas()
    assert list(frame["change"]) == [each.change for each in result.heads]
    assert frame.attrs["verdict"] == "certified"


def test_an_encoders_head_is_taken_away_while_the_decoder_reads_all() -> None:
    reading = at.load("demo-translate").read("The door opened.", target="la porte s'est ouverte.")
    result = reading.ablate(3, kind="encoder")
    assert result.kind == "encoder"
    assert result.answer.text == "la porte s'est ouverte."
    assert result.query_tokens.sentence == "The door opened."
    crossed = reading.ablate(3, 11, kind="cross", link="0->door")
    assert crossed.link is not None
    assert crossed.key_tokens.names[crossed.link[1]] == "door"


def test_a_model_in_memory_is_left_as_it_was(model: at.Model) -> None:
    module = model.module
    before = {name: value.clone() for name, value in module.state_dict().items()}
    hooks = [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in module.modules()]
    model.read("The [MASK] opened.").ablate(rank=True, top=3)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert hooks == [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in module.modules()]
    assert not any("forward" in vars(each) for each in module.modules())
    assert all(parameter.grad is None for parameter in module.parameters())


def test_a_model_without_a_head_is_measured_by_the_vector_that_it_makes() -> None:
    module = sharp("bert")
    reading = at.wrap(module).read(ids=[3, 4, 5, 9, 12])
    result = reading.ablate(1, "2,4")
    ids = torch.tensor([[3, 4, 5, 9, 12]])

    def vector(heads: tuple[int, ...]) -> torch.Tensor:
        def without(_: object, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            new = given[0].clone().unflatten(-1, (6, 8))
            new[:, :, list(heads)] = 0
            return (new.flatten(-2), *given[1:])

        output = module.encoder.layer[1].attention.output.dense.register_forward_pre_hook(without)
        with torch.no_grad():
            made = module(input_ids=ids).last_hidden_state[0].double().mean(0)
        output.remove()
        return made

    for one in result.heads:
        expected = torch.cosine_similarity(vector(()), vector((one.head,)), dim=0)
        assert one.after == pytest.approx(float(expected), abs=1e-5)
        assert one.before == 1
    assert result.group is not None
    both = torch.cosine_similarity(vector(()), vector((2, 4)), dim=0)
    assert result.group.effect.after == pytest.approx(float(both), abs=1e-5)
    assert both < 0.999, "a turn that could be missed"
    assert (result.answer.asks, result.measured, result.unit) == ("vector", "cosine to itself", "of cosine")
    with pytest.raises(InputError, match="--against is a second text: what is read here is none"):
        reading.ablate(against="other words")


def test_what_was_put_in_the_place_of_heads_stands_in_the_file(reading: at.Reading, tmp_path: Path) -> None:
    result = reading.ablate(2, "3,5", replacement="mean", controls=5, seed=4)
    again = at.open(result.save(tmp_path / "ablation.npz"))
    assert isinstance(again, Ablation)
    (controls,) = again.mean_over
    assert controls.input == "input_ids"
    assert controls.ids.shape == (5, len(result.tokens))
    assert all(sorted(ids) == sorted(result.tokens.ids) for ids in controls.ids.tolist())
    assert again.modules["2"] == "bert.encoder.layer.2.attention.self"
    assert again.group is not None
    assert len(again.group.drawn) == again.group.controls
    assert all(len(set(heads)) == 2 and {layer for layer, _ in heads} == {2} for heads in again.group.drawn)
    assert again.provenance.inputs["input_ids"] == result.tokens.ids
    assert reading.ablate(2, 3).mean_over == ()
