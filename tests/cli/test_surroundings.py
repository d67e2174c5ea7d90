"""What the machine lacks or a library says by itself: one line, a documented exit code, nothing left."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attnscope import demo
from attnscope.errors import DoesNotFitError, InputError, lacking
from attnscope.session.corpus.engine import local
from attnscope.session.corpus.engine.interface import Split

HEAD = ("-m", "demo", "-l", "0", "--head", "0", "-q")
BIG = 2**64


def run(*arguments: str, files: int | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
    def limited() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    return subprocess.run(
        [sys.executable, "-m", "attnscope", *arguments],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "ATTNSCOPE_DIGESTS": "off", **environment},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
    )


@pytest.mark.parametrize("seed", [BIG, -1])
@pytest.mark.parametrize(
    "arguments",
    [
        ("compose",),
        ("find", "a door", "--from", "a", "--to", "door"),
        ("flow", "a door", "--from", "door"),
        ("ablate", "a door", "-l", "0", "--head", "1"),
    ],
)
def test_a_seed_that_no_generator_takes_is_refused_in_one_line(attnscope, arguments, seed: int) -> None:
    result = attnscope(*arguments, "-m", "demo-causal", "--seed", str(seed))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"attnscope: --seed is {seed}: it must be from 0 to {BIG - 1}\n"


def test_the_largest_seed_is_one(attnscope) -> None:
    given = ("compose", "-m", "demo-causal", "--draws", "3", "--json", "--seed", str(BIG - 1))
    assert json.loads(attnscope(*given).stdout)["seed"] == BIG - 1


def test_few_open_files_are_one_line() -> None:
    result = run("heads", "a door", *HEAD, files=5)
    assert result.returncode == 2
    assert result.stderr.startswith("attnscope: no more files may be open at once, ulimit -n allows more: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_what_fails_for_lack_of_memory_is_exit_code_4(error: Exception, attnscope, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("attnscope.session.opening.open_model", fail)
    result = attnscope("verify", "-m", "demo")
    assert result.exit_code == 4
    assert result.stderr.startswith("attnscope: this does not fit in memory: ")


def test_other_errors_are_bugs_and_a_cause_is_looked_for() -> None:
    for error in (ImportError("no module named x"), OSError(2, "no such file"), RuntimeError("shape")):
        assert lacking(error) is None
    outer = RuntimeError("cannot import")
    outer.__cause__ = MemoryError()
    assert isinstance(lacking(outer), DoesNotFitError)


def started(codes: list[str]):
    def start() -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", codes.pop(0)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    return start


KILLED = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"
ANSWERS = (
    "import pickle, sys\nfor answer in (b'', b'file'):\n"
    "    sys.stdin.buffer.peek(1); pickle.dump(answer, sys.stdout.buffer); sys.stdout.buffer.flush()"
)


def test_a_worker_that_is_killed_once_while_it_opens_the_model_is_started_again(monkeypatch) -> None:
    monkeypatch.setattr(local, "_started", started([KILLED, ANSWERS]))
    worker = local.Worker("a recipe")
    assert worker.measure(Split(0, ())) == b"file"
    worker.stop()


def test_workers_that_are_killed_while_they_open_the_model_are_one_line(monkeypatch) -> None:
    monkeypatch.setattr(local, "_started", started([KILLED, KILLED]))
    with pytest.raises(InputError, match=r"before the model is open, by signal 9: fewer --workers need"):
        local.Worker("a recipe").measure(Split(0, ()))


def test_a_refused_corpus_leaves_nothing(attnscope, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("The door opened.\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    for more in (("-l", "99"), ("-l", "99", "--run", "a/b"), ("--run", "mine")):
        assert attnscope("corpus", "t.txt", "-m", "demo", "--workers", "0", "-q", *more).exit_code == 2
        assert sorted(tmp_path.rglob("*")) == before
    done = (
        "corpus",
        "t.txt",
        "-m",
        "demo",
        "-l",
        "0",
        "--measure",
        "entropy",
        "--workers",
        "0",
        "--run",
        "r",
    )
    assert attnscope(*done).exit_code == 0
    there = sorted(tmp_path.rglob("*"))
    assert attnscope(*done, "--limit", "1").exit_code == 2  # another run
    assert sorted(tmp_path.rglob("*")) == there


def test_what_a_library_prints_by_itself_is_no_result(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(demo.folder(), folder)
    file = folder / "tokenizer_config.json"
    token = {"content": "[MASK]", "special": True, "colour": "red"}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"added_tokens_decoder": {"4": token}}))
    result = run("heads", "a door", "-m", str(folder), "-l", "0", "--head", "0", "--json", "-q")
    assert json.loads(result.stdout)["layer"] == 0


def test_a_home_that_cannot_be_written_to_is_not_remarked_on(tmp_path: Path) -> None:
    nowhere = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), "/proc/nowhere")
    result = run("heads", "a door", *HEAD, "-o", str(tmp_path / "a.png"), TMPDIR=str(tmp_path), **nowhere)
    assert (result.returncode, result.stderr) == (0, "")
    assert [each.name for each in tmp_path.iterdir()] == ["a.png"]
