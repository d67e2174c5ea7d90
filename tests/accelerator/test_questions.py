"""Every kind of question, on an accelerator with float64 and on one without: the processor's answer.

All are asked in one process, of the processor and of both accelerators (`asking`); their documents are held
side by side (`alike`).
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .alike import differences
from .asking import Answer, answered, ask, faults, invoked
from .questions import EVERY, GATE, Question, materials

ROOT = Path(__file__).parents[2]


def test_every_kind_of_question_has_the_processors_answer_on_every_accelerator(
    emulated: Any, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.accelerator.asking", str(tmp_path), "cpu", "cuda", "mps"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    right = answered(tmp_path, "cpu")
    assert set(right) == {each.name for each in GATE}
    assert [each.name for each in right.values() if each.code] == []
    wrong = {
        (kind, name): found
        for kind in emulated.KINDS
        for name, answer in answered(tmp_path, kind).items()
        if (found := faults(answer, right[name]))
    }
    assert wrong == {}
    assert all(set(answered(tmp_path, kind)) == set(right) for kind in emulated.KINDS)


@pytest.fixture
def material(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return materials(tmp_path)


HEAD = next(each for each in GATE if each.name == "head")


@pytest.fixture
def right(material: dict[str, str], tmp_path: Path) -> Answer:
    return ask(HEAD, "cpu", material, tmp_path)


@pytest.mark.parametrize(
    "operation", ["aten::addmm", "aten::_softmax", "aten::native_batch_norm", "aten::bmm"]
)
def test_an_accelerator_that_answers_wrongly_by_a_thousandth_is_noticed(
    emulated: Any, right: Answer, material: dict[str, str], tmp_path: Path, operation: str
) -> None:
    with emulated.present("cuda"):
        assert faults(ask(HEAD, "emulated", material, tmp_path), right) == []
        with emulated.spoiled(operation, 1e-3):
            assert faults(ask(HEAD, "emulated", material, tmp_path), right)


def test_a_tensor_that_is_left_on_the_processor_is_noticed(
    emulated: Any, right: Answer, material: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.nn.Embedding, "_apply", lambda self, *_given, **_named: self)
    with emulated.present("cuda"):
        assert "same device" in faults(ask(HEAD, "emulated", material, tmp_path), right)[0]


def test_float64_on_a_device_that_has_none_is_noticed(
    emulated: Any, right: Answer, material: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Question("wide", (*HEAD.arguments, "--dtype", "float64"))
    with emulated.present("mps"):
        refused = ask(asked, "emulated", material, tmp_path)
    assert refused.code != 0
    assert "float64" in refused.said
    with emulated.present("cuda"):
        assert ask(asked, "emulated", material, tmp_path).code == 0


def test_the_second_device_answers_alone_and_as_the_first(
    emulated: Any, right: Answer, material: dict[str, str], tmp_path: Path
) -> None:
    with emulated.present("mps"), emulated.watched() as done:
        code, document, _ = invoked([*HEAD.asked(material, "emulated:1"), "--json"], tmp_path)
    assert code == 0
    assert differences(document, right.document) == []
    assert '"device": "emulated:1"' in document
    assert done.transfers
    assert all(0 not in (each.source, each.target) for each in done.transfers)


def test_every_command_and_every_route_is_asked_under_every_bundled_model() -> None:
    from attnscope.cli.app import app

    names = [each.name for each in EVERY]
    assert len(set(names)) == len(names)
    commands = {each.callback.__name__ for each in app.registered_commands if each.callback is not None}
    assert {each.arguments[0] for each in EVERY} == commands - {"explore"}
    for model in ("demo", "demo-causal", "demo-translate", "minilm"):
        for route in ("takeover", "traced", "fused", "tiled"):
            assert [each for each in names if each.startswith(model) and f" {route} " in each]
