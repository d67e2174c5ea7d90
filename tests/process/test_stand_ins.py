"""Stand-ins for what reading attention never uses: loaded when it is used, and then it is the real thing."""

import builtins
import importlib
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from attnscope.process import startup
from attnscope.process.startup import UNNEEDED, StandIn

HEAVY = """
import sys
sys.heavy_runs = getattr(sys, "heavy_runs", 0) + 1
class Kind:
    number = 3
    def __init__(self, size=0):
        self.size = size
def double(x):
    return 2 * x
"""
USER = """
from heavy import Kind, double
three = Kind(3)
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A module that is imported while a model is loaded, and for which the names of `heavy` are unneeded."""
    (tmp_path / "heavy.py").write_text(HEAVY)
    (tmp_path / "using.py").write_text(USER)
    (tmp_path / "another.py").write_text("from heavy import Kind\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(startup, "_hastened", True)
    monkeypatch.setenv(startup.COLLECT, "1")
    monkeypatch.delenv(startup.EAGER_IMPORTS, raising=False)
    monkeypatch.setattr(sys, "heavy_runs", 0, raising=False)
    names = {"Kind": startup._made_when_used, "double": None}
    monkeypatch.setattr(startup, "UNNEEDED", {("using", "heavy"): names})
    with startup.lean_loading():
        yield importlib.import_module("using")
    for name in ("using", "heavy", "another"):
        sys.modules.pop(name, None)


def test_an_import_of_unneeded_names_loads_nothing(user: ModuleType):
    assert type(user.Kind) is type(user.double) is type(user.three) is StandIn
    assert "heavy" not in sys.modules
    assert not isinstance(3, user.Kind)
    assert not isinstance("x", (int, user.Kind))
    assert sys.heavy_runs == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda user: user.Kind.number == 3,
        lambda user: user.double(4) == 8,
        lambda user: user.three.size == 3,
        lambda user: not issubclass(int, user.Kind),
        lambda user: type("Sub", user.Kind.__mro_entries__(()), {})(5).size == 5,
        lambda user: isinstance(user.three._real(), (user.Kind | None)),
        lambda user: isinstance(user.three._real(), (None | user.Kind)),
        lambda user: {user.Kind: 1}[user.Kind._real()] == 1,
    ],
)
def test_whatever_is_done_with_a_stand_in_is_done_with_the_real_thing(user: ModuleType, use):
    assert use(user)
    assert use(user)
    assert sys.heavy_runs == 1
    assert isinstance(sys.modules["heavy"].Kind(2), user.Kind)


def test_another_importer_gets_the_real_thing(user: ModuleType):
    assert importlib.import_module("another").Kind is sys.modules["heavy"].Kind
    exec("import heavy; heavy.double(2)", {"__name__": "using"})
    exec("from heavy import double\nassert double(2) == 4", {"__name__": "using"})
    assert sys.heavy_runs == 1


@pytest.mark.parametrize("hastened", [True, False])
def test_the_import_statement_is_pythons_own_outside_and_wherever_attnscope_is_a_library(
    hastened: bool, monkeypatch: pytest.MonkeyPatch
):
    import torch

    before = (builtins.__import__, vars(torch).get("_dynamo"))
    monkeypatch.setattr(startup, "_hastened", hastened)
    monkeypatch.setenv(startup.COLLECT, "1")
    monkeypatch.delenv(startup.EAGER_IMPORTS, raising=False)
    with suppress(RuntimeError), startup.lean_loading():
        assert (builtins.__import__ is not before[0]) == hastened
        raise RuntimeError("a model that cannot be loaded")
    assert (builtins.__import__, vars(torch).get("_dynamo")) == before


def test_what_a_call_returns_meanwhile_is_what_the_real_function_returns():
    module = "torch.fx.experimental.symbolic_shapes"
    symbolic_shapes = importlib.import_module(module)
    calls = UNNEEDED["torch", module]
    values = [
        (3,),
        (5,),
        (True, False),
        (True, True),
        (True,),
        (False,),
        ((2, 3), (2, 3)),
        ([2, 3], (2, 4)),
        ((2,), (2, 1)),
        (2.5,),
    ]
    for name, call in ((name, call) for name, call in calls.items() if call is not None):
        answers = 0
        for given in values:
            answer = call(None, *given)
            if answer is not NotImplemented:
                real = getattr(symbolic_shapes, name)(*given)
                assert (type(answer), answer) == (type(real), real), (name, given)
                answers += 1
        assert answers >= 2, name


def test_every_unneeded_name_is_there_to_be_loaded():
    for (_, module), names in UNNEEDED.items():
        there = importlib.import_module(module)
        assert all(hasattr(there, name) for name in names), module


NEIGHBOUR = """
import torch._dynamo
import torch.export
import torch.fx.experimental.symbolic_shapes
from torch._dynamo.utils import is_compile_supported
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import DTensor
from torch.fx.experimental.symbolic_shapes import guard_or_false
import sympy
assert isinstance(sympy.Integer(3), sympy.Basic)
assert torch.compile(lambda x: x + 1, backend="eager")(torch.zeros(3)).tolist() == [1, 1, 1]
"""
HASTENED = """
import os, sys
from attnscope.process import startup
startup.hasten()
with startup.lean_loading():
    from transformers import BertConfig, BertModel
    import neighbour
import torch
sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
model = BertModel(BertConfig(vocab_size=9, **sizes))
assert model(torch.tensor([[1, 2, 3]])).last_hidden_state.shape == (1, 3, 8)
print("ran")
"""


@pytest.mark.parametrize("first", [True, False])
def test_another_package_may_import_what_is_stood_in_for(tmp_path: Path, first: bool) -> None:
    """As torchvision does, which transformers imports wherever it is installed."""
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    lines = HASTENED.replace("    import neighbour\n", "") if first else HASTENED
    if first:
        lines = lines.replace("    from transformers", "    import neighbour\n    from transformers")
    place = os.pathsep.join((str(tmp_path), str(Path(startup.__file__).parents[2])))
    given = {name: value for name, value in os.environ.items() if name != startup.EAGER_IMPORTS}
    done = subprocess.run(
        [sys.executable, "-c", lines], env=given | {"PYTHONPATH": place}, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("ran\n", 0), done.stderr[-2000:]
