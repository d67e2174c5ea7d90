"""Runs of the proof by cause in one batch tell the same as runs one by one, or they are not believed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from bypassing import bypassing
from families import ids, sharp, twin
from torch import Size, Tensor, nn

from attnscope.capture.cause import rerun
from attnscope.capture.cause.entries import Unlike, own_parts, parts_of, side_by_side
from attnscope.capture.cause.reaching import Reaches, reaches_of
from attnscope.model.anatomy.sites import find_sites
from attnscope.vocabulary import Effect

FAMILIES = ("bert", "gpt2", "llama", "gemma2", "modernbert")
Changed = Callable[[Tensor], Tensor]


def found(model: nn.Module, inputs: dict[str, Any] | None = None) -> Reaches:
    return reaches_of(model, ids() if inputs is None else inputs, find_sites(model), None)


def batches_of(model: nn.Module, module: nn.Module) -> list[int]:
    """How many entries each batch has that goes through the module, as the model's reach is asked for."""
    seen: list[int] = []
    handle = module.register_forward_hook(lambda _module, _given, result: seen.append(len(result[0])))
    found(model)
    handle.remove()
    return seen


def in_first_layer(model: nn.Module, change: Changed) -> Any:
    attention = model.encoder.layer[0].attention.self
    return attention.register_forward_hook(lambda _module, _given, result: (change(result[0]), *result[1:]))


@pytest.mark.parametrize("family", FAMILIES)
def test_they_tell_what_runs_one_by_one_tell_and_in_as_many(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sharp(family)
    together = found(model).found
    monkeypatch.setattr(rerun, "AT_ONCE", 0)
    assert together == found(model).found
    assert {reach.effect for heads in together.values() for reach in heads.values()} == {Effect.OWN}


@pytest.mark.parametrize("name", ["bloom", "xlnet", "mpt"])
def test_so_they_do_of_models_whose_operations_are_followed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = bypassing(name)
    together = found(model, inputs).found
    monkeypatch.setattr(rerun, "AT_ONCE", 0)
    alone = found(model, inputs).found
    assert {place: [each.effect for each in heads.values()] for place, heads in together.items()} == {
        place: [each.effect for each in heads.values()] for place, heads in alone.items()
    }


def test_two_passes_are_enough_where_every_head_acts() -> None:
    model = twin(sharp("bert"), "eager")
    assert [entry > 1 for entry in batches_of(model, model.encoder.layer[0].attention.self)] == [False, True]


def test_a_model_that_uses_its_answers_in_a_batch_alone_is_not_believed() -> None:
    model = twin(sharp("bert"), "eager")
    handle = in_first_layer(model, lambda result: result if len(result) > 1 else torch.zeros_like(result))
    told = found(model).found["encoder.layer.0.attention.self", 0]
    handle.remove()
    assert {reach.effect for reach in told.values()} == {Effect.NONE}


def test_neither_is_one_that_hands_answers_from_one_entry_to_another() -> None:
    model = twin(sharp("bert"), "eager")
    handle = in_first_layer(model, lambda result: result + 0.01 * result.mean(0, keepdim=True))
    effects = {reach.effect for heads in found(model).found.values() for reach in heads.values()}
    ran = batches_of(model, model.encoder.layer[1].attention.self)
    handle.remove()
    assert effects == {Effect.OWN}  # of one text: which was asked run by run
    assert sum(entry == 1 for entry in ran) == 5 + 1  # and whose queries ask


def test_the_same_answers_that_come_out_otherwise_at_another_entry_are_noticed() -> None:
    model = twin(sharp("bert"), "eager")
    handle = in_first_layer(
        model, lambda result: result * (1 + 3e-6 * (torch.arange(len(result)) == 6)[:, None, None])
    )
    ran = batches_of(model, model.encoder.layer[1].attention.self)
    handle.remove()
    assert max(ran) == 7
    assert sum(entry == 1 for entry in ran) > 2


def test_half_precision_and_long_texts_are_asked_run_by_run(monkeypatch: pytest.MonkeyPatch) -> None:
    model = twin(sharp("bert"), "eager")
    module = model.encoder.layer[0].attention.self
    monkeypatch.setattr(rerun, "AT_ONCE", 7 * ids()["input_ids"].numel() - 1)
    assert {*batches_of(model, module)} == {1}
    monkeypatch.undo()
    assert {*batches_of(model, module)} == {1, 7}
    assert {*batches_of(model.bfloat16(), module)} == {1}


def test_each_run_has_its_part_of_a_tensor_wherever_the_batch_is() -> None:
    whole = torch.arange(3 * 2 * 5).view(2, 15)
    parts = parts_of(whole, 3, Size([2, 5]))
    assert parts.axis == 1
    assert [each.tolist() for each in parts.each] == [whole[:, i : i + 5].tolist() for i in (0, 5, 10)]
    new = parts.joined([None, torch.zeros(2, 5, dtype=torch.long), None])
    assert new is not None
    assert new.tolist() == [[*row[:5], *5 * [0], *row[10:]] for row in whole.tolist()]
    assert parts.joined([None, None, None]) is None
    with pytest.raises(ValueError, match="zip"):
        parts.joined([None, whole[:, :5]])


def test_what_all_have_in_common_is_nobody_s_own() -> None:
    shared = torch.ones(2, 5)
    parts = parts_of(shared, 3, shared.shape)
    assert all(each is shared for each in parts.each)
    assert parts.joined([shared, shared + 1, None]) is None
    with pytest.raises(Unlike):
        own_parts(shared, 2, shared.shape)
    alone = own_parts(shared, 1, None)
    assert alone.joined([shared + 1]) is not None


@pytest.mark.parametrize("like", [None, Size([5]), Size([2, 4]), Size([1, 1]), Size([2, 15, 1])])
def test_a_tensor_that_is_not_so_many_side_by_side_is_not_divided(like: Size | None) -> None:
    with pytest.raises(Unlike):
        parts_of(torch.zeros(2, 15), 3, like)


def test_inputs_are_laid_side_by_side_as_runs_come() -> None:
    made = side_by_side({"input_ids": torch.tensor([[1, 2], [3, 4]]), "use_cache": False, "past": None}, 2)
    assert made["input_ids"].tolist() == [[1, 2], [3, 4], [1, 2], [3, 4]]
    assert (made["use_cache"], made["past"]) == (False, None)


@pytest.mark.parametrize(
    "beside", [torch.zeros(1, 3, 8), torch.zeros(2, 3), [torch.zeros(1, 3)], (torch.zeros(1, 2), 1)]
)
def test_inputs_that_cannot_be_repeated_are_not(beside: Any) -> None:
    with pytest.raises(Unlike):
        side_by_side({**ids(), "beside": beside}, 2)
