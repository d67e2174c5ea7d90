"""Records cannot be changed and those with tensors are equal to themselves alone; axes that do not fit."""

import dataclasses
import importlib
import pkgutil

import numpy as np
import pytest
import torch
from families import ids, sharp
from jaxtyping import TypeCheckError
from typed_axes import EVERY_TYPE

import attnscope.capture
from attnscope.analysis.heads.overview import measure_heads
from attnscope.arithmetic import for_each_query_head
from attnscope.capture import Selection, record
from attnscope.capture.following.takeover import weights_by_identity
from attnscope.measures import Tile
from attnscope.model.anatomy.sites import layers_of
from attnscope.printable import printable
from attnscope.results import HeadScores, MeasureDescription
from attnscope.verify import certify

BY_VALUE = {  # numbers, names and tokens
    "Selection", "Sides", "Layout", "DryCall", "Shapes", "Zero", "Cut", "Tap", "Rounded", "_Shape", "Shape",
    "CallStanding", "Via", "Lent", "Held",
}  # fmt: skip
KEPT_UP = {  # what becomes of an answer, what is seen of a run or of several: noted as it happens
    "_Seen", "Tally", "Experiments", "_Expected", "ReadBack", "Walked", "ValueZeroing", "Trial", "Clean",
    "Stack", "Layers", "Onward",
}  # fmt: skip


def records() -> list[type]:
    """Every dataclass of the arithmetic and of the capture, where it is defined."""
    found = pkgutil.walk_packages(attnscope.capture.__path__, "attnscope.capture.")
    names = [
        "attnscope.arithmetic",
        "attnscope.measures.measure",
        "attnscope.attention",
        *(each.name for each in found),
    ]
    modules = [importlib.import_module(name) for name in names]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == module.__name__
    ]


@pytest.mark.parametrize("record", records(), ids=lambda record: record.__name__)
def test_a_record_cannot_be_changed_once_it_is_made(record):
    made, field = object.__new__(record), next((each.name for each in dataclasses.fields(record)), "any")
    if record.__name__ in KEPT_UP:
        setattr(made, field, None)
        return
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, field, None)


@pytest.mark.parametrize("record", records(), ids=lambda record: record.__name__)
def test_a_record_that_may_hold_tensors_is_equal_to_itself_alone(record):
    assert (record.__eq__ is object.__eq__) == (record.__name__ not in BY_VALUE)


def test_there_are_records_of_each_part():
    assert {"Operands", "Tile", "AttentionCall", "KernelInputs", "Scores", "DryRun"} | BY_VALUE <= {
        record.__name__ for record in records()
    }


def test_a_result_a_tile_a_call_and_an_array_whose_axes_do_not_fit_are_refused():
    told = MeasureDescription(name="entropy", unit="nats", meaning="")
    HeadScores(told, (0, 1), (0, 1, 2), np.zeros((2, 3)))
    with pytest.raises(TypeCheckError):
        HeadScores(told, (0, 1), (0, 1, 2), np.zeros((2, 3, 1)))
    Tile(torch.zeros(2, 3), torch.arange(2), torch.arange(3))
    with pytest.raises(TypeCheckError):
        Tile(torch.zeros(2, 3), torch.arange(3), torch.arange(3))
    (call,) = record(sharp("llama"), ids(), Selection(layers=[0])).calls
    fields = {name: getattr(call, name) for name in call.__dataclass_fields__}
    type(call)(**fields)
    with pytest.raises(TypeCheckError):
        type(call)(**{**fields, "k": call.k[..., :-1]})
    for _ in range(3):
        for_each_query_head(torch.zeros(1, 2, 3), 4)
    with pytest.raises(TypeCheckError):
        for_each_query_head(torch.zeros(2, 3), 2)


@pytest.mark.skipif(not EVERY_TYPE, reason="types without axes are enforced with ATTNSCOPE_TYPES=all")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: certify("a call", 0),
        lambda: weights_by_identity("inputs", 0),
        lambda: measure_heads("captured"),
        lambda: layers_of((), "decoder"),
        lambda: printable(3),
    ],
    ids=["verify", "capture", "analysis", "model", "tokens"],
)
def test_types_without_axes_are_checked_where_they_are_asked_for(wrong):
    with pytest.raises(TypeCheckError):
        wrong()
