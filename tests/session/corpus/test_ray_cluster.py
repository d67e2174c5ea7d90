"""Ray with two workers on this machine: what is killed costs nothing, the numbers are those without it.

Runs where Ray is installed (`pip install "attnscope[ray]"`); the rest of its engine is tested without it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import corpus_of_demo as demo
import letters
import pytest

from attnscope.errors import InputError
from attnscope.results.stored.document import as_npz
from attnscope.session.corpus import splits as planning
from attnscope.session.corpus.engine.interface import Engine, Split
from attnscope.session.corpus.engine.local import WorkerBugError, local
from attnscope.session.corpus.engine.ray import cluster as clusters
from attnscope.session.corpus.engine.ray.pool import on_ray
from attnscope.session.listener import Quiet

pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason='Ray is not installed: pip install "attnscope[ray]"'
)
SPECIMENS = Path(letters.__file__).parent


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Two workers of one Ray for all tests; when they are through nothing of it is left."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", f"{SPECIMENS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        patched.delenv(clusters.ADDRESS, raising=False)
        made: list[Path] = []
        usual = clusters._folder
        patched.setattr(clusters, "_folder", lambda: made.append(usual()) or made[0])
        with clusters.cluster(None, 2, 0, Quiet()):
            assert any(made[0].iterdir())
            yield on_ray(workers=2)
        assert not made[0].exists()
        assert_gone(clusters.descendants(os.getpid()))


def next_to_begin(log: Path) -> letters.Begun:
    """A split that a worker begins just now."""
    before, until = letters.begun(log), time.monotonic() + 30
    while not (new := [each for each in letters.begun(log) if each not in before]):
        assert time.monotonic() < until
        time.sleep(0.02)
    return new[0]


def assert_gone(processes: list[int]) -> None:
    until = time.monotonic() + 15
    while (left := [each for each in processes if alive(each)]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left, [command(each) for each in left]


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.mark.parametrize("victim", ["the actor", "its process"])
def test_a_worker_that_is_killed_in_the_middle_loses_nothing_and_counts_nothing_twice(
    victim: str, engine: Engine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = list(letters.splits(*[("a" * (i + 1), "bc") for i in range(12)]))
    found: dict[int, str] = {}
    killed = None
    for finished in engine(letters.Letters(tmp_path, seconds=1.0), given, Quiet()):
        assert finished.number not in found
        assert finished.texts == 2
        found[finished.number] = finished.name
        if len(found) == 3:
            killed = next_to_begin(tmp_path)
            assert "ray::" in command(killed.parent)
            os.kill(killed.parent if victim == "the actor" else killed.process, signal.SIGKILL)
    assert found == {each.number: letters.counted(each).name for each in given}
    assert killed is not None
    begun = letters.begun(tmp_path)
    again = [each.process for each in begun if each.split == killed.split]
    assert len(again) == 2, "it was in the middle of a split, which was begun once more"
    assert len({each.process for each in begun}) == 3, "two workers, and the one in the place of the killed"
    assert len({each.parent for each in begun}) == (3 if victim == "the actor" else 2)
    said, noise = capfd.readouterr()
    assert (said, noise) == ("", ""), noise


def test_a_text_that_ends_its_process_is_set_aside_as_by_processes_of_this_machine(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list(letters.splits(("one", letters.DEADLY, "three"), ("four",)))
    recipe = letters.Letters(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(SPECIMENS))
    found = {each.number: each.name for each in engine(recipe, given, Quiet())}
    assert found == {0: "0: f:0.1 3, f:0.2 deadly, f:0.3 5", 1: "1: f:1.1 4"}
    assert found == {each.number: each.name for each in local(1)(recipe, given, Quiet())}


@pytest.mark.parametrize(
    ("trouble", "kind", "told"),
    [
        (letters.REFUSED, InputError, "^f:1.1: refused$"),
        (letters.BROKEN, WorkerBugError, "ZeroDivisionError: f:1.1"),
    ],
)
def test_what_a_worker_meets_is_told_as_it_is(
    trouble: str, kind: type[Exception], told: str, engine: Engine, tmp_path: Path
) -> None:
    def given() -> Iterator[Split]:
        yield from letters.splits(("one",), (trouble,))

    with pytest.raises(kind, match=told):
        list(engine(letters.Letters(tmp_path), given(), Quiet()))


def test_a_corpus_has_the_same_numbers_to_the_last_bit_as_without_ray(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as parquet

    monkeypatch.setattr(planning, "LEAST", 150)
    file = tmp_path / "texts.txt"
    file.write_text("\n".join([*demo.TEXTS, " ".join(["very"] * 90)]))
    rows = [tmp_path / f"{name}.parquet" for name in ("alone", "ray")]
    alone = demo.measure(file, tmp_path / "alone", rows=rows[0])
    on_two = demo.measure(file, tmp_path / "ray", engine=engine, rows=rows[1])
    assert rows[0].read_bytes() == rows[1].read_bytes()
    assert parquet.read_table(rows[1]).num_rows == on_two.read.texts * 6 > 0
    files = demo.everything(tmp_path / "alone")
    assert len([name for name in files if name.startswith("parts")]) == 5
    assert demo.everything(tmp_path / "ray") == files
    assert as_npz(on_two) == as_npz(alone)


def test_an_interrupt_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    texts, scratch = tmp_path / "texts.txt", Path(f"/tmp/r{os.getpid()}")
    texts.write_text("The door opened.\n" * 3000)
    scratch.mkdir()
    told = [
        "corpus",
        str(texts),
        "-m",
        "demo",
        "--engine",
        "ray",
        "--workers",
        "2",
        "--run",
        str(tmp_path / "run"),
    ]
    environment = {**os.environ, "TMPDIR": str(scratch), "HF_HUB_OFFLINE": "1"}
    environment.pop(clusters.ADDRESS, None)
    try:
        running = subprocess.Popen(
            [sys.executable, "-m", "attnscope", *told],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        until = time.monotonic() + 240
        while not list((tmp_path / "run").glob("parts/*.parquet")):
            assert running.poll() is None
            assert time.monotonic() < until
            time.sleep(0.2)
        processes = clusters.descendants(running.pid)
        assert len([each for each in processes if "ray::MapWorker" in command(each)]) == 2
        assert len(list(scratch.glob("attnscope-*"))) == 1, "a folder of the cluster"
        running.send_signal(signal.SIGINT)
        said, narrated = running.communicate(timeout=30)
        assert (running.returncode, said, narrated) == (130, b"", b"attnscope: interrupted\n")
        assert not list(scratch.iterdir())
        assert_gone(processes)
    finally:
        running.kill()
        scratch.rmdir()
