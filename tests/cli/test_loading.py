"""Loading as the shell sees it: a part of the shards, the precision, memory, code that is not allowed."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from checkpoints import bert_config, save, tiny_bert
from made_results import provenance
from pasted import following
from safetensors.torch import load_file, save_file
from sharded import SHARDS, in_shards, llama, shard_name
from transformers import BertForMaskedLM, BertModel

from attnscope.model.loading import memory
from attnscope.model.source import adapter as adapters
from attnscope.process import machine
from attnscope.render.kit.words.header import model_words, reading

TEXT = "the dog was near the big door"
HEAD = ("--layer", "2", "--head", "1")


def refused(result, exit_code: int, line: str) -> None:
    assert result.exit_code == exit_code, result.stderr
    assert result.stdout == ""
    assert result.stderr == f"attnscope: {line}\n"


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of seven layers of which only the shards of the first three are there."""
    torch.manual_seed(6)
    folder = in_shards(llama(initializer_range=0.5), tmp_path_factory.mktemp("models") / "llama")
    for number in range(4, SHARDS):
        (folder / shard_name(number)).unlink()
    return folder


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "half"
    return save(BertModel(bert_config()).to(torch.bfloat16), folder)


def test_a_head_of_an_early_layer_is_certified_from_its_shards_alone(attnscope, shards: Path) -> None:
    result = attnscope("heads", TEXT, "-m", str(shards), *HEAD, "--json")
    told = json.loads(result.stdout)
    each = [hashlib.sha256((shards / shard_name(number)).read_bytes()).hexdigest() for number in range(4)]
    assert told["certificate"]["verdict"] == "certified"
    assert told["provenance"]["part"] == "4 of 9 shards"
    assert told["provenance"]["digest"] == f"sha256:{hashlib.sha256(''.join(each).encode()).hexdigest()}"
    shown = attnscope("heads", TEXT, "-m", str(shards), *HEAD, "-v").stdout
    assert f"{told['provenance']['digest'][:19]} (4 of 9 shards)" in shown


def test_a_later_layer_says_which_shard_it_lacks(attnscope, shards: Path) -> None:
    result = attnscope("heads", TEXT, "-m", str(shards), "--layer", "4", "--head", "1")
    refused(result, 3, f"{shards} lacks 2 of 9 weight files: {shard_name(4)}")
    everything = attnscope("verify", TEXT, "-m", str(shards))
    refused(everything, 3, f"{shards} lacks 5 of 9 weight files: {shard_name(4)}")


def test_the_precision_is_told_when_asked_and_unasked_when_it_costs_much(
    attnscope, half: Path, monkeypatch
) -> None:
    told = "note: stored in bfloat16: run in float32, "
    arguments = ("heads", TEXT, "-m", str(half), *HEAD)
    assert told not in attnscope(*arguments).stderr
    assert told in attnscope(*arguments, "-v").stderr
    monkeypatch.setattr(memory, "_LARGE", 1000)
    assert told in attnscope(*arguments).stderr
    assert "note" not in attnscope(*arguments, "--dtype", "auto").stderr
    assert "run in bfloat16" in attnscope(*arguments, "--dtype", "auto", "-v").stderr


def test_a_model_that_cannot_fit_is_exit_code_4(attnscope, half: Path, monkeypatch) -> None:
    monkeypatch.setattr(machine, "_available", lambda: 2000)
    result = attnscope("heads", TEXT, "-m", str(half), *HEAD)
    takes = f"{half} in float32 (its first 3 layers) takes 0.2 MB, and memory has 0.0 MB free"
    spread = "--device-map auto spreads it over all that there is, the disk too"
    refused(result, 4, f"{takes}; --dtype auto runs it in bfloat16; {spread}")


@pytest.mark.parametrize("model", ["some/model", "demo"])
def test_an_endpoint_that_is_no_address_is_one_line(attnscope, model: str, monkeypatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://localhost:port")
    line = "HF_ENDPOINT is not an address: 'http://localhost:port': "
    refused(
        attnscope("heads", TEXT, "-m", model, *HEAD),
        2,
        f"{line}Port could not be cast to integer value as 'port'",
    )


def test_a_log_that_torch_does_not_have_is_one_line() -> None:
    environment = {**os.environ, "TORCH_LOGS": "nope"}
    command = [sys.executable, "-m", "attnscope", "heads", TEXT, "-m", "demo", *HEAD]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    told = "attnscope: TORCH_LOGS names no log of torch: 'nope': such as +dynamo\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "never-heard-of", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}},
        {"model_type": "speech-encoder-decoder", "auto_map": {"AutoModel": "own.Model"}},
    ],
)
def test_code_of_a_model_that_is_not_allowed_is_asked_for(
    attnscope, half: Path, config: dict[str, object], tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    for file in half.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('this code was run')")
    refused(
        attnscope("heads", TEXT, "-m", str(folder), *HEAD),
        3,
        f"{folder} needs code from its own repository: --trust-remote-code runs it",
    )


LOW_RANK = [f"bert.encoder.layer.2.attention.self.query.lora_{half}.weight" for half in "AB"]


@pytest.fixture
def fine_tuned(tmp_path: Path) -> Path:
    """A BERT whose file also holds low-rank weights beside the queries of layer 2."""
    folder = tiny_bert(tmp_path / "fine-tuned", BertForMaskedLM)
    file = folder / "model.safetensors"
    more = {name: torch.randn(3, 24) for name in LOW_RANK}
    save_file({**load_file(file), **more}, file, {"format": "pt"})
    return folder


@pytest.mark.parametrize("command", ["heads", "verify", "predict", "report", "tsne"])
def test_every_command_refuses_attention_without_some_of_its_weights(
    attnscope, fine_tuned: Path, command: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = () if command in ("verify", "predict") else HEAD
    result = attnscope(command, "the [MASK] was near the big door", "-m", str(fine_tuned), *chosen)
    held = f"{fine_tuned} holds 2 weights inside attention that the model does not read"
    refused(result, 3, f"{held}: {', '.join(LOW_RANK)}; --ignore-unread runs without them")
    assert not (tmp_path / "outputs").exists()


def test_with_leave_every_place_says_what_was_left_out(attnscope, fine_tuned: Path, tmp_path: Path) -> None:
    leave = ("-m", str(fine_tuned), *HEAD, "--ignore-unread")
    result = attnscope("heads", TEXT, *leave, "-o", str(tmp_path / "a.csv"), "-o", str(tmp_path / "a.json"))
    assert result.exit_code == 0
    assert f"note: {fine_tuned} does not read 2 weights of its file: {LOW_RANK[0]}, " in result.stderr
    assert " (2 weights unread) " in " ".join(result.stdout.split())
    assert "--ignore-unread" in following(result.stdout), "what is asked next is of the same weights"
    assert json.loads((tmp_path / "a.json").read_text())["provenance"]["unread"] == LOW_RANK
    assert f"# unread: {' '.join(LOW_RANK)}\n" in (tmp_path / "a.csv").read_text()
    verified = ("verify", TEXT, "-m", str(fine_tuned), "--ignore-unread")
    for other in (("show", str(tmp_path / "a.json")), verified):
        assert " (2 weights unread) " in " ".join(attnscope(*other).stdout.split())


def test_weights_that_are_unread_elsewhere_are_one_notice(attnscope, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    file, name = folder / "model.safetensors", "encoder.layer.1.output.adapter.weight"
    save_file({**load_file(file), name: torch.randn(4, 24)}, file, {"format": "pt"})
    result = attnscope("heads", TEXT, "-m", str(folder), *HEAD)
    assert result.exit_code == 0
    assert result.stderr == f"note: {folder} does not read 1 weight of its file: {name}\n"
    assert " (1 weight unread) " in " ".join(result.stdout.split())


def test_a_plain_checkpoint_and_a_head_that_is_not_needed_are_not_mentioned(
    attnscope, bert: Path, half: Path
) -> None:
    for folder in (bert, half):
        result = attnscope("heads", TEXT, "-m", str(folder), *HEAD, "--json")
        assert result.stderr == ""
        assert json.loads(result.stdout)["provenance"]["unread"] == []


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
    attnscope, adapter: Path, monkeypatch
) -> None:
    monkeypatch.setattr(adapters, "find_spec", lambda name: None)
    base = adapter.parent / "base"
    line = "needs the package peft, which is not installed: pip install peft puts it in, "
    line += "--adapter none runs the model without it"
    refused(
        attnscope("heads", TEXT, "-m", str(base), "--adapter", str(adapter), *HEAD),
        3,
        f"the adapter in {adapter} {line}",
    )
    for file in adapter.iterdir():
        (base / file.name).write_bytes(file.read_bytes())
    for command in ("verify", "predict", "heads"):
        refused(attnscope(command, TEXT, "-m", str(base)), 3, f"the adapter in {base} {line}")
    left_out = attnscope("heads", TEXT, "-m", str(base), *HEAD, "--adapter", "none", width=200)
    assert f" · {base.name} without its adapter " in left_out.stdout
    command = following(left_out.stdout)
    assert command[command.index("--adapter") + 1] == "none"
    told = attnscope("heads", TEXT, "-m", str(base), *HEAD, "--adapter", "none", "--json")
    assert json.loads(told.stdout)["provenance"]["adapter"] == "none"


@pytest.mark.skipif(find_spec("peft") is None, reason="puts an adapter in: needs peft")
def test_what_an_adapter_changed_is_said_and_pinned(attnscope, adapter: Path) -> None:
    base = adapter.parent / "base"
    plain, alone, named = (
        attnscope("heads", TEXT, *model, *HEAD, "--json")
        for model in (("-m", str(base)), ("-m", str(adapter)), ("-m", str(base), "--adapter", str(adapter)))
    )
    assert (plain.stderr, named.stderr) == ("", "")
    assert alone.stderr == f"note: {adapter} holds an adapter of {base}\n"
    without, first, second = (json.loads(each.stdout) for each in (plain, alone, named))
    assert first["certificate"]["verdict"] == "certified"
    assert first["weights"] == second["weights"] != without["weights"]
    assert first["provenance"]["digest"] == second["provenance"]["digest"] != without["provenance"]["digest"]
    assert [told["provenance"]["adapter"] for told in (without, first, second)] == [None, *[str(adapter)] * 2]
    shown = attnscope("heads", TEXT, "-m", str(adapter), *HEAD, width=200).stdout
    assert f" · {base.name} with {adapter.name} " in shown
    command = following(shown)
    assert command[command.index("--adapter") + 1] == str(adapter)
    again = json.loads(attnscope("heads", TEXT, *command[3:-4], *HEAD, "--json").stdout)
    assert again["provenance"]["digest"] == first["provenance"]["digest"], "which is of the same weights"
    compared = attnscope(
        "compare", TEXT, "--word", "dog", "-m", str(adapter), "--model-b", str(base), "--json"
    )
    sides = [json.loads(compared.stdout)[side]["provenance"]["adapter"] for side in ("a", "b")]
    assert sides == [str(adapter), None]


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


def test_an_adapter_is_part_of_what_a_model_is_called() -> None:
    plain = provenance()
    called = {
        model_words(replace(plain, adapter=adapter))
        for adapter in (None, "none", "bert-base-uncased", "work/runs/law")
    }
    assert called == {
        "bert-base-uncased",
        "bert-base-uncased without its adapter",
        "bert-base-uncased with its adapter",
        "bert-base-uncased with adapter law",
    }
    asked = replace(plain, requested="runs/law", adapter="runs/law")
    assert model_words(asked) == "bert-base-uncased with adapter runs/law"
    assert "revision 86b5e09344 (with the adapter sha256:0f1e2d3c4b5a) ·" in reading(asked).plain
    assert "revision 86b5e09344 ·" in reading(replace(plain, adapter="none")).plain


def test_the_library_refuses_and_is_given_leave_alike(fine_tuned: Path, adapter: Path, monkeypatch) -> None:
    import attnscope as at

    with pytest.raises(at.AttnscopeError, match="holds 2 weights inside attention"):
        at.load(str(fine_tuned))
    told = at.load(str(fine_tuned), ignore_unread=True).read(TEXT).head(2, 1).provenance
    assert told.unread == tuple(LOW_RANK)
    left_out = at.load(str(adapter), adapter="none").read(TEXT).head(2, 1).provenance
    assert left_out.adapter == "none"
    monkeypatch.setattr(adapters, "find_spec", lambda name: None)
    with pytest.raises(at.AttnscopeError, match="needs the package peft"):
        at.load(str(adapter))
