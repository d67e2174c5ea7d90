"""Model folders that are damaged, absurd or lack something: one line, its exit code, no traceback."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from checkpoints import save, tiny_bert, vocabulary_size
from safetensors.torch import load_file, save_file
from transformers import BertForMaskedLM, Lfm2Config, Lfm2Model

from attnscope import demo

TEXT = "I was watching the door when it opened."
HEAD = ("--layer", "3", "--head", "2")


def broken(bert: Path, folder: Path, how: str | dict[str, Any]) -> Path:
    """A copy of it with other settings, or with something wrong."""
    shutil.copytree(bert, folder)
    weights, config = folder / "model.safetensors", folder / "config.json"
    if isinstance(how, dict):
        config.write_text(json.dumps({**json.loads(config.read_text()), **how}))
    elif how == "no config":
        config.unlink()
    elif how == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif how == "corrupt":
        weights.write_bytes(b"\xff" * 5000)
    elif how == "pickle only":
        weights.rename(folder / "pytorch_model.bin")
    elif how == "no tokenizer":
        for file in folder.glob("tokenizer*"):
            file.unlink()
    elif how == "weights lacking":
        whole, lacks = load_file(weights), "layer.2.attention.self.value"
        kept = {name: weight for name, weight in whole.items() if lacks not in name}
        save_file(kept, weights, {"format": "pt"})
    return folder


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("no config", "no config.json"),
        ("truncated", "truncated or corrupt"),
        ("corrupt", "truncated or corrupt"),
        ("pickle only", "--allow-pickle"),
        ("no tokenizer", "cannot read the tokenizer"),
        ("weights lacking", "lacks weights that this run needs: encoder.layer.2.attention.self.value"),
        ({"num_attention_heads": 0}, "can be built from its config.json"),
        ({"dtype": "nope"}, "cannot read config.json"),
        ({"model_type": "no-such-model"}, "cannot read config.json"),
        ({"intermediate_size": 40}, "by its config"),
    ],
    ids=str,
)
def test_a_checkpoint_that_is_not_sound_is_exit_code_3(
    attnscope, refused, bert: Path, tmp_path: Path, how: str | dict[str, Any], says: str
) -> None:
    folder = str(broken(bert, tmp_path / "broken", how))
    refused(says, "heads", TEXT, *HEAD, "-m", folder, code=3)
    if how == "pickle only":  # it is none, which is found out without unpickling
        refused("cannot read the weights", "heads", TEXT, *HEAD, "-m", folder, "--allow-pickle", code=3)
    if how == "weights lacking":
        refused("lacks weights", "verify", TEXT, "-m", folder, code=3)
        assert attnscope("heads", TEXT, "--layer", "1", "--head", "2", "-m", folder).exit_code == 0


def test_a_model_that_is_not_there_is_exit_code_3(refused, tmp_path: Path) -> None:
    refused("no folder", "heads", TEXT, *HEAD, "-m", str(tmp_path / "nothing"), code=3)
    refused("not in the local cache", "heads", TEXT, *HEAD, "-m", "nobody/nothing-at-all", code=3)
    refused("has no config.json", "model", str(tmp_path), code=3)


def test_a_tokenizer_that_is_larger_than_the_embeddings_is_refused(refused, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "small", vocab_size=9)
    refused("its embeddings end at 8", "heads", "the door", *HEAD, "-m", str(folder), code=3)


def test_an_index_that_points_outside_of_the_folder_is_refused(refused, bert: Path, tmp_path: Path) -> None:
    folder = broken(bert, tmp_path / "broken", "not at all")
    (folder / "model.safetensors").rename(tmp_path / "outside.safetensors")
    index = {"weight_map": {"embeddings.word_embeddings.weight": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused("is not a file beside it", "heads", TEXT, *HEAD, "-m", str(folder), code=3)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two layers of convolution, and two with attention: 1 and 3."""
    config = Lfm2Config(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=32,
        layer_types=["conv", "full_attention", "conv", "full_attention"],
    )  # fmt: skip
    return str(save(Lfm2Model(config), tmp_path_factory.mktemp("hybrid")))


@pytest.mark.parametrize(
    ("command", "layer", "says"),
    [
        ("heads", "1-2", "layer 2 has no attention in {}: layers 1, 3"),
        ("heads", "4", "no layer 4 in {}: layers 1, 3"),
        ("model", "2", "layer 2 has no attention in {} (decoder): layers 1, 3"),
        ("compare", "2", "layer 2 has no attention in {}: layers 1, 3"),
    ],
)
def test_a_layer_without_attention_is_told_from_one_that_is_not_there(
    refused, hybrid: str, command: str, layer: str, says: str
) -> None:
    given = {"heads": [TEXT, "-m", hybrid], "model": [hybrid]}
    given["compare"] = ["the dog", "a dog", "--word", "dog", "-m", hybrid]
    refused(says.format(hybrid), command, *given[command], "--layer", layer)


def test_layers_without_attention_are_listed(attnscope, hybrid: str) -> None:
    result = attnscope("model", hybrid, width=100)
    assert "no attention in layers 0, 2 of layers: Lfm2ShortConv" in result.stdout
    assert "\n1, 3" in result.stdout
    assert "one head of layer 3, decoder" in result.stdout


def test_a_kernel_that_the_model_cannot_run_is_refused_with_one_that_it_can(refused, hybrid: str) -> None:
    given = ("heads", TEXT, "-m", hybrid, "--attn", "flash_attention_2")
    refused("cannot run with --attn flash_attention_2: ", *given)
    refused("; --attn eager runs always", *given)


def test_a_damaged_tokenizer_is_one_line_and_no_library_says_more(refused, tmp_path: Path, capfd) -> None:
    folder = tiny_bert(tmp_path / "m")
    file = folder / "tokenizer.json"
    spoilt = json.loads(file.read_text())
    spoilt["added_tokens"][1]["id"] = 8589934592
    file.write_text(json.dumps(spoilt))
    capfd.readouterr()  # what saving the model says
    refused(f"{folder}: cannot read the tokenizer: ", "heads", "the door", "-m", str(folder), code=3)
    assert capfd.readouterr().err == ""


def with_settings(name: str, folder: Path, **settings: Any) -> str:
    """A bundled model whose generation config says something more."""
    shutil.copytree(demo.folder(name), folder)
    file = folder / "generation_config.json"
    before = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**before, **settings}))
    return str(folder)


GOES_ON = ("the dog", "-l", "1", "--head", "1", "--generate", "3")


def test_a_generation_config_that_cannot_be_followed_is_one_line(refused, tmp_path: Path) -> None:
    model = with_settings("demo-causal", tmp_path / "m", eos_token_id="x")
    refused(" does not write on: ", "heads", *GOES_ON, "-m", model)


def test_a_model_that_fails_while_it_writes_its_own_text_is_one_line(
    attnscope, refused, tmp_path: Path
) -> None:
    model = with_settings("demo-translate", tmp_path / "m", num_beams="x")
    refused(f"{model} fails while it writes, give --target: ", "predict", "the dog", "-m", model)
    assert attnscope("predict", "the dog", "-m", model, "--target", "le chien").exit_code == 0


def test_a_bug_of_ours_in_a_text_that_is_written_keeps_its_traceback(attnscope, monkeypatch) -> None:
    def bug(*_: object, **__: object) -> None:
        raise IndexError("ours")

    monkeypatch.setattr("attnscope.capture.generated.Steps._keep", bug)
    with pytest.raises(IndexError, match="ours"):
        attnscope("heads", *GOES_ON, "-m", "demo-causal")


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
