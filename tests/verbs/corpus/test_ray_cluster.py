"""Ray on several nodes of this machine: nodes, workers and the command are killed, and nothing is lost.

Runs where Ray is installed (`pip install "attnscope[ray]"`); the rest of its engine is tested without it.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import corpus_of_demo as demo
import letters
import pytest
from wire import KEYS, Wire

from attnscope.errors import InputError
from attnscope.results.stored.document import as_npz
from attnscope.session.listener import Quiet
from attnscope.verbs.corpus.engine import Engine
from attnscope.verbs.corpus.engine.local import WorkerBugError, local
from attnscope.verbs.corpus.engine.ray import cluster as clusters
from attnscope.verbs.corpus.engine.ray.nodes import Needs
from attnscope.verbs.corpus.engine.ray.pool import on_ray
from attnscope.verbs.corpus.splits import LEAST
from attnscope.verbs.corpus.store import Place, remote
from attnscope.verbs.corpus.texts import fetched

pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason='Ray is not installed: pip install "attnscope[ray]"'
)
SPECIMENS = Path(letters.__file__).parent
STORE = 80 * 2**20  # bytes: as little as Ray takes
WORDS = ("the", "a", "cat", "dog", "door", "garden", "opened", "slept", "green", "was", "watching", "it")


@dataclass
class Nodes:
    """A cluster whose head has no worker, and two nodes with a core, a pretended GPU and a `big` each."""

    cluster: Any
    nodes: list[Any] = field(default_factory=list)

    def add(self) -> None:
        more = {"num_gpus": 1, "resources": {"big": 1}, "object_store_memory": STORE}
        self.nodes.append(self.cluster.add_node(num_cpus=1, **more))

    def replace(self, number: int) -> None:
        """Another node in the place of this one, which is killed."""
        self.cluster.remove_node(self.nodes.pop(number), allow_graceful=False)
        self.add()

    def engine(self, **needs: float) -> Engine:
        return on_ray(self.cluster.address, None, Needs(needs or {"CPU": 1.0}), "cpu", fetched)


@pytest.fixture(scope="module")
def nodes(store: Wire) -> Iterator[Nodes]:
    """One for all tests, whose machines know how to reach the store; afterwards nothing of it is left."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", f"{SPECIMENS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        patched.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patched.delenv(clusters.ADDRESS, raising=False)
        for name, value in {**KEYS, "endpoint_url": store.address}.items():
            patched.setenv(f"FSSPEC_S3_{name.upper()}", value)
        patched.setenv("AWS_DEFAULT_REGION", "us-east-1")
        folder, others = clusters._folder(), {*clusters.descendants(os.getpid())}  # a browser of other tests
        (folder / "ray").mkdir()  # where Ray notes the last cluster, and makes no folder for it
        patched.setenv("RAY_TMPDIR", str(folder))
        head = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
        made = Nodes(Cluster(initialize_head=True, head_node_args={**head, "temp_dir": str(folder)}))
        made.add()
        made.add()
        yield made
        made.cluster.shutdown()
        clusters._remove(folder)
        left = [each for each in clusters.descendants(os.getpid()) if each not in others]
        assert_gone(
            [each for each in left if "chromium" not in command(each)]
        )  # which begins more as it runs


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


def test_what_is_killed_on_two_nodes_loses_nothing_and_counts_nothing_twice(
    nodes: Nodes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Half a pretended GPU for each worker: two on a node. A process, an actor and a node are killed."""
    given = list(letters.splits(*[("a" * (i + 1), "bc") for i in range(60)]))
    found, then = {}, 0
    for finished in nodes.engine(CPU=0.25, GPU=0.5, big=0.5)(
        letters.Letters(tmp_path, 0.7, str(tmp_path)), given, Quiet()
    ):
        assert finished.number not in found
        found[finished.number] = replace(finished, at_once=1)  # that grows with the workers
        first = letters.begun(tmp_path)
        if not then and len({each.process for each in first}) == 4:  # however long they take to come
            assert len({each.parent for each in first}) == 4
            assert {each.gpus for each in first} == {"0"}, "each node has one, which its workers share"
            os.kill(next_to_begin(tmp_path).process, signal.SIGKILL)
            then = len(found)
        if then and len(found) == then + 4:
            actor = next_to_begin(tmp_path).parent
            assert "ray::" in command(actor)
            os.kill(actor, signal.SIGKILL)
        if then and len(found) == then + 8:
            nodes.replace(0)
    assert then, "room for two on each node"
    assert found == {each.number: letters.counted(each) for each in given}
    times = [each.split for each in letters.begun(tmp_path)]
    assert len(times) >= len(given) + 3, "a process, an actor and a node were in the middle of a split"
    assert (
        len({each.process for each in letters.begun(tmp_path)}) >= 4 + 1 + 1
    )  # and those of a new node, if in time
    said, noise = capfd.readouterr()
    assert (said, noise) == ("", ""), noise


def test_what_ends_or_refuses_or_breaks_is_told_as_by_processes_of_this_machine(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list(letters.splits(("one", letters.DEADLY, "three"), ("four",)))
    recipe = letters.Letters(tmp_path, into=str(tmp_path))
    found = {each.number: each.name for each in nodes.engine()(recipe, given, Quiet())}
    assert found == {0: "0: f:0.1 3, f:0.2 deadly, f:0.3 5", 1: "1: f:1.1 4"}
    monkeypatch.setenv("PYTHONPATH", f"{SPECIMENS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert found == {each.number: each.name for each in local(1)(recipe, given, Quiet())}
    for trouble, kind in ((letters.REFUSED, InputError), (letters.BROKEN, WorkerBugError)):
        told = r"f:0\.1: refused" if kind is InputError else r"ZeroDivisionError: f:0\.1"
        with pytest.raises(kind, match=told):
            list(nodes.engine()(recipe, letters.splits((trouble,)), Quiet()))


def test_a_folder_that_a_node_does_not_see_is_refused_before_anything_is_measured(
    nodes: Nodes, tmp_path: Path
) -> None:
    """A process's own memory is such a folder; one that is not there at all is told as it is here."""
    for into, told in (
        (
            "memory://run",
            r" \(\w{6}\) does not see the run's folder 'memory://run': what was written there is",
        ),
        ("/dev/null/run", r"cannot write '/dev/null/run/seen-\w+': Not a directory"),
    ):
        with pytest.raises(InputError, match=told):
            list(nodes.engine()(letters.Letters(tmp_path, into=into), letters.splits(("one",)), Quiet()))
    assert not list(tmp_path.iterdir())


def test_where_no_machine_has_room_it_is_said_what_there_is(nodes: Nodes, tmp_path: Path) -> None:
    class ToldError(Exception): ...

    class Listener(Quiet):
        def notice(self, text: str) -> None:
            raise ToldError(text)

    with pytest.raises(ToldError) as caught:
        list(nodes.engine(CPU=2, big=1)(letters.Letters(tmp_path, into=str(tmp_path)), (), Listener()))
    assert str(caught.value) == (
        "no machine of the Ray cluster has CPU 2, big 1 for a worker "
        "(there is CPU 0, big 0; CPU 1, big 1): waiting for one"
    )


def test_a_corpus_is_the_same_to_the_last_bit_where_command_and_nodes_are_killed(
    nodes: Nodes, tmp_path: Path
) -> None:
    draw = random.Random(31)
    lines = (" ".join(draw.choices(WORDS, k=draw.randint(1, 14))) for _ in range(6000))
    (tmp_path / "texts.txt").write_text(f".\n{' ' * 100}\n".join(lines))  # blanks cost nothing
    measured = demo.measure(tmp_path / "texts.txt", tmp_path / "alone", rows=tmp_path / "alone.parquet")
    assert (tmp_path / "texts.txt").stat().st_size > 6 * LEAST

    def start() -> subprocess.Popen[bytes]:
        told = [
            "corpus",
            "texts.txt",
            "-m",
            "demo",
            "--measure",
            demo.MEASURES,
            "-l",
            "0,2",
            "--head",
            "1,4,7",
        ]
        told += ["--engine", "ray", "--run", "ray", "--rows", "ray.parquet", "-o", "ray.npz", "-q"]
        surroundings = {**os.environ, clusters.ADDRESS: nodes.cluster.address, "HF_HUB_OFFLINE": "1"}
        return subprocess.Popen([sys.executable, "-m", "attnscope", *told], cwd=tmp_path, env=surroundings)

    def parts() -> int:
        return len(list((tmp_path / "ray").glob("parts/*.parquet")))

    killed = 0
    running = start()
    try:
        for victim in ("command", "node"):
            before, until = parts(), time.monotonic() + 200
            while parts() == before and running.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.05)
            time.sleep(draw.uniform(0, 1))
            killed += running.poll() is None
            if victim == "node":
                nodes.replace(draw.randrange(2))
            else:
                running.kill()
                running.wait()
                running = start()
        assert running.wait(200) == 0
    finally:
        running.kill()
    assert killed == 2, "it was through before"
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "alone.parquet").read_bytes()
    assert demo.everything(tmp_path / "ray") == demo.everything(tmp_path / "alone")
    assert (tmp_path / "ray.npz").read_bytes() == as_npz(measured)


@pytest.mark.slow
def test_texts_and_run_may_lie_in_an_object_store(
    nodes: Nodes, store: Wire, bucket: Place, tmp_path: Path
) -> None:
    """As a job of Ray's runs the command: the address of the cluster in its environment, and nothing else."""
    lines = "".join(f"The old dog sat on table {i} and slept.\n{' ' * 200}\n" for i in range(900)).encode()
    (tmp_path / "texts.txt").write_bytes(lines)
    demo.measure(tmp_path / "texts.txt", tmp_path / "alone", measures="entropy")
    (bucket / "texts.txt").write(lines)
    store.log.clear()
    told = ["corpus", f"{bucket}/texts.txt", "-m", "demo", "--measure", "entropy", "-l", "0,2"]
    told += ["--head", "1,4,7", "--engine", "ray", "--run", f"{bucket}/run", "-o", "s3.npz", "-q"]
    surroundings = {**os.environ, clusters.ADDRESS: nodes.cluster.address, "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-m", "attnscope", *told], cwd=tmp_path, env=surroundings, check=True)
    here = {each.name: each.read_bytes() for each in (tmp_path / "alone" / "parts").iterdir()}
    there = bucket / "run" / "parts"
    assert {name: (there / name).read() for name in there.names()} == here
    assert len(here) > 1
    looked_at, tails = len(lines), len(here) * remote.TAIL
    assert store.given("/texts.txt") <= looked_at + len(lines) + tails, (
        "by the command first, once by workers"
    )
    assert (tmp_path / "s3.npz").exists()


def test_an_interrupt_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    texts, scratch = tmp_path / "texts.txt", Path(f"/tmp/r{os.getpid()}")
    texts.write_text("The door opened.\n" * 400_000)  # not through before it is interrupted
    scratch.mkdir()
    told = ["corpus", str(texts), "-m", "demo", "-l", "0", "--measure", "previous", "--engine", "ray"]
    told += ["--workers", "2"]
    environment = {**os.environ, "TMPDIR": str(scratch), "HF_HUB_OFFLINE": "1"}
    environment.pop(clusters.ADDRESS, None)
    try:
        running = subprocess.Popen(
            [sys.executable, "-m", "attnscope", *told, "--run", str(tmp_path / "run")],
            env=environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # off in a background
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
        assert (running.returncode, said) == (130, b"")
        assert narrated.splitlines()[-1].startswith(b"attnscope: interrupted: what is measured is kept in ")
        assert not list(scratch.iterdir())
        assert_gone(processes)
    finally:
        running.kill()
        scratch.rmdir()
