"""What starts the command faster: the collector waits, threads sleep soon; a library is never hastened."""

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
from attnscope.process import startup


def test_a_library_changes_nothing_of_the_process_that_uses_it():
    before = (gc.get_freeze_count(), gc.get_threshold(), gc.isenabled())
    attnscope.load("demo").read("the dog barks")
    assert (gc.get_freeze_count(), gc.get_threshold(), gc.isenabled()) == before


def test_the_collector_is_held_back_and_let_go(monkeypatch: pytest.MonkeyPatch):
    threshold = gc.get_threshold()
    monkeypatch.delenv(startup.COLLECT, raising=False)
    monkeypatch.setenv(startup.WAITING, "passive")
    monkeypatch.setattr(startup, "_hastened", False)
    try:
        with startup.lean_loading():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() == 0
        startup.hasten()
        with startup.lean_loading():
            pass
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[0] >= 50_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)


def test_the_collector_is_left_as_it_is_by_a_word_in_the_environment(monkeypatch: pytest.MonkeyPatch):
    threshold = gc.get_threshold()
    monkeypatch.setenv(startup.COLLECT, "1")
    monkeypatch.setenv(startup.WAITING, "passive")
    monkeypatch.setattr(startup, "_hastened", False)
    startup.hasten()
    with startup.lean_loading():
        pass
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, threshold)


@pytest.mark.skipif(sys.platform != "linux", reason="torch has its threads from libgomp on Linux alone")
@pytest.mark.parametrize(("given", "spins"), [({}, "1000"), ({"OMP_WAIT_POLICY": "passive"}, "0")])
def test_threads_of_a_command_sleep_soon_where_they_wait_unless_the_user_says_how(
    given: dict[str, str], spins: str
):
    unset = {name: os.environ[name] for name in os.environ if not name.startswith(("OMP_", "GOMP_"))}
    told = subprocess.run(
        [sys.executable, "-m", "attnscope", "heads", "the dog barks", "-m", "demo", "-q"],
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
