"""Model folders whose files are damaged or absurd, on every command: one line, exit code, no traceback."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from checkpoints import save, tiny_bert
from small_tokenizers import BUILD
from transformers import BertForMaskedLM, GPT2Config, GPT2Model

from attnscope import demo


@pytest.mark.parametrize("command", ["heads", "predict", "verify"])
def test_every_command_ends_with_exit_code_3_and_that_line(command: str, attnscope, tmp_path, capfd) -> None:
    folder = tiny_bert(tmp_path / "m")
    file = folder / "tokenizer.json"
    file.write_text(
        file.read_text().replace('"id": 1,', '"id": 8589934592,').replace('"id":1,', '"id":8589934592,')
    )
    assert "8589934592" in file.read_text()
    capfd.readouterr()  # what saving the model says
    result = attnscope(command, "the door", "-m", str(folder))
    assert result.exit_code == 3
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"attnscope: {folder}: cannot read the tokenizer: ")
    assert capfd.readouterr().err == ""


def test_a_gpt2_folder_with_tokenizer_json_alone_is_read(attnscope, tmp_path: Path) -> None:
    own = BUILD["gpt2"]()
    settings = {"n_layer": 3, "n_head": 2, "n_embd": 24, "n_positions": 32}
    folder = save(GPT2Model(GPT2Config(vocab_size=len(own), **settings)), tmp_path / "gpt2")
    for file in folder.glob("tokenizer*"):
        file.unlink()
    own.save_pretrained(folder)
    assert sorted(file.name for file in folder.glob("*")) == [
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    result = attnscope("heads", "the door", "-l", "1", "--head", "1", "-m", str(folder), "--json")
    assert result.exit_code == 0, result.stderr
    read = json.loads(result.stdout)["provenance"]["token_ids"]
    assert read == own("the door")["input_ids"]
    (folder / "tokenizer.json").unlink()
    refused = attnscope("heads", "the door", "-m", str(folder))
    assert refused.exit_code == 3
    assert "cannot read the tokenizer" in refused.stderr


def with_settings(name: str, folder: Path, **settings: Any) -> str:
    """A bundled model whose generation config says something more."""
    shutil.copytree(demo.folder(name), folder)
    file = folder / "generation_config.json"
    before = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**before, **settings}))
    return str(folder)


GOES_ON = ("the dog", "-l", "1", "--head", "1", "--generate", "3")


@pytest.mark.parametrize(
    "settings",
    [{"cache_implementation": "quantized"}, {"eos_token_id": "x"}, {"forced_eos_token_id": "a"}],
    ids=str,
)
def test_a_generation_config_that_cannot_be_followed_is_one_line(
    attnscope, tmp_path: Path, settings: dict[str, Any]
) -> None:
    model = with_settings("demo-causal", tmp_path / "m", **settings)
    result = attnscope("heads", *GOES_ON, "-m", model)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert " does not write on: " in line


def test_a_model_that_fails_while_it_writes_its_own_text_is_one_line(attnscope, tmp_path: Path) -> None:
    model = with_settings("demo-translate", tmp_path / "m", num_beams="x")
    result = attnscope("predict", "the dog", "-m", model)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"attnscope: {model} fails while it writes, give --target: ")
    assert attnscope("predict", "the dog", "-m", model, "--target", "le chien").exit_code == 0


def test_a_bug_of_ours_in_a_text_that_is_written_keeps_its_traceback(attnscope, monkeypatch) -> None:
    def bug(*_: object, **__: object) -> None:
        raise IndexError("ours")

    monkeypatch.setattr("attnscope.capture.generated.Steps._keep", bug)
    with pytest.raises(IndexError, match="ours"):
        attnscope("heads", *GOES_ON, "-m", "demo-causal")


def test_what_libraries_warn_of_is_told_under_v_alone(attnscope, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "rope_scaling": "x"}))
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # one process, in which the same is said but once
        plain = attnscope("heads", "the door", "-m", str(folder))
        told = attnscope("heads", "the door", "-m", str(folder), "-v")
    assert (plain.exit_code, told.exit_code) == (3, 3)
    (line,) = plain.stderr.splitlines()
    assert line.startswith(f"attnscope: {folder}: cannot read config.json: ")
    warned, last = told.stderr.splitlines()
    assert warned.startswith("note: FutureWarning: `rope_scaling` is deprecated")
    assert last == line


@pytest.mark.parametrize(
    ("setting", "value"),
    [("architectures", 5), ("architectures", {"a": 1}), ("auto_map", [1]), ("return_dict", False)],
)
def test_settings_that_say_nothing_of_the_model_do_no_harm(
    attnscope, tmp_path: Path, setting: str, value: Any
) -> None:
    folder = tiny_bert(tmp_path / "m", BertForMaskedLM)
    config = json.loads((folder / "config.json").read_text())
    before = attnscope("predict", "the [MASK] opened", "-m", str(folder))
    (folder / "config.json").write_text(json.dumps({**config, setting: value}))
    after = attnscope("predict", "the [MASK] opened", "-m", str(folder))
    assert (before.exit_code, after.exit_code) == (0, 0), after.stderr
    assert after.stdout == before.stdout
