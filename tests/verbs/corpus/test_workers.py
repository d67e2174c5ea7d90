"""Workers of this machine: every split once, whoever dies; one for each accelerator or core."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import corpus_of_demo as demo
import fake_recipe
import letters
import numpy as np
import pytest
import torch

from attnscope.errors import InputError
from attnscope.model.loading import memory
from attnscope.session.listener import Quiet
from attnscope.session.request import ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.verbs.corpus import answer as question
from attnscope.verbs.corpus import splits as planning
from attnscope.verbs.corpus.answer import CorpusQuestion, corpus_of, device_for
from attnscope.verbs.corpus.engine import Split
from attnscope.verbs.corpus.engine import local as engines
from attnscope.verbs.corpus.engine.local import cores, described, local, places, usual_workers

LINES = ("one", "two", "dies once", "four", "five", "six", "seven", "dies", "nine", "ten", "eleven")


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the recipe of the tests too."""
    monkeypatch.setenv("PYTHONPATH", str(Path(fake_recipe.__file__).parent))


def splits(lines: tuple[str, ...] = LINES, size: int = 3) -> Iterator[Split]:
    return letters.splits(*(lines[start : start + size] for start in range(0, len(lines), size)))


def run(workers: int, recipe: fake_recipe.FakeRecipe, lines: tuple[str, ...] = LINES) -> dict[int, str]:
    found: dict[int, str] = {}
    for each in engines.local(workers)(recipe, splits(lines), demo.Quiet()):
        assert each.number not in found, "a split came twice"
        found[each.number] = each.name
    return found


def test_a_worker_that_dies_loses_nothing_and_a_text_that_kills_twice_is_named(tmp_path: Path) -> None:
    found = run(2, fake_recipe.FakeRecipe(tmp_path))
    assert found == {
        0: "['one', 'two', 'dies once'] []",
        1: "['four', 'five', 'six'] []",
        2: "['seven', 'nine'] [1]",
        3: "['ten', 'eleven'] []",
    }
    processes = [each for each in tmp_path.iterdir() if each.name.isdigit()]
    assert len(processes) > 2
    assert not any(_state(each.name) for each in processes)


def _state(process: str) -> str:
    return subprocess.run(["ps", "-o", "args=", "-p", process], capture_output=True, text=True).stdout


def test_what_is_no_texts_fault_ends_the_run_with_what_it_is(tmp_path: Path) -> None:
    recipe = fake_recipe.FakeRecipe(tmp_path)
    with pytest.raises(engines.WorkerBugError, match="ZeroDivisionError: a mistake of ours"):
        run(1, recipe, ("one", "bug"))
    with pytest.raises(InputError, match="the model cannot read anything"):
        run(2, recipe, ("refused",))
    with pytest.raises(InputError, match="no such model"):
        run(2, fake_recipe.FakeRecipe(tmp_path, refuses="no such model"))
    with pytest.raises(InputError, match="workers end before the model is open"):
        run(1, fake_recipe.FakeRecipe(tmp_path, breaks=True))
    with pytest.raises(InputError, match="--workers is 0"):
        engines.local(0)


def test_splits_are_taken_as_there_is_room_and_not_all_at_once(tmp_path: Path) -> None:
    taken = []

    def many() -> Iterator[Split]:
        for split in splits(("text",) * 60):
            taken.append(split.number)
            yield split

    for done, _ in enumerate(engines.local(1)(fake_recipe.FakeRecipe(tmp_path), many(), demo.Quiet()), 1):
        assert len(taken) <= done + 2
    assert len(taken) == 20


def test_workers_end_with_whoever_started_them(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; import fake_recipe, test_workers_splits as made\n"
        "from attnscope.verbs.corpus.engine.local import local\n"
        "from attnscope.session.listener import Quiet\n"
        "for _ in local(2)(fake_recipe.FakeRecipe(Path(sys.argv[1])), made.slow(), Quiet()): pass\n"
    )
    (tmp_path / "test_workers_splits.py").write_text(
        "import time\nfrom dataclasses import replace\nimport letters\n"
        "def slow():\n    for i in range(10_000):\n        time.sleep(0.02)\n"
        "        yield replace(next(letters.splits(('one',))), number=i)\n"
    )
    notes = tmp_path / "notes"
    notes.mkdir()
    path = f"{Path(fake_recipe.__file__).parent}:{tmp_path}"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(notes)], env={**_environment(), "PYTHONPATH": path}
    )
    until = time.monotonic() + 60
    while len(list(notes.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    numbers = [each.name for each in notes.iterdir()]
    assert len(numbers) == 2
    while any(_state(each) for each in numbers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_state(each) for each in numbers)


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def test_one_worker_and_two_leave_the_bytes_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "LEAST", 90)
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(demo.TEXTS))
    demo.measure(file, tmp_path / "0")
    expected = demo.everything(tmp_path / "0")
    assert len(expected) > 3, "several parts"
    for workers in (1, 2):
        demo.measure(file, tmp_path / str(workers), engine=engines.local(workers))
        assert demo.everything(tmp_path / str(workers)) == expected


COUNT = cores()
TEXTS = [
    f"The {noun} saw the {other} ." for noun in ("dog", "cat", "bird", "man") for other in ("cow", "door")
]


def with_accelerators(kind: str | None, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"cpu": 1} if kind is None else {kind: count, "cpu": 1}
    monkeypatch.setattr(memory, "devices", lambda: kinds)


@pytest.mark.parametrize(
    ("kind", "count", "device", "shared", "workers"),
    [
        (None, 0, "auto", ("cpu",), COUNT),
        ("cuda", 3, "auto", ("cuda:0", "cuda:1", "cuda:2"), 3),
        ("cuda", 3, "cuda", ("cuda:0", "cuda:1", "cuda:2"), 3),
        ("cuda", 3, "cuda:2", ("cuda:2",), 1),
        ("cuda", 1, "auto", ("cuda",), 1),
        ("cuda", 3, "cpu", ("cpu",), COUNT),
        ("mps", 1, "auto", ("mps",), 1),
        ("mps", 1, "cpu", ("cpu",), COUNT),
    ],
)
def test_there_is_one_worker_for_each_accelerator_and_else_one_for_each_core(
    kind: str | None, count: int, device: str, shared: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_accelerators(kind, count, monkeypatch)
    assert places(device) == shared
    assert usual_workers(device) == workers


@pytest.mark.parametrize("device", ["cuda", "cuda:3", "mps", "gpu"])
def test_a_device_that_is_not_there_is_said_before_any_worker_is_started(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_accelerators(None, 0, monkeypatch)
    with pytest.raises(InputError, match=r"no device|unknown device"):
        places(device)


@pytest.mark.parametrize(
    ("kind", "engine", "device", "expected"),
    [
        ("cuda", "ray", "auto", "cuda"),
        ("mps", "ray", "auto", "cpu"),
        (None, "ray", "auto", "cpu"),
        ("cuda", "ray", "cpu", "cpu"),
        ("cuda", "local", "auto", "cuda"),
    ],
)
def test_what_auto_is_for_an_engine(
    kind: str | None, engine: str, device: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_accelerators(kind, 2, monkeypatch)
    assert device_for(engine, device) == expected


def test_each_worker_has_a_device_and_more_workers_share_them_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(fake_recipe.__file__).parent))
    splits = letters.splits(*[("text",)] * 9)
    engine = local(3, ("cuda:0", "cuda:1"))
    assert len(list(engine(fake_recipe.FakeRecipe(tmp_path), splits, Quiet()))) == 9
    seen = sorted(each.read_text() for each in tmp_path.iterdir() if each.name.isdigit())
    assert set(seen) <= {"cuda:0", "cuda:1"}
    assert seen.count("cuda:0") <= 2
    assert seen.count("cuda:1") <= 1


# on the emulated accelerator ------------------------------------------------------------------------


@pytest.fixture
def two(emulated: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two emulated accelerators, here and in the processes that are started."""
    for name, value in emulated.environment("cuda").items():
        monkeypatch.setenv(name, value)
    with emulated.present("cuda"):
        yield emulated


def measured(folder: Path, run: str, **how: Any) -> Any:
    texts = folder / "texts.txt"
    texts.write_text("\n".join([*TEXTS, " " * 1000] * 200) + "\n")  # several splits
    workers = how.pop("workers", None)
    asked = CorpusQuestion((texts,), workers=workers, run=folder / run, measures="entropy,distance")
    return corpus_of(ModelRequest("demo", **how), asked, Wanted(layer="1"), Quiet())


def manifest(folder: Path, run: str) -> Any:
    return json.loads((folder / run / "manifest.json").read_text())


def test_a_corpus_is_measured_on_every_accelerator_as_on_the_processor(two: Any, tmp_path: Path) -> None:
    plain = measured(tmp_path, "plain", device="cpu", workers=1)
    shared = measured(tmp_path, "shared")
    alone = measured(tmp_path, "alone", device="emulated:1", workers=1)
    assert manifest(tmp_path, "shared")["devices"] == ["emulated:0", "emulated:1"]
    assert manifest(tmp_path, "alone")["devices"] == ["emulated:1"]
    assert "auto" not in str(manifest(tmp_path, "shared")["identity"])
    assert shared.provenance.device == alone.provenance.device == "emulated"
    assert plain.provenance.device == "cpu"
    for name, there in plain.measures.items():
        assert np.allclose(there.values, shared.measures[name].values, atol=1e-5)
    parts = [sorted((tmp_path / run / "parts").iterdir()) for run in ("shared", "alone")]
    assert len(parts[0]) > 1
    assert [each.name for each in parts[0]] == [each.name for each in parts[1]]  # of digests


def test_a_run_does_not_go_on_where_its_accelerator_is_missing(tmp_path: Path, two: Any) -> None:
    measured(tmp_path, "run", workers=1)
    with pytest.raises(InputError, match=r'device is "emulated.*" there and "cpu" here'):
        measured(tmp_path, "run", device="cpu", workers=1)
    torch.emulated.there = False  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r'device is "emulated.*" there and "cpu" here'):
        measured(tmp_path, "run", workers=1)


def test_a_card_of_another_name_is_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with_accelerators("cuda", 2, monkeypatch)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"NVIDIA {device}")
    assert described("auto") == described("cuda") == "cuda (NVIDIA cuda:0)"
    assert described("cuda:1") == "cuda (NVIDIA cuda:1)"
    assert described("cpu") == "cpu"


def test_a_corpus_takes_a_map_but_not_one_that_follows_what_is_free(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--device-map auto follows what is free"):
        measured(tmp_path, "run", device_map="auto")
    spread = {"": "cpu", "encoder.layer.1": "disk"}
    with pytest.raises(InputError, match="--workers is 2: with --device-map one model has all devices"):
        measured(tmp_path, "run", device_map=spread, workers=2)
    found = measured(tmp_path, "run", device_map=spread, workers=0)
    plain = measured(tmp_path, "plain", device="cpu", workers=0)
    assert found.provenance.device == "cpu+disk"
    assert (found.measures["entropy"].values == plain.measures["entropy"].values).all()


def test_few_texts_are_read_by_this_process_and_those_of_a_run_that_was_cut_off_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("A dog sleeps.\nThe door opened.\n", "utf-8")
    asked = CorpusQuestion((texts,), run=tmp_path / "run", measures="entropy")
    started: list[str] = []

    def noted(how: str) -> Callable[..., Any]:
        def engine(*given: Any) -> Any:
            started.append(how)
            raise KeyboardInterrupt

        return engine

    monkeypatch.setattr(question, "alone", noted("here"))
    monkeypatch.setattr(question, "local", noted("another"))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            corpus_of(ModelRequest("demo", device="cpu"), asked, Wanted(), Quiet())
    assert started == ["here", "another"]
    texts.write_text("A dog sleeps.\n" * (question.FEW + 1), "utf-8")
    with pytest.raises(KeyboardInterrupt):
        corpus_of(
            ModelRequest("demo", device="cpu"), replace(asked, run=tmp_path / "many"), Wanted(), Quiet()
        )
    assert started == ["here", "another", "another"]
