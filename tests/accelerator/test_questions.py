"""Every kind of question, on an accelerator with float64 and on one without: the processor's answer.

All are asked in one process, of the processor and of both accelerators (`asking`); their documents are held
side by side (`alike`).
"""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

import attnscope as at
from attnscope.explore.app import Explorer, Notices
from attnscope.explore.source import Source
from attnscope.explore.surface import Surface
from attnscope.model.loading.load import moved
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted

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


@pytest.mark.parametrize("operation", ["aten::addmm", "aten::_softmax"])
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


# another layer, its heads, a search for the link that the cursor is on, and what that finds
KEYS = ("right_square_bracket", "full_stop", "tab", "left", "f", "enter")
PANES = ("head", "main")


def shown(device: str) -> list[str]:
    """What stands in two panes after each key."""
    request, notices = ModelRequest("demo", device=device), Notices()
    inputs = Inputs("I was watching the door when [MASK] opened.")
    app = Explorer(Source(request, inputs, Wanted(), notices), notices, Surface("truecolor", "dark", False))
    told = []

    async def walk() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            for key in (None, *KEYS):
                if key is not None:
                    await pilot.press(key)
                for _ in range(3000):
                    if app.settled:
                        break
                    await asyncio.sleep(0.01)
                await pilot.pause()
                told.extend(" ".join(app.pane(name).text.split()) for name in PANES)  # lines break elsewhere

    asyncio.run(walk())
    return told


def test_the_explorer_shows_the_same_on_an_accelerator(
    emulated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    right = shown("cpu")
    assert len(set(right)) > len(KEYS)
    assert any("certified" in each for each in right)
    with emulated.present("mps"), emulated.watched() as done:
        there = shown("emulated")
    assert any(" · emulated:0" in each for each in there)
    assert [each.replace(" · emulated:0", "") for each in there] == right
    assert done.operations["aten::addmm"]


LAYERS, HEADS, KEY_HEADS, WIDTH = 3, 4, 2, 8
SMALL = 148  # bytes a token: number and place, where it may look, which rows and heads change when answers do


@pytest.fixture(scope="module")
def llama() -> LlamaModel:
    torch.manual_seed(2)
    config = LlamaConfig(
        hidden_size=HEADS * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        intermediate_size=48,
        vocab_size=71,
        max_position_embeddings=1024,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    config._attn_implementation = "eager"
    model = LlamaModel(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(4)  # far from uniform
    return model


@pytest.fixture(params=["cuda", "mps"])
def read(request: Any, emulated: Any, llama: LlamaModel) -> Iterator[Callable[[int], Any]]:
    """`read(n)`: n tokens under the model on the accelerator."""
    with emulated.present(request.param):
        model = at.wrap(llama.to("emulated"))
        yield lambda tokens: model.read(ids=[3 + i * i % 67 for i in range(tokens)])
        llama.to("cpu")


def returned(done: Any) -> Counter[tuple[int, ...]]:
    return Counter(each.shape for each in done.transfers if (each.source, each.target) == (0, -1))


def test_a_chosen_head_brings_one_layer_back_and_its_own_weights_alone(
    emulated: Any, read: Callable[[int], Any]
) -> None:
    tokens = 64
    with emulated.watched() as done:
        head = read(tokens).head(1, 3)
    assert head.verdict == "certified"
    back = returned(done)
    per_head = tokens * WIDTH * 4
    # queries and output as wide as all heads, keys and values as the key heads
    assert back[(HEADS, tokens, WIDTH)] == 2
    assert back[(KEY_HEADS, tokens, WIDTH)] >= 2
    assert back[(tokens, tokens)] == 1
    squares = {shape for shape in back if shape[-2:] == (tokens, tokens)}
    assert squares == {
        (tokens, tokens),
        (1, tokens, tokens),
    }  # and once where its queries may look, a byte each
    layer, weights = (2 * HEADS + 3 * KEY_HEADS) * per_head, tokens * tokens * 4
    assert done.moved() <= layer + weights + tokens * tokens + SMALL * tokens
    assert done.moved() < LAYERS * layer


def test_a_long_text_brings_nothing_back_of_queries_by_keys(
    emulated: Any, read: Callable[[int], Any]
) -> None:
    moved = {}
    for tokens in (512, 1024):
        with emulated.watched() as done:
            assert read(tokens).long_head(2, 1).verdict == "certified"
        back = [sorted(shape) for shape in returned(done) if len(shape) > 1]
        assert max(shape[-2] for shape in back) <= 256  # the blocks that a picture is made of
        moved[tokens] = done.moved()
    of_a_token = 3 * 2 * 64 + 4 * (3 * HEADS + 5 * KEY_HEADS + 8) * WIDTH  # of a sample, and of one layer
    assert 0 < moved[1024] - moved[512] <= 512 * of_a_token


def test_verifying_a_model_brings_verdicts_back_where_the_device_has_float64(
    emulated: Any, llama: LlamaModel
) -> None:
    moved = {}
    with emulated.present("cuda"):
        model = at.wrap(llama.to("emulated"))
        for tokens in (32, 64):
            with emulated.watched() as done:
                assert model.read(ids=list(range(3, 3 + tokens))).verify().verdict == "certified"
            assert not [shape for shape in returned(done) if shape[-2:] == (tokens, tokens)]
            moved[tokens] = done.moved()
    llama.to("cpu")
    assert moved[64] <= 2 * moved[32]


def test_weights_that_modules_share_are_shared_on_a_device_that_makes_new_ones(emulated: Any) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.read, self.again = torch.nn.Embedding(7, 3), torch.nn.Embedding(7, 3)
            self.write, self.own = torch.nn.Linear(3, 7), torch.nn.Linear(3, 7)
            self.again.weight = self.write.weight = self.read.weight

    model = Tied()
    values, own = model.read.weight.detach().clone(), model.own.weight.detach().clone()
    with emulated.present("cuda"):
        model = moved(model, torch.device("emulated"))
        assert model.read.weight.device.type == "emulated"
        assert model.again.weight is model.read.weight
        assert model.write.weight is model.read.weight
        assert torch.equal(model.write.weight.cpu(), values)
        assert torch.equal(model.own.weight.cpu(), own), "its own stays its own"
