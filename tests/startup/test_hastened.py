"""What a hastened process computes is what any other does, to the last bit; a library is never hastened."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import attnscope
from attnscope import startup
from attnscope.startup import collector
from attnscope.startup.deferred import PuttingOff
from attnscope.startup.finding import WhenImported
from attnscope.startup.unneeded import UNNEEDED

FAMILIES = Path(__file__).with_name("families.py")
OF_EACH = 7


def lines(how: str, folder: Path, *more: str) -> list[str]:
    command = [sys.executable, str(FAMILIES), how, str(folder), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_seven_families_compute_the_same_bits_and_every_module_is_there_when_it_is_asked_for(tmp_path: Path):
    plain = lines("plain", tmp_path)
    hastened = lines("hastened", tmp_path, "load")
    assert len(plain) == OF_EACH
    assert hastened[:OF_EACH] == plain
    loaded = {line.removeprefix("loaded ") for line in hastened[OF_EACH:]}
    assert {"torch._dynamo", "torch.distributed.tensor", "scipy.optimize", "sympy"} <= loaded
    assert any((tmp_path / "startup").iterdir())


def test_a_library_changes_nothing_of_the_process_that_uses_it(monkeypatch: pytest.MonkeyPatch):
    frozen, threshold = gc.get_freeze_count(), gc.get_threshold()
    attnscope.load("demo").read("the dog barks")
    assert not [each for each in sys.meta_path if isinstance(each, PuttingOff | WhenImported)]
    assert (gc.get_freeze_count(), gc.get_threshold()) == (frozen, threshold)


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        (None, [WhenImported, PuttingOff]),
        (startup.EAGER_IMPORTS, [WhenImported]),
        (startup.FRESH_TABLE, [PuttingOff]),
    ],
)
def test_each_measure_is_off_by_a_word_in_the_environment(
    switch: str | None, expected: list[type], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(collector, "_in_force", False)
    monkeypatch.setenv(collector.COLLECT, "1")
    if switch is not None:
        monkeypatch.setenv(switch, "1")
    before = list(sys.meta_path)
    startup.hasten()
    assert [type(each) for each in sys.meta_path if each not in before] == expected
    assert gc.get_threshold()[0] < 50_000


def test_the_collector_is_held_back_and_let_go(monkeypatch: pytest.MonkeyPatch):
    threshold = gc.get_threshold()
    monkeypatch.delenv(collector.COLLECT, raising=False)
    monkeypatch.setattr(collector, "_in_force", False)
    try:
        collector.leave_alone()
        assert gc.get_freeze_count() == 0
        collector.look_less_often()
        collector.leave_alone()
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[0] >= 50_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)


def test_what_functions_answer_meanwhile_is_what_they_answer_when_they_are_there():
    from torch.fx.experimental import symbolic_shapes

    put_off = UNNEEDED["torch.fx.experimental.symbolic_shapes"]
    asked = 0
    numbers = [(3,), (True,), (False,), ((2, 3), (2, 3)), ([2, 3], (2, 4)), ((2,), (2, 1)), (2.5,)]
    there = [name for name in put_off.calls if hasattr(symbolic_shapes, name)]  # older versions have fewer
    assert len(there) >= 3
    for name in there:
        call = put_off.calls[name]
        for given in [*numbers, (True, False), (True, True), (False, False, True)]:
            answer = call(None, *given)
            if answer is not NotImplemented:
                try:
                    real = getattr(symbolic_shapes, name)(*given)
                except AssertionError:  # older versions do not answer what newer ones do
                    continue
                assert (type(answer), answer) == (type(real), real), (name, given)
                asked += 1
    assert asked > len(there)
