"""Model folders whose files are damaged or absurd, on every command: one line, exit code, no traceback."""

import json
from pathlib import Path

import pytest
from checkpoints import save, tiny_bert
from small_tokenizers import BUILD
from transformers import GPT2Config, GPT2Model


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
