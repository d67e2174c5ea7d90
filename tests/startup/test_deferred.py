"""Modules that are put off: nothing of them is run before it is needed, and then everything is as ever."""

import gc
import importlib
import pickle
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from attnscope.startup import deferred
from attnscope.startup.deferred import Deferred, PutOff, PuttingOff
from attnscope.startup.standing import Meanwhile, StandIn, made_when_used, marks, wraps_when_there

HEAVY = """
import sys
sys.runs = getattr(sys, "runs", 0) + 1
told = []
class Kind:
    number = 3
    def __init__(self, size=0):
        self.size = size
    def __eq__(self, other):
        return isinstance(other, Kind) and other.size == self.size
    __hash__ = object.__hash__
def double(x):
    return 2 * x
def mark(f):
    told.append(f)
    return f
def kept_from(f, plus=0):
    return lambda x: f(x) + plus
"""
USER = """
import heavy
from heavy import Kind, double, mark, kept_from
from heavy.inner import deep
class Holder:
    kind = Kind
    def __init__(self):
        self.of = Kind
held, listed, made = Holder(), [Kind, 5], Kind(7)
def closing(over):
    return lambda: over
closed = closing(double)
@mark
def marked():
    return 1
@kept_from
def wrapped(x):
    return x
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A module that imports a heavy package, of which everything that it names is expected."""
    (tmp_path / "heavy").mkdir()
    (tmp_path / "heavy" / "__init__.py").write_text(HEAVY)
    (tmp_path / "heavy" / "inner.py").write_text("from heavy import double\ndeep = double(21)\n")
    (tmp_path / "heavy" / "other.py").write_text("import heavy\nseen = heavy.Kind\n")
    (tmp_path / "using.py").write_text(USER)
    calls = {"Kind": made_when_used, "mark": marks, "kept_from": wraps_when_there}
    put_off = PutOff(["double", "absent"], calls, {"inner": PutOff(["deep"])})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [PuttingOff({"heavy": put_off}), *sys.meta_path])
    monkeypatch.setattr(sys, "runs", 0, raising=False)
    yield importlib.import_module("using")
    for name in ("using", "heavy", "heavy.inner", "heavy.other"):
        sys.modules.pop(name, None)
        deferred._waiting.pop(name, None)


def test_nothing_of_it_is_run_by_those_who_import_it_and_where_it_lies_is_known(user: ModuleType):
    heavy = sys.modules["heavy"]
    assert user.heavy is heavy
    assert type(heavy) is Deferred
    assert isinstance(heavy, ModuleType)
    assert find_spec("heavy").origin == heavy.__file__
    assert heavy.__file__.endswith("__init__.py")
    assert heavy.__path__
    assert "heavy" in repr(heavy)
    importlib.import_module("heavy")
    assert sys.runs == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda user: user.heavy.told,
        lambda user: user.heavy.__dict__,
        lambda user: dir(user.heavy),
        lambda user: user.Kind.number,
        lambda user: user.double(4),
        lambda user: user.made.size,
        lambda user: repr(user.deep),
        lambda user: issubclass(int, user.Kind),
        lambda user: importlib.import_module("heavy.other"),
        lambda user: importlib.import_module("heavy.inner").deep.bit_length(),
        lambda user: setattr(user.heavy, "more", 1),
        lambda user: exec("from heavy import told"),
        lambda user: {user.Kind: 1},
    ],
)
def test_whatever_is_asked_of_it_loads_it_once_into_the_object_that_was_there(user: ModuleType, ask):
    before = sys.modules["heavy"]
    ask(user), ask(user)
    assert sys.runs == 1
    assert sys.modules["heavy"] is before is user.heavy
    assert type(before) is ModuleType
    assert before.__spec__.loader is before.__loader__
    assert not before.__spec__._initializing


def test_what_stood_for_its_names_is_gone_when_it_is_there(user: ModuleType):
    gc.freeze()  # what is frozen is found all the same
    try:
        heavy = user.heavy
        assert heavy.double(4) == 8
    finally:
        gc.unfreeze()
    assert user.Kind is heavy.Kind
    assert user.double is heavy.double
    assert user.Holder.kind is heavy.Kind
    assert user.held.of is heavy.Kind
    assert user.listed[0] is heavy.Kind
    assert user.listed[1] == 5
    assert user.closed() is heavy.double
    assert type(user.made) is heavy.Kind
    assert user.made.size == 7


def test_nothing_is_an_instance_of_a_class_that_is_not_there_and_that_loads_nothing(user: ModuleType):
    assert not isinstance(3, user.Kind)
    assert not isinstance("x", (int, user.Kind))
    assert sys.runs == 0
    standing_class, standing = user.Kind, user.made
    assert isinstance(standing, standing_class)  # both stand for something: now it must be known
    assert sys.runs == 1
    assert isinstance(user.heavy.Kind(2), standing_class)
    assert not isinstance(3, standing_class)
    assert isinstance(standing, user.heavy.Kind)
    assert standing == user.heavy.Kind(7)


def test_a_class_may_be_subclassed_and_pickled_by_its_name(user: ModuleType):
    class Sub(user.Kind):
        pass

    assert Sub.__mro__[1] is user.heavy.Kind
    assert Sub(5).size == 5
    standing = StandIn("heavy:double", Meanwhile(lambda: user.heavy.double, lambda: None))
    assert pickle.loads(pickle.dumps(standing)) is user.heavy.double


def test_decorators_do_at_once_what_can_be_done_and_the_rest_when_it_is_there(user: ModuleType):
    assert user.marked() == 1
    assert user.wrapped(5) == 5
    assert user.wrapped.__name__ == "wrapped"
    assert sys.runs == 0
    assert user.heavy.told == [user.marked]
    assert user.wrapped(5) == 5
    assert user.heavy.kept_from(lambda x: x, 3)(5) == 8


def test_a_name_that_the_source_does_not_hold_is_missed_at_once(user: ModuleType):
    with pytest.raises(ImportError, match="absent"):
        exec("from heavy import absent")
    assert sys.runs == 1


def test_a_module_that_fails_fails_where_it_is_asked_and_each_time(user: ModuleType):
    Path(user.heavy.__file__).write_text(
        "double = Kind = mark = kept_from = 1\nraise RuntimeError('broken')\n"
    )
    importlib.invalidate_caches()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            user.heavy.told.append(1)


def test_threads_that_ask_at_once_get_it_whole_and_load_it_once(user: ModuleType):
    Path(user.heavy.__file__).write_text(f"import time\ntime.sleep(0.05)\n{HEAVY}")
    importlib.invalidate_caches()
    got = []
    threads = [threading.Thread(target=lambda: got.append(user.heavy.told)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(got) == 4
    assert len(set(map(id, got))) == 1
    assert sys.runs == 1


def test_what_was_loaded_before_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "early.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    there = importlib.import_module("early")
    monkeypatch.setattr(sys, "meta_path", [PuttingOff({"early": PutOff(["value"])}), *sys.meta_path])
    assert importlib.import_module("early") is there
    assert type(there) is ModuleType
    assert importlib.reload(there).value == 1
    del sys.modules["early"]
