"""A bug's traceback, told whole without anything that steers; what starts the command faster."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import attnscope
from attnscope.cli.app import app
from attnscope.cli.output import Output
from attnscope.process import machine

STEERING = "\x1b]0;stolen\x07\x9b2J\u202e\r"
# the program as its command runs it, but that a function of it is that of a file with a bug
BUGGED = """
import sys
from attnscope.verbs.sdpa import examples as worked
sys.path.insert(0, sys.argv.pop(1))
import bugged
worked.example = getattr(bugged, sys.argv.pop(1))
from attnscope.__main__ import main
main()
"""
BUGS = """
import threading
class Freed:
    def __del__(self):
        raise RuntimeError(MESSAGE)
    def __repr__(self):
        return "freed " + MESSAGE
def raised(*given):
    raise RuntimeError(MESSAGE)  # {STEERING}
def caused(*given):
    try:
        raised()
    except RuntimeError as error:
        error.add_note("noted " + MESSAGE)
        raise KeyError("second") from error
def in_a_thread(*given):
    thread = threading.Thread(target=raised, name="thread " + MESSAGE)
    thread.start()
    thread.join()
    raise SystemExit(1)
def freeing(*given):
    Freed()
    raise SystemExit(1)
"""


def told(bug: str, folder: Path) -> str:
    source = f"MESSAGE = {STEERING!r} + 'next\\nlast'\n" + BUGS.replace("{STEERING}", STEERING.strip("\r"))
    (folder / "bugged.py").write_text(source, "utf-8")
    asked = [sys.executable, "-c", BUGGED, str(folder), bug, "sdpa", "--example", "fruit"]
    done = subprocess.run(asked, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    return done.stderr.decode("utf-8")


@pytest.mark.parametrize("bug", ["caused", "in_a_thread", "freeing"])
def test_nothing_of_a_traceback_steers_and_all_of_it_is_told(bug: str, tmp_path: Path) -> None:
    errors = told(bug, tmp_path)
    steering = [each for each in errors if each != "\n" and not each.isprintable()]
    assert not steering, errors
    lines = errors.splitlines()
    escaped = r"\x1b]0;stolen\x07\x9b2J\u202e␍"
    at = lines.index(f"RuntimeError: {escaped}next")
    assert lines[at + 1] == "last"
    assert "Traceback (most recent call last):" in lines
    assert any(line.startswith(f'  File "{tmp_path}/bugged.py", line ') for line in lines)
    assert r"    raise RuntimeError(MESSAGE)  # \x1b]0;stolen\x07\x9b2J\u202e" in lines or bug == "freeing"
    first, last = {
        "caused": ("Traceback", "KeyError: 'second'"),
        "in_a_thread": (f"Exception in thread thread {escaped}next", "last"),
        "freeing": ("Exception ignored in: ", "last"),
    }[bug]
    assert lines[0].startswith(first)
    assert lines[-1] == last
    assert (f"noted {escaped}next" in lines) is (bug == "caused")


def test_who_imports_the_package_keeps_the_hooks_of_python() -> None:
    code = (
        "import sys, threading, attnscope, attnscope.__main__, attnscope.process.standard_error\n"
        "assert sys.excepthook is sys.__excepthook__\n"
        "assert threading.excepthook is threading.__excepthook__"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_library_changes_nothing_of_the_process_that_uses_it():
    before = (gc.get_freeze_count(), gc.get_threshold(), gc.isenabled())
    attnscope.load("demo").read("the dog barks")
    assert (gc.get_freeze_count(), gc.get_threshold(), gc.isenabled()) == before


def test_the_collector_is_held_back_and_let_go(monkeypatch: pytest.MonkeyPatch):
    threshold = gc.get_threshold()
    monkeypatch.delenv(machine.COLLECT, raising=False)
    monkeypatch.setenv(machine.WAITING, "passive")
    monkeypatch.setattr(machine, "_hastened", False)
    try:
        with machine.lean_loading():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() == 0
        machine.hasten()
        with machine.lean_loading():
            pass
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[0] >= 50_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)


def test_the_collector_is_left_as_it_is_by_a_word_in_the_environment(monkeypatch: pytest.MonkeyPatch):
    threshold = gc.get_threshold()
    monkeypatch.setenv(machine.COLLECT, "1")
    monkeypatch.setenv(machine.WAITING, "passive")
    monkeypatch.setattr(machine, "_hastened", False)
    machine.hasten()
    with machine.lean_loading():
        pass
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, threshold)


@pytest.mark.skipif(sys.platform != "linux", reason="torch has its threads from libgomp on Linux alone")
@pytest.mark.parametrize(("given", "spins"), [({}, "1000"), ({"OMP_WAIT_POLICY": "passive"}, "0")])
def test_threads_of_a_command_sleep_soon_where_they_wait_unless_the_user_says_how(
    given: dict[str, str], spins: str
):
    unset = {name: os.environ[name] for name in os.environ if not name.startswith(("OMP_", "GOMP_"))}
    told = subprocess.run(
        [sys.executable, "-m", "attnscope", "sdpa", "--example", "fruit", "-q"],
        env={**unset, **given, "OMP_DISPLAY_ENV": "verbose"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert f"GOMP_SPINCOUNT = '{spins}'" in told.stderr


@pytest.mark.parametrize(
    "asked",
    [
        ["ablate", "hello"],
        ["align", "hello"],
        ["cite", "hello", "--generate", "1"],
        ["compare", "hello", "hello", "--word", "hello"],
        ["compose"],
        ["explain", "hello", "--from", "hello", "--to", "hello"],
        ["find", "hello"],
        ["find", "--pattern", "retrieval"],
        ["flow", "hello", "--from", "hello"],
        ["report", "hello"],
        ["verify"],
        ["why", "hello", "--answer", "it"],
        ["why", "hello", "--layer", "0", "--head", "0", "--from", "0", "--to", "0"],
    ],
    ids=" ".join,
)
def test_whatever_imports_torch_before_it_knows_the_model_says_so_and_is_lean(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, importing = list[bool](), Output.importing

    @contextmanager
    def noted(output: Output) -> Iterator[None]:
        with importing(output):
            said.append(not gc.isenabled())
            yield

    monkeypatch.setattr(Output, "importing", noted)
    done = CliRunner().invoke(app, [*asked, "-m", str(tmp_path)])
    assert done.exit_code == 3
    assert said[:1] == [True]
