"""Records of calls and operands: none can be changed, and those with tensors are compared by identity."""

import dataclasses
import importlib
import pkgutil

import pytest

import attnscope.capture

BY_VALUE = {  # numbers, names and tokens
    *(
        "Selection",
        "Sides",
        "Layout",
        "DryCall",
        "Shapes",
        "Zero",
        "Cut",
        "Tap",
        "Rounded",
        "_Shape",
        "Shape",
        "CallStanding",
        "Via",
        "Lent",
        "Held",
    ),
}
KEPT_UP = {  # what becomes of an answer, what is seen of a run or of several: noted as it happens
    *(
        "_Seen",
        "Tally",
        "Experiments",
        "_Expected",
        "ReadBack",
        "Walked",
        "ValueZeroing",
        "Trial",
        "Clean",
        "Stack",
        "Layers",
        "Onward",
    ),
}


def records() -> list[type]:
    """Every dataclass of the arithmetic and of the capture, where it is defined."""
    found = pkgutil.walk_packages(attnscope.capture.__path__, "attnscope.capture.")
    names = [
        "attnscope.sdpa",
        "attnscope.measures.tile",
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
