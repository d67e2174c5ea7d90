"""Float64 is asked for in attnscope/reference.py alone: not every device has it.

Programs of their own are none of the house: those that train the bundled models, and those that are written
into files and run there on the processor.
"""

import ast
from pathlib import Path

import pytest
import torch

import attnscope
from attnscope.reference import EXACT, brought, exact, place

HOUSE = Path(attnscope.__file__).parent
DOOR = HOUSE / "reference.py"
APART = {HOUSE / "demo" / "train", HOUSE / "render" / "script" / "again"}
WIDE = ("float64", "double", "complex128", "cdouble")
TAKES_A_TYPE = ("to", "type", "type_as")


def ways_around(source: str) -> list[str]:
    """What in a module would make a tensor float64 wherever that happens to lie."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
            if node.attr in WIDE:
                found.append(f"line {node.lineno}: torch.{node.attr}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "double" and not node.args:
                found.append(f"line {node.lineno}: .double()")
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if node.func.attr in TAKES_A_TYPE and any(
                isinstance(each, ast.Name) and each.id == "EXACT" for each in given
            ):
                found.append(f"line {node.lineno}: .{node.func.attr}(EXACT)")
    return found


def test_nothing_else_in_the_house_asks_torch_for_float64():
    modules = [path for path in HOUSE.rglob("*.py") if path != DOOR and not APART & {*path.parents}]
    assert len(modules) > 100
    around = {str(path.relative_to(HOUSE)): ways_around(path.read_text("utf-8")) for path in modules}
    assert not {name: found for name, found in around.items() if found}


@pytest.mark.parametrize(
    "written",
    [
        "x.double()",
        "torch.zeros(3, dtype=torch.float64)",
        "x.to(torch.double)",
        "x.to(EXACT)",
        "x.to(device, dtype=EXACT)",
    ],
)
def test_a_way_around_the_door_is_found(written):
    assert ways_around(written)


def test_what_numpy_holds_in_float64_is_no_tensor():
    assert not ways_around("np.zeros(3, np.float64); exact(x); torch.zeros(3, dtype=EXACT)")


def test_half_precision_becomes_float64_without_another_rounding():
    half = torch.tensor([[1 / 3, -2.5, 6e-5]], dtype=torch.bfloat16)
    assert exact(half).dtype == EXACT == torch.float64
    assert exact(half).tolist() == half.tolist()


def test_what_is_exact_already_is_handed_on_as_it_is():
    numbers = torch.zeros(2, 3, dtype=torch.float64)
    assert exact(numbers) is numbers


def test_a_gradient_goes_through():
    x = torch.ones(3, requires_grad=True)
    exact(x).sum().backward()
    assert x.grad is not None


def test_a_device_without_float64_is_left_for_the_processor(monkeypatch):
    """The same door on a device that refuses; the emulated accelerator's tests go through it for real."""

    def refuses(*_size, dtype, device):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")

    monkeypatch.setattr(torch, "empty", refuses)
    assert place(torch.device("mps")) == torch.device("cpu")
    assert place(torch.device("meta")) == torch.device("meta")


def test_what_is_brought_keeps_its_own_type_and_no_gradient():
    there = brought(torch.ones(2, dtype=torch.float16, requires_grad=True))
    assert (there.dtype, there.requires_grad) == (torch.float16, False)
