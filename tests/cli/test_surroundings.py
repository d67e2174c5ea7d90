"""What the machine lacks or a library says by itself: one line, a documented exit code, nothing left."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib import import_module
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


def package(folder: Path, name: str, body: str) -> str:
    """A package of that name as pip leaves one, in a folder to import it from."""
    told = folder / f"{name}-0.7.dist-info"
    for made in (folder / name, told):
        made.mkdir(parents=True)
    (folder / name / "__init__.py").write_text(body)
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.7\n")
    (told / "RECORD").write_text(f"{name}/__init__.py,,\n")
    return str(folder)


@pytest.mark.parametrize(
    "body",
    [
        "raise RuntimeError('operator x::nms does not exist')",
        "raise ValueError('numpy.dtype size changed')",
        "import no_such_module_at_all",
        "def f():\n    raise OSError('libx.so: undefined symbol')\nf()",
        "import json\njson.loads('[')",
    ],
)
def test_a_package_that_fails_as_it_is_imported_is_named_with_its_version(
    body: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.syspath_prepend(package(tmp_path, "unsound_neighbour", body))
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever a package raises
        import_module("unsound_neighbour")
    outer = ModuleNotFoundError("Could not import module 'BertModel'")  # as transformers says it
    outer.__cause__ = raised.value
    for error in (raised.value, outer):
        told = lacking(error)
        assert told is not None
        assert told.exit_code == 3
        assert str(told).startswith("unsound_neighbour 0.7 fails as it is imported: ")
        assert len(str(told).splitlines()) == 1


def test_what_fails_in_a_package_once_it_is_imported_is_a_bug(tmp_path: Path, monkeypatch) -> None:
    body = "def f(call=None):\n    call() if call else exec('raise ValueError(2)', globals())\n"
    monkeypatch.syspath_prepend(package(tmp_path, "sound_neighbour", body))
    sound = import_module("sound_neighbour")
    with pytest.raises(ValueError, match="2") as raised:
        sound.f()
    assert lacking(raised.value) is None
    monkeypatch.syspath_prepend(package(tmp_path / "b", "calling_us", "import sys\nsys.call_us()\n"))
    ours = eval("lambda: 1 / 0", {"__name__": "attnscope.somewhere"})
    monkeypatch.setattr(sys, "call_us", ours, raising=False)
    with pytest.raises(ZeroDivisionError) as bug:
        import_module("calling_us")
    assert lacking(bug.value) is None


def test_a_neighbour_that_cannot_be_imported_is_one_line(tmp_path: Path) -> None:
    why = "operator torchvision::nms does not exist"
    folder = package(tmp_path, "torchvision", f"raise RuntimeError({why!r})")
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    result = run("heads", "a door", *HEAD, PYTHONPATH=path)
    assert (result.returncode, result.stdout) == (3, "")
    said = f"attnscope: torchvision 0.7 fails as it is imported: {why}: "
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1


def test_no_folder_for_temporary_files_is_one_line(attnscope, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a.txt").write_text("the door\n")
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    result = attnscope("corpus", str(tmp_path / "a.txt"), "-m", "demo", "--run", str(tmp_path / "run"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "attnscope: no folder takes temporary files: name one that can be written, as TMPDIR"
    ]


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
