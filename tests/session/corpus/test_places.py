"""Workers of a machine: one for each GPU, which has it for itself; for each core where there is none."""

import os
from pathlib import Path

import fake_recipe
import pytest
import torch

from attnscope.session.corpus.engine import local as engines
from attnscope.session.corpus.engine.places import VISIBLE, cores, gpus, surroundings, usual_workers

COUNT = cores()


@pytest.mark.parametrize(
    ("there", "seen", "device", "shared", "workers"),
    [
        (0, None, "auto", (), COUNT),
        (0, "", "auto", (), COUNT),  # hidden from everybody
        (3, None, "auto", ("0", "1", "2"), 3),
        (3, None, "cuda", ("0", "1", "2"), 3),
        (2, "5, 7", "auto", ("5", "7"), 2),
        (1, "GPU-8932f937", "cuda", ("GPU-8932f937",), 1),
        (3, None, "cpu", (), COUNT),
        (3, None, "cuda:2", (), 1),
        (0, None, "cuda", (), 1),  # the worker says what is wrong
    ],
)
def test_there_is_one_worker_for_each_gpu_and_else_one_for_each_core(
    there: int,
    seen: str | None,
    device: str,
    shared: tuple[str, ...],
    workers: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.delenv(VISIBLE, raising=False)
    if seen is not None:
        monkeypatch.setenv(VISIBLE, seen)
    assert gpus(device) == shared
    assert usual_workers(device) == workers


def test_a_mac_with_a_gpu_has_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert (usual_workers("auto"), usual_workers("mps"), usual_workers("cpu")) == (1, 1, COUNT)


def test_each_worker_sees_its_own_gpu_alone_and_more_workers_share_in_turn() -> None:
    assert [surroundings(i, ("5", "7")) for i in range(3)] == [
        {VISIBLE: "5"},
        {VISIBLE: "7"},
        {VISIBLE: "5"},
    ]
    assert surroundings(0, ("5",)) == surroundings(0, ()) == {}


def test_what_a_worker_is_told_of_gpus_reaches_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str | None] = []
    start = engines.subprocess.Popen

    def noted(*given: object, env: dict[str, str], **options: object) -> object:
        told.append(env.get(VISIBLE))
        return start(*given, env=env, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(engines.subprocess, "Popen", noted)
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(fake_recipe.__file__))
    for i, wanted in enumerate(("5", "7")):
        worker = engines.Worker(fake_recipe.FakeRecipe(tmp_path), surroundings(i, ("5", "7")))
        worker.process = engines._started(worker.environment)
        worker.stop()
        worker.process.wait()
        assert told[-1] == wanted
