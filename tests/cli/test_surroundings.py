"""What the machine lacks or a library says by itself: one line; a corpus that is killed goes on."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import made_corpus
import pytest
from typer.testing import CliRunner

from attnscope import demo
from attnscope.cli.app import app
from attnscope.errors import InputError, lacking
from attnscope.verbs.corpus.engine import Split, local
from attnscope.verbs.corpus.engine.ray.cluster import descendants
from attnscope.verbs.corpus.merging import FAN

HEAD = ("-m", "demo", "-l", "0", "--head", "0", "-q")


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


def test_few_open_files_are_one_line() -> None:
    result = run("heads", "a door", *HEAD, files=5)
    assert result.returncode == 2
    assert result.stderr.startswith("attnscope: no more files may be open at once, ulimit -n allows more: ")
    assert len(result.stderr.splitlines()) == 1


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
    "    sys.stdin.buffer.peek(1); pickle.dump(answer, sys.stdout.buffer); sys.stdout.buffer.flush()\n"
    "sys.stdin.buffer.read()"
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


def test_a_refused_corpus_leaves_nothing(attnscope, refused, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("The door opened.\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    asked = ("corpus", "t.txt", "-m", "demo", "--workers", "0", "-q")
    for more in (("-l", "99"), ("-l", "99", "--run", "a/b"), ("--run", "mine")):
        refused("", *asked, *more)
    done = (*asked, "-l", "0", "--measure", "entropy", "--run", "r")
    assert attnscope(*done).exit_code == 0
    refused("", *done, "--limit", "1")  # another run


def test_what_a_library_prints_by_itself_is_no_result_and_a_home_without_room_is_not_remarked_on(
    tmp_path: Path,
) -> None:
    folder, room = tmp_path / "model", tmp_path / "room"
    shutil.copytree(demo.folder(), folder)
    room.mkdir()
    file = folder / "tokenizer_config.json"
    token = {"content": "[MASK]", "special": True, "colour": "red"}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"added_tokens_decoder": {"4": token}}))
    nowhere = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), "/proc/nowhere")
    asked = ("heads", "a door", "-m", str(folder), *HEAD[2:], "--json", "-o", str(room / "a.png"))
    result = run(*asked, TMPDIR=str(room), **nowhere)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["layer"] == 0
    assert [each.name for each in room.iterdir()] == ["a.png"]


TEXTS = (
    "The door opened.", "A dog barks, and the old dog sleeps.", "She was watching the boat.", "It is late.",
    "the river and the bank", "Maria sat on the table and she slept.", "caf\udce9", "very " * 90, " " * 3000,
)  # fmt: skip
KILLS = 6
WORKER = b"attnscope.verbs.corpus.engine.worker"


def corpus(folder: Path, run: str, workers: int) -> subprocess.Popen[bytes]:
    command = [
        sys.executable, "-m", "attnscope", "corpus", "texts.txt", "-m", "demo", "-l", "0,3", "--run", run,
        "--workers", str(workers), "-q", "-o", f"{run}.npz", "-o", f"{run}.png",
    ]  # fmt: skip
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # off in a background
    )


def left(run: Path) -> dict[str, bytes]:
    names = (each for each in sorted(run.rglob("*")) if each.is_file())
    return {
        str(each.relative_to(run)): each.read_bytes()
        for each in names
        if each.name not in ("manifest.json", "lock")
    }


def done(folder: Path) -> int:
    """How many splits are measured."""
    names = [each.name for each in (folder / "cut" / "parts").glob("[0-9]*.parquet")]
    return sum(FAN ** int(name[0]) for name in names)


def kill_a_worker(process: int) -> bool:
    """Kill one of those that measure for this process, if there is any."""
    for each in descendants(process):
        with suppress(OSError):
            if WORKER in Path(f"/proc/{each}/cmdline").read_bytes():
                os.kill(each, signal.SIGKILL)
                return True
    return False


def test_a_corpus_that_is_killed_at_random_moments_ends_in_the_same_bytes(tmp_path: Path) -> None:
    lines = [TEXTS[i % len(TEXTS)] for i in range(1100)]
    (tmp_path / "texts.txt").write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    started = time.monotonic()
    assert corpus(tmp_path, "whole", 1).wait() == 0
    whole = time.monotonic() - started
    draw, killed, workers, grown = random.Random(4), 0, 0, set()
    for turn in range(KILLS):
        before = done(tmp_path)
        process = corpus(tmp_path, "cut", 2)
        if turn % 2:
            time.sleep(draw.uniform(0.1, 0.9) * whole)
        else:  # in the middle, however long a start takes here
            while done(tmp_path) == before and process.poll() is None:
                time.sleep(0.01)
            workers += kill_a_worker(process.pid)
            time.sleep(draw.uniform(0, 0.05) * whole)
        if process.poll() is None:
            killed += 1
            process.send_signal((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[turn % 3])
        process.wait()
        grown.add(done(tmp_path))
        if len(left(tmp_path / "cut")) == len(left(tmp_path / "whole")):
            break
    assert killed >= 2
    assert workers >= 1
    assert len(grown) > 1, "it was never cut off in the middle"
    assert corpus(tmp_path, "cut", 2).wait() == 0
    assert left(tmp_path / "cut") == left(tmp_path / "whole")
    for suffix in (".npz", ".png"):
        assert (tmp_path / f"cut{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


def test_two_stored_corpora_are_a_page_and_a_table_too(tmp_path: Path) -> None:
    for name, result in (("a.npz", made_corpus.corpus()), ("b.npz", made_corpus.corpus("other.txt", 30, 1))):
        result.save(tmp_path / name)
    files = [str(tmp_path / name) for name in ("a.npz", "b.npz", "ab.html", "ab.csv")]
    done = CliRunner().invoke(app, ["compare", *files[:2], "-q", "-o", files[2], "-o", files[3]])
    assert done.exit_code == 0, done.output
    assert '<table class="heads' in (tmp_path / "ab.html").read_text()
    assert "length_alone" in (tmp_path / "ab.csv").read_text()


def test_the_largest_seed_is_one(attnscope) -> None:
    given = ("compose", "-m", "demo-causal", "--draws", "3", "--json", "--seed", str(2**64 - 1))
    assert json.loads(attnscope(*given).stdout)["seed"] == 2**64 - 1
