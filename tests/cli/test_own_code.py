"""Code that a checkpoint brings along: what its attention is, follows from its class and its mask."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from own_code import HEADS, LAYERS, plain_decoder
from pasted import following
from safetensors.torch import load_file

import attnscope as at
from attnscope.capture import Selection, record
from attnscope.errors import InputError
from attnscope.results import Kind
from attnscope.verify import certify

TEXT = "I was watching the door"


@pytest.fixture(scope="module", params=[True, False], ids=["with a headless class", "with its head alone"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plain_decoder(tmp_path_factory.mktemp("own") / "plain", headless=request.param)


@pytest.fixture(autouse=True)
def _code_is_kept_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.fixture(scope="module")
def code(checkpoint: Path) -> ModuleType:
    """The checkpoint's modelling file, as plain Python."""
    specification = importlib.util.spec_from_file_location("plain_code", checkpoint / "own.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["plain_code"] = module
    specification.loader.exec_module(module)
    return module


def _ids() -> torch.Tensor:
    return torch.tensor([[5, 17, 9, 44, 23, 8, 31]])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("heads", TEXT, "--layer", "1", "--head", "2"), "L1 H2 looks most from "),
        (("predict", TEXT), "After “door” the model "),
        (("heads", TEXT, "--generate", "3", "--layer", "1", "--head", "2"), "goes on, greedily"),
        (("verify", TEXT), "All 12 decoder heads of plain come out as the model's own when recomputed"),
    ],
    ids=["heads", "predict", "generate", "verify"],
)
def test_a_decoder_with_code_of_its_own_is_one_in_every_command(
    attnscope, checkpoint: Path, arguments: tuple[str, ...], told: str
) -> None:
    result = attnscope(*arguments, "-m", str(checkpoint), "--trust-remote-code", width=140)
    assert result.exit_code == 0
    assert told in result.stdout + result.stderr


def test_what_to_ask_next_names_no_kernel_that_nobody_can_choose(attnscope, checkpoint: Path) -> None:
    trusted = ("-m", str(checkpoint), "--trust-remote-code")
    command = following(attnscope("heads", TEXT, *trusted, "--layer", "1", "--head", "2").stdout)
    assert command[:3] == ["attnscope", "find", TEXT]
    assert "--attn" not in command
    found = attnscope(*command[1:], "--trust-remote-code", "--controls", "3")
    assert found.exit_code == 0, found.stderr


@pytest.fixture
def uncounted(tmp_path: Path) -> Path:
    """A checkpoint whose attention calls the number of its heads as no other does."""
    return plain_decoder(tmp_path / "uncounted", count="many")


def test_heads_that_a_module_does_not_count_are_those_of_a_run(attnscope, uncounted: Path) -> None:
    trusted = ("-m", str(uncounted), "--trust-remote-code")
    told = json.loads(attnscope("heads", TEXT, *trusted, "--json").stdout)
    assert (len(told["layers"]), len(told["heads"])) == (LAYERS, HEADS)
    last = json.loads(attnscope("heads", TEXT, *trusted, "--layer", "2", "--head", "-1", "--json").stdout)
    assert (last["head"], last["certificate"]["verdict"]) == (HEADS - 1, "certified")
    beyond = attnscope("heads", TEXT, *trusted, "--layer", "2", "--head", str(HEADS))
    assert (beyond.exit_code, beyond.stderr.count("\n")) == (2, 1)
    assert f"layers 0-{LAYERS - 1}, heads 0-{HEADS - 1}" in beyond.stderr


def test_a_model_in_memory_is_counted_without_its_weights_or_says_that_it_cannot_be(uncounted: Path) -> None:
    model = at.load(str(uncounted), trust_remote_code=True)
    before = {name: id(weight) for name, weight in model.module.named_parameters()}
    assert model.towers == {"decoder": dict.fromkeys(range(LAYERS), HEADS)}
    assert before == {name: id(weight) for name, weight in model.module.named_parameters()}
    assert not any(weight.is_meta for weight in model.module.parameters())
    normal = model.module.model.layers[0].first
    normal.register_forward_pre_hook(lambda _module, given: given[0].sum().item() and None)
    assert model.towers == {"decoder": dict.fromkeys(range(LAYERS), 0)}
    with pytest.raises(InputError, match="does not say how many heads a layer has"):
        model.read(TEXT).overview()


def test_its_weights_are_those_of_a_slow_loop(checkpoint: Path, code: ModuleType) -> None:
    config = code.PlainConfig.from_pretrained(checkpoint)
    model = code.PlainForCausalLM(config).eval()
    stored = load_file(checkpoint / "model.safetensors")
    model.load_state_dict(stored)
    captured = record(model, {"input_ids": _ids()}, Selection(layers=[0]))
    (call,) = captured.calls
    assert (call.kind, call.heads, captured.layers) == (Kind.DECODER, HEADS, LAYERS)
    entering = stored["model.words.weight"][_ids()[0]] + stored["model.places.weight"][:7]
    normal = torch.nn.functional.layer_norm(entering, entering.shape[-1:])
    mixed = (
        normal @ stored["model.layers.0.attention.mix.weight"].T + stored["model.layers.0.attention.mix.bias"]
    )
    for head in range(HEADS):
        q, k = (mixed[:, side * 24 + head * 6 : side * 24 + head * 6 + 6] for side in (0, 1))
        for i in range(7):
            scores = torch.stack([q[i] @ k[j] / 6**0.5 for j in range(i + 1)])
            assert torch.allclose(call.weights[head][i, : i + 1], scores.softmax(0), atol=1e-6)
        assert certify(call, head).verdict == "certified"


def test_a_mask_that_only_looks_back_makes_a_decoder_where_nothing_else_tells(code: ModuleType) -> None:
    torch.manual_seed(3)
    config = code.PlainConfig(vocab_size=60, num_hidden_layers=2)
    model = code.PlainModel(config)  # no head, no `generate`, and a config that names no other class
    captured = record(model, {"input_ids": _ids()})
    assert {call.kind for call in captured.calls} == {Kind.DECODER}


def test_the_same_code_without_its_mask_is_an_encoder(
    code: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    model = code.PlainModel(code.PlainConfig(vocab_size=60, num_hidden_layers=2))
    monkeypatch.setattr(code.torch.Tensor, "triu", lambda self, _diagonal: torch.zeros_like(self))
    captured = record(model, {"input_ids": _ids()})
    assert {call.kind for call in captured.calls} == {Kind.ENCODER}


def test_a_library_s_encoder_stays_one_whatever_its_mask() -> None:
    from transformers import CLIPTextConfig, CLIPTextModel

    torch.manual_seed(3)
    config = CLIPTextConfig(
        vocab_size=60, hidden_size=24, num_attention_heads=4, num_hidden_layers=2, intermediate_size=30
    )
    model = CLIPTextModel._from_config(config, attn_implementation="eager")
    captured = record(model, {"input_ids": _ids()})
    assert {call.kind for call in captured.calls} == {Kind.ENCODER}
    assert not captured.calls[0].allowed_matrix(0).triu(1).any()


def test_code_is_not_run_unless_it_is_asked_for(attnscope, checkpoint: Path) -> None:
    result = attnscope("heads", TEXT, "-m", str(checkpoint))
    assert result.exit_code == 3
    assert result.stderr == (
        f"attnscope: {checkpoint} needs code from its own repository: --trust-remote-code runs it\n"
    )
