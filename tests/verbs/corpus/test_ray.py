"""What the engine of many machines refuses, and how it cuts a corpus up; Ray itself is not needed here."""

import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import letters
import pytest
from checkpoints import tiny_bert

from attnscope.errors import InputError
from attnscope.process.standard_error import hushed
from attnscope.session.request import ModelRequest
from attnscope.verbs.corpus import identity, texts
from attnscope.verbs.corpus.answer import CorpusQuestion, engine_of
from attnscope.verbs.corpus.engine import Finished, Span, Split
from attnscope.verbs.corpus.engine.ray import nodes
from attnscope.verbs.corpus.engine.ray.cluster import check_answers, descendants, environment, own_signals
from attnscope.verbs.corpus.engine.ray.nodes import CheckedRecipe, Needs, check_same_texts
from attnscope.verbs.corpus.engine.ray.pool import Actor, packed, unpacked, windows
from attnscope.verbs.corpus.source import Form, Source
from attnscope.verbs.corpus.store import place_of
from attnscope.verbs.corpus.texts import Reading


@dataclass(frozen=True)
class Named(letters.Letters):
    """A recipe that names a model, as that of a corpus does."""

    request: ModelRequest = field(default_factory=ModelRequest)


def question(**more: Any) -> CorpusQuestion:
    return CorpusQuestion((Path("texts.txt"),), **{"engine": "ray", **more})


MAP = '{"": "cuda:0", "encoder": 2}'


@pytest.mark.parametrize(
    ("asked", "request_", "told"),
    [
        ({"engine": "rya"}, {}, "unknown --engine 'rya': local, ray"),
        ({"engine": "local", "ray_address": "auto"}, {}, "--ray-address goes with --engine ray: give both"),
        ({"engine": "local", "ray_resources": "CPU=1"}, {}, "--ray-resources goes with --engine ray"),
        ({"workers": 0}, {}, "--workers is 0: with --engine ray it takes at least 1"),
        ({}, {"device": "cuda:1"}, "--device is cuda:1: with --engine ray a worker is given its own: cuda"),
        ({}, {"device": "mps"}, "--device is mps"),
        ({"ray_resources": "GPU"}, {}, "--ray-resources is 'GPU': it takes NAME=AMOUNT,..., as in GPU=0.5"),
        ({"ray_resources": "GPU=1,GPU=2"}, {}, "--ray-resources is 'GPU=1,GPU=2': it takes NAME=AMOUNT"),
        ({"ray_resources": "memory=much"}, {}, "--ray-resources is 'memory=much': it takes NAME=AMOUNT"),
        ({"ray_resources": "CPU=-1"}, {}, "--ray-resources is 'CPU=-1': it takes NAME=AMOUNT"),
        ({"ray_resources": "GPU=1.5"}, {}, "--ray-resources GPU=1.5: above 1 Ray gives whole ones only"),
        (
            {"ray_resources": "GPU=2"},
            {"device_map": MAP},
            "--device-map names cuda:2, and a worker's GPUs are numbered from 0: it is given 2",
        ),
    ],
)
def test_what_an_engine_cannot_do_is_said_at_once(
    asked: dict[str, Any], request_: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError) as caught:
        engine_of(question(**asked), ModelRequest(**(request_ or {"device": "cpu"})))
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("written", "device", "spread", "options"),
    [
        (None, "cpu", None, {"num_cpus": 1, "resources": {}}),
        (None, "cuda", None, {"num_cpus": 1, "num_gpus": 1, "resources": {}}),
        (None, "npu", None, {"num_cpus": 1, "resources": {"NPU": 1}}),
        ("GPU=0.25,CPU=0.5", "cuda", None, {"num_cpus": 0.5, "num_gpus": 0.25, "resources": {}}),
        ("big = 2, CPU=0", "cpu", None, {"num_cpus": 0, "resources": {"big": 2}}),
        ("memory=2GB", "cpu", None, {"num_cpus": 1, "memory": 2 * 10**9, "resources": {}}),
        (None, "auto", '{"": "cuda:1", "encoder": 0}', {"num_cpus": 1, "num_gpus": 2, "resources": {}}),
        ("GPU=4", "auto", MAP, {"num_cpus": 1, "num_gpus": 4, "resources": {}}),
        (None, "auto", '{"": "cpu"}', {"num_cpus": 1, "resources": {}}),
    ],
)
def test_a_worker_takes_what_is_written_over_what_its_device_needs(
    written: str | None, device: str, spread: str | None, options: dict[str, Any]
) -> None:
    assert Needs.of(written, ModelRequest(device=device, device_map=spread)).options() == options


def test_there_is_room_on_each_machine_for_what_is_scarcest_there() -> None:
    needs = Needs({"CPU": 1.0, "GPU": 0.2, "big": 0.0})
    machines = [{"CPU": 64.0, "GPU": 1.0}, {"CPU": 3.0, "GPU": 8.0}, {"CPU": 16.0}, {}]
    assert [needs.room([each]) for each in machines] == [5, 3, 0, 0]
    assert needs.room(machines) == 8


def test_a_ray_of_this_machine_gives_what_its_workers_take(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Needs({"CPU": 0.5}).of_this_machine(5, 2) == {"num_cpus": 3, "num_gpus": 0}
    assert Needs({"CPU": 0.5}).of_this_machine(None, 2) == {"num_cpus": 2, "num_gpus": 0}
    with pytest.raises(InputError, match="a Ray that is started here has no big: name a cluster that has"):
        Needs({"CPU": 1.0, "big": 1.0}).of_this_machine(None, 2)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(InputError, match="there is no GPU here: name a cluster with --ray-address"):
        Needs({"CPU": 1.0, "GPU": 0.5}).of_this_machine(None, 2)


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'^--engine ray needs Ray: pip install "attnscope\[ray\]"$'):
        engine_of(question(), ModelRequest(device="cpu"))


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:first", "ray://head:10001"])
def test_what_is_no_address_is_no_cluster_that_is_down(address: str) -> None:
    with pytest.raises(InputError, match=r"^--ray-address is '.*': it takes HOST:PORT"):
        check_answers(address)


def test_where_nobody_listens_is_told_in_one_line_and_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_answers(f"127.0.0.1:{port}")
    started = time.monotonic()
    with pytest.raises(InputError, match=rf"^no Ray cluster at '127\.0\.0\.1:{port}': Connection refused$"):
        check_answers(f"127.0.0.1:{port}")
    assert time.monotonic() - started < 2


def test_a_machine_with_another_release_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = CheckedRecipe.of(letters.Letters(tmp_path))
    assert isinstance(recipe.open(), letters.Counting)
    real = metadata.version
    monkeypatch.setattr(identity.metadata, "version", lambda name: "2.0.0" if name == "torch" else real(name))
    monkeypatch.setattr(nodes.platform, "node", lambda: "node-7")
    told = f"torch: 2.0.0 on node-7, {real('torch')} here: every machine of the cluster needs the same"
    with pytest.raises(InputError) as caught:
        recipe.open()
    assert str(caught.value) == told


def test_a_machine_with_another_model_of_the_same_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    tiny_bert(here / "model")
    shutil.copytree(here, there)
    monkeypatch.chdir(here)
    recipe = CheckedRecipe.of(Named(tmp_path, request=ModelRequest("./model")))
    recipe.open()
    monkeypatch.chdir(there)
    recipe.open()
    weights = there / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(InputError, match=r"^weights of \./model: sha256:\w{12} on .*, sha256:\w{12} here"):
        recipe.open()
    shutil.copy(here / "model" / "model.safetensors", weights)
    config = there / "model" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "layer_norm_eps": 1e-3}))
    with pytest.raises(InputError, match=r"^settings of \./model: "):
        recipe.open()


def test_a_corpus_of_any_size_is_handed_over_in_windows() -> None:
    given = [("a" * (1000 if i == 3 else 100),) for i in range(7)]
    size = packed(next(letters.splits(given[0])), {}).nbytes
    taken: list[int] = []

    def splits():  # type: ignore[no-untyped-def]
        for split in letters.splits(*given):
            taken.append(split.number)
            yield split

    cut = windows(splits(), size=int(size * 2.5))
    assert len(next(cut)) == 2
    assert taken == [0, 1, 2]  # no further than it must look
    assert [len(each) for each in cut] == [1, 1, 2, 1]
    assert [len(each) for each in windows(letters.splits(*given), most=3)] == [3, 3, 1]
    assert list(windows(iter(()))) == []


def test_bytes_come_through_a_table_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = f"{Path(letters.__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    monkeypatch.setenv("PYTHONPATH", beside)
    monkeypatch.chdir("/")
    actor = Actor(CheckedRecipe.of(letters.Letters(tmp_path, into=".")), str(tmp_path), texts.fetched)
    assert Path.cwd() == tmp_path  # names are looked for from where the command was given
    split = next(letters.splits(("one", "three")))
    finished = unpacked(actor(packed(split, {})))
    assert [(each.number, each.texts, each.name) for each in finished] == [(0, 2, "0: f:0.1 3, f:0.2 5")]
    with pytest.raises(InputError, match=r"f:0\.1: refused"):
        unpacked(actor(packed(next(letters.splits((letters.REFUSED,))), {})))
    late = Actor(CheckedRecipe.of(letters.Letters(tmp_path, into="elsewhere")), str(tmp_path), texts.fetched)
    with pytest.raises(
        InputError, match=r" does not see the run's folder '.*/elsewhere': texts and --run must"
    ):
        unpacked(late(packed(split, {})))


def test_what_an_actor_measures_next_is_read_while_it_measures_and_it_measures_one_at_a_time(
    tmp_path: Path,
) -> None:
    place = place_of(f"memory://{tmp_path.name}/texts.txt")
    place.write(b"one\ntwo\nfour\n")
    source = Source(place, "t", Form.LINES)
    (tmp_path / "run").mkdir()
    read, busy = threading.Semaphore(0), threading.Lock()

    def reading(split: Split) -> Split:
        got = texts.fetched(split)
        read.release()
        return got

    class Measuring:
        """The model, which waits until the other split is read as well."""

        def measure(self, split: Split) -> Finished:
            assert busy.acquire(blocking=False), "two splits at once"
            both = all(read.acquire(timeout=30) for _ in range(0 if split.number else 2))
            busy.release()
            assert both, "the next split is read only afterwards"
            assert split.spans[0].held is not None
            return Finished(split.number, len(list(Reading(split))))

        def stop(self) -> None: ...

    recipe = CheckedRecipe.of(letters.Letters(tmp_path, into=str(tmp_path / "run")))
    actor = Actor(recipe, str(tmp_path), reading)
    actor.worker = Measuring()  # type: ignore[assignment]
    tables = [packed(Split(i, (Span(0, source, 4 * i, 4 * i + 4),)), {}) for i in range(2)]
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(actor, tables[0])
        while not actor.turn.locked():
            time.sleep(0.01)
        answers = [first, threads.submit(actor, tables[1])]
        assert [unpacked(each.result())[0].texts for each in answers] == [1, 1]


def test_a_worker_reads_the_very_file_that_the_command_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    content = bytearray(b"".join(b"%07d\n" % i for i in range(40_000)))  # longer than all samples together
    file.write_bytes(content)
    (table,) = next(windows([Split(0, (Span(0, Source(place_of(file), "t", Form.LINES), 0, 100),))]))
    _, glances = pickle.loads(table["held"][0].as_py())
    assert list(glances) == [place_of(file)]
    check_same_texts(glances)
    content[-2:-1] = b"x"
    file.write_bytes(content)
    with pytest.raises(
        InputError, match=r"texts\.txt' is another file on .* \(320000 bytes, .*, not 320000 b"
    ):
        check_same_texts(glances)
    file.unlink()
    with pytest.raises(InputError, match=r" does not see '.*texts\.txt': texts and --run must lie where"):
        check_same_texts(glances)


def test_what_is_written_past_python_is_not_seen_and_what_python_writes_is(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", os.fdopen(2, "w", buffering=1, closefd=False))
    os.write(2, b"before ")
    with hushed():
        os.write(2, b"noise ")
        subprocess.run(["sh", "-c", "echo noise >&2"], check=True)
        print("told", end=" ", file=sys.stderr, flush=True)
    os.write(2, b"after")
    assert capfd.readouterr().err == "before told after"


def test_signals_and_environment_are_left_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_USER", "stays")
    monkeypatch.delenv("OF_OURS", raising=False)
    before = signal.getsignal(signal.SIGTERM)
    with own_signals(), environment({"OF_THE_USER": "changed", "OF_OURS": "there"}):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert (os.environ["OF_THE_USER"], os.environ["OF_OURS"]) == ("stays", "there")
    assert signal.getsignal(signal.SIGTERM) is before
    assert "OF_OURS" not in os.environ


def test_children_and_their_children_are_found() -> None:
    shell = subprocess.Popen(["sh", "-c", "sleep 30 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    child = int(shell.stdout.readline())
    try:
        found = descendants(os.getpid())
        assert found.index(shell.pid) < found.index(child)
        assert os.getpid() not in found
    finally:
        for each in (child, shell.pid):
            os.kill(each, signal.SIGKILL)
        shell.wait()
        shell.stdout.close()
    assert descendants(child) == []
