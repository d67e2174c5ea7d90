"""Loading as the shell sees it: memory, unread weights, adapters, code that a checkpoint brings along."""

import importlib.util
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import torch
from checkpoints import bert_config, save, tiny_bert
from own_code import HEADS, LAYERS, plain_decoder
from pasted import following
from safetensors.torch import load_file, save_file
from transformers import BertForMaskedLM, BertModel

import attnscope as at
from attnscope.capture import Selection, record
from attnscope.errors import InputError
from attnscope.model.source import weight_files as adapters
from attnscope.process import machine
from attnscope.results import Kind
from attnscope.verify import certify

TEXT = "the dog was near the big door"
HEAD = ("--layer", "2", "--head", "1")


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "half"
    return save(BertModel(bert_config()).to(torch.bfloat16), folder)


def test_a_model_that_cannot_fit_is_exit_code_4(refused, half: Path, monkeypatch) -> None:
    monkeypatch.setattr(machine, "_available", lambda: 2000)
    takes = f"{half} in float32 (its first 3 layers) takes 0.2 MB, and memory has 0.0 MB free"
    spread = "--device-map auto spreads it over all that there is, the disk too"
    says = f"{takes}; --dtype auto runs it in bfloat16; {spread}"
    refused(says, "heads", TEXT, "-m", str(half), *HEAD, code=4)


def test_an_endpoint_that_is_no_address_is_one_line(refused, monkeypatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://localhost:port")
    says = "HF_ENDPOINT is not an address: 'http://localhost:port': Port could not be cast to integer value"
    for model in ("some/model", "demo"):
        refused(says, "heads", TEXT, "-m", model, *HEAD)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "never-heard-of", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}},
        {"model_type": "speech-encoder-decoder", "auto_map": {"AutoModel": "own.Model"}},
    ],
)
def test_code_of_a_model_that_is_not_allowed_is_asked_for(
    refused, half: Path, config: dict[str, object], tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    for file in half.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('this code was run')")
    says = f"{folder} needs code from its own repository: --trust-remote-code runs it"
    refused(says, "heads", TEXT, "-m", str(folder), *HEAD, code=3)


LOW_RANK = [f"bert.encoder.layer.2.attention.self.query.lora_{half}.weight" for half in "AB"]


@pytest.fixture
def fine_tuned(tmp_path: Path) -> Path:
    """A BERT whose file also holds low-rank weights beside the queries of layer 2."""
    folder = tiny_bert(tmp_path / "fine-tuned", BertForMaskedLM)
    file = folder / "model.safetensors"
    more = {name: torch.randn(3, 24) for name in LOW_RANK}
    save_file({**load_file(file), **more}, file, {"format": "pt"})
    return folder


def test_commands_refuse_attention_without_some_of_its_weights(refused, fine_tuned: Path) -> None:
    held = f"{fine_tuned} holds 2 weights inside attention that the model does not read"
    says = f"{held}: {', '.join(LOW_RANK)}; --ignore-unread runs without them"
    for command, *chosen in (("predict",), ("report", *HEAD)):
        refused(says, command, "the [MASK] was near", "-m", str(fine_tuned), *chosen, code=3)


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """An adapter of the queries of a BERT that is called `base` and lies beside it."""
    base, folder = tiny_bert(tmp_path / "base"), tmp_path / "adapter"
    folder.mkdir()
    told = {"peft_type": "LORA", "base_model_name_or_path": str(base), "target_modules": ["query"]}
    (folder / "adapter_config.json").write_text(json.dumps({**told, "r": 3, "lora_alpha": 6}))
    stem = "base_model.model.encoder.layer.{}.attention.self.query.lora_{}.weight"
    weights = {stem.format(layer, "A"): torch.randn(3, 24) for layer in range(5)}
    weights |= {stem.format(layer, "B"): torch.randn(24, 3) for layer in range(5)}
    save_file(weights, folder / "adapter_model.safetensors", {"format": "pt"})
    return folder


def test_an_adapter_is_refused_without_peft_and_left_out_only_when_asked(
    attnscope, refused, adapter: Path, monkeypatch
) -> None:
    monkeypatch.setattr(adapters, "find_spec", lambda name: None)
    base = adapter.parent / "base"
    line = "needs the package peft, which is not installed: pip install peft puts it in, "
    line += "--adapter none runs the model without it"
    named = ("heads", TEXT, "-m", str(base), "--adapter", str(adapter), *HEAD)
    refused(f"the adapter in {adapter} {line}", *named, code=3)
    for file in adapter.iterdir():
        (base / file.name).write_bytes(file.read_bytes())
    for command in ("verify", "heads"):
        refused(f"the adapter in {base} {line}", command, TEXT, "-m", str(base), code=3)
    left_out = attnscope("heads", TEXT, "-m", str(base), *HEAD, "--adapter", "none", width=200)
    assert f" · {base.name} without its adapter " in left_out.stdout
    command = following(left_out.stdout)
    assert command[command.index("--adapter") + 1] == "none"


@pytest.mark.skipif(find_spec("peft") is None, reason="puts an adapter in: needs peft")
def test_the_command_as_a_process_of_its_own_puts_an_adapter_in(adapter: Path) -> None:
    """It starts faster than a library would: that leaves out nothing that peft needs."""
    done = subprocess.run(
        [sys.executable, "-m", "attnscope", "heads", TEXT, "-m", str(adapter), *HEAD, "--json"],
        capture_output=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["certificate"]["verdict"] == "certified"
    assert told["provenance"]["adapter"] == str(adapter)


WATCHED = "I was watching the door"


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
        (("heads", WATCHED, "--layer", "1", "--head", "2"), "L1 H2 looks most from "),
        (("heads", WATCHED, "--generate", "3", "--layer", "1", "--head", "2"), "goes on, greedily"),
        (("verify", WATCHED), "All 12 decoder heads of plain come out as the model's own when recomputed"),
    ],
    ids=["heads", "generate", "verify"],
)
def test_a_decoder_with_code_of_its_own_is_one_in_every_command(
    attnscope, checkpoint: Path, arguments: tuple[str, ...], told: str
) -> None:
    result = attnscope(*arguments, "-m", str(checkpoint), "--trust-remote-code", width=140)
    assert result.exit_code == 0
    assert told in result.stdout + result.stderr


@pytest.fixture
def uncounted(tmp_path: Path) -> Path:
    """A checkpoint whose attention calls the number of its heads as no other does."""
    return plain_decoder(tmp_path / "uncounted", count="many")


def test_heads_that_a_module_does_not_count_are_those_of_a_run(attnscope, refused, uncounted: Path) -> None:
    trusted = ("-m", str(uncounted), "--trust-remote-code")
    told = json.loads(attnscope("heads", WATCHED, *trusted, "--json").stdout)
    assert (len(told["layers"]), len(told["heads"])) == (LAYERS, HEADS)
    last = json.loads(attnscope("heads", WATCHED, *trusted, "--layer", "2", "--head", "-1", "--json").stdout)
    assert (last["head"], last["certificate"]["verdict"]) == (HEADS - 1, "certified")
    says = f"layers 0-{LAYERS - 1}, heads 0-{HEADS - 1}"
    refused(says, "heads", WATCHED, *trusted, "--layer", "2", "--head", str(HEADS))


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
        model.read(WATCHED).overview()


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
    result = attnscope("heads", WATCHED, "-m", str(checkpoint))
    assert result.exit_code == 3
    assert result.stderr == (
        f"attnscope: {checkpoint} needs code from its own repository: --trust-remote-code runs it\n"
    )


def test_with_leave_every_place_says_what_was_left_out(attnscope, fine_tuned: Path, tmp_path: Path) -> None:
    leave = ("-m", str(fine_tuned), *HEAD, "--ignore-unread")
    result = attnscope("heads", TEXT, *leave, "-o", str(tmp_path / "a.csv"), "-o", str(tmp_path / "a.json"))
    assert result.exit_code == 0
    assert f"note: {fine_tuned} does not read 2 weights of its file: {LOW_RANK[0]}, " in result.stderr
    assert " (2 weights unread) " in " ".join(result.stdout.split())
    assert "--ignore-unread" in following(result.stdout), "what is asked next is of the same weights"
    assert json.loads((tmp_path / "a.json").read_text())["provenance"]["unread"] == LOW_RANK
    assert f"# unread: {' '.join(LOW_RANK)}\n" in (tmp_path / "a.csv").read_text()
