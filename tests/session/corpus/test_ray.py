"""What the engine of many machines refuses, and how it cuts a corpus up; Ray itself is not needed here."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

import letters
import pytest
from checkpoints import tiny_bert

from attnscope.errors import InputError
from attnscope.process.hush import hushed
from attnscope.session.corpus.engine import machine
from attnscope.session.corpus.engine.ray import pool
from attnscope.session.corpus.engine.ray.cluster import check_answers, descendants
from attnscope.session.corpus.engine.ray.pool import CheckedRecipe
from attnscope.session.corpus.engine.ray.quiet import environment, own_signals
from attnscope.session.corpus.question import engine_of
from attnscope.session.request import ModelRequest


@dataclass(frozen=True)
class Named(letters.Letters):
    """A recipe that names a model, as that of a corpus does."""

    request: ModelRequest = field(default_factory=ModelRequest)


@pytest.mark.parametrize(
    ("name", "address", "workers", "device", "told"),
    [
        ("rya", None, None, "cpu", "unknown --engine 'rya': local, ray"),
        ("local", "auto", None, "cpu", "--ray-address goes with --engine ray: give both"),
        ("ray", None, 0, "cpu", "--workers is 0: with --engine ray it takes at least 1"),
        ("ray", None, 2, "cuda:1", "--device is cuda:1: with --engine ray each worker gets a GPU"),
        ("ray", None, 2, "mps", "--device is mps"),
    ],
)
def test_what_an_engine_cannot_do_is_said_at_once(
    name: str, address: str | None, workers: int | None, device: str, told: str
) -> None:
    with pytest.raises(InputError) as caught:
        engine_of(name, address, workers, device)
    assert str(caught.value).startswith(told)


def test_processes_of_this_machine_are_what_is_meant_by_nothing() -> None:
    assert engine_of("local", None, None, "cuda:1") is None


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'^--engine ray needs Ray: pip install "attnscope\[ray\]"$'):
        engine_of("ray", None, None, "cpu")


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
    monkeypatch.setattr(machine.metadata, "version", lambda name: "2.0.0" if name == "torch" else real(name))
    monkeypatch.setattr(pool.platform, "node", lambda: "node-7")
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
    monkeypatch.chdir("/")
    recipe.open()
    assert Path.cwd() == here  # the folder is looked for from where it was named
    other = replace(recipe, beside=str(there))
    other.open()
    weights = there / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(InputError, match=r"^weights of \./model: sha256:\w{12} on .*, sha256:\w{12} here"):
        other.open()
    shutil.copy(here / "model" / "model.safetensors", weights)
    config = there / "model" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "layer_norm_eps": 1e-3}))
    with pytest.raises(InputError, match=r"^settings of \./model: "):
        other.open()


def test_a_corpus_of_any_size_is_handed_over_in_windows() -> None:
    pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'attnscope[ray]'")
    from attnscope.session.corpus.engine.ray.pool import packed, windows

    given = [("a" * (1000 if i == 3 else 100),) for i in range(7)]
    size = packed(next(letters.splits(given[0]))).nbytes
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
    pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'attnscope[ray]'")
    from attnscope.session.corpus.engine.ray.pool import Actor, packed, unpacked

    monkeypatch.setenv("PYTHONPATH", str(Path(letters.__file__).parent))
    actor = Actor(letters.Letters(tmp_path))
    split = next(letters.splits(("one", "three")))
    finished = unpacked(actor(packed(split)))
    assert [(each.number, each.texts, each.name) for each in finished] == [(0, 2, "0: f:0.1 3, f:0.2 5")]
    with pytest.raises(InputError, match=r"f:0\.1: refused"):
        unpacked(actor(packed(next(letters.splits((letters.REFUSED,))))))


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
