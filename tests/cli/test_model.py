"""`attnscope model`: what there is to look at; which model is meant where none or a path is named."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import transformers as hf
from checkpoints import save, vocabulary_size
from hub_stand_in import empty_cache
from huggingface_hub import constants

from attnscope import demo


def test_the_demo_is_shown_with_its_layers_and_what_a_head_costs(attnscope) -> None:
    result = attnscope("model", "demo", width=140)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        "The model demo is an encoder with 4 layers of 12 heads (BertModel, 624 thousand parameters, "
    )
    size = (demo.folder() / "model.safetensors").stat().st_size
    assert f"stored on this machine: {size / 1e6:.2f} MB, float32, 1 file" in result.stdout
    (row,) = [line.split() for line in lines if line.startswith("0-3 ")]
    assert row[:7] == ["0-3", "12", "12", "8", "8", "learned", "(64)"]
    assert "one head of layer 3, encoder, at 64 tokens: an estimate" in result.stdout


def test_where_the_example_of_a_bundled_model_lies_is_said_beside_its_outline(attnscope) -> None:
    result = attnscope("model", "demo-speech", width=140)
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())
    assert told.startswith("The model demo-speech has attention in ")
    assert "(WhisperForConditionalGeneration, " in told
    path = demo.folder("demo-speech") / "example.wav"
    assert result.stderr == f"note: an example comes with demo-speech: --audio {path}\n"
    assert path.is_file()
    assert attnscope("model", "demo", width=140).stderr == "", "a model of text has no example to name"


def test_without_a_name_every_bundled_model_is_named(attnscope, monkeypatch) -> None:
    monkeypatch.setenv("ATTNSCOPE_MODEL", "demo-causal")
    said = attnscope("model")
    assert said.exit_code == 0
    assert "demo-causal" in said.stdout
    assert ", ".join(demo.FOLDERS) in " ".join(said.stderr.split())
    assert len(demo.FOLDERS) == 6
    assert "demo-speech" not in attnscope("model", "demo-causal").stderr


def test_the_same_model_gives_the_same_bytes_and_its_speed_is_said_only_when_asked_for(
    attnscope,
) -> None:
    once, again = (attnscope("model", "demo-causal") for _ in range(2))
    assert once.stdout == again.stdout
    assert once.stderr == again.stderr == ""
    loud = attnscope("model", "demo-causal", "-v")
    assert loud.stdout == once.stdout + "\nbundled demo-causal model · LlamaModel\n"
    assert re.search(r"for its products at \S+ .?FLOP/s, in float64 .* as measured now", loud.stderr)


def test_several_lengths_stand_in_one_table_with_what_they_grow_by(attnscope) -> None:
    lines = attnscope("model", "demo", "--length", "16,128", width=140).stdout.splitlines()
    assert "one head of layer 3, encoder, by length of text: an estimate" in lines
    (row,) = [line for line in lines if line.startswith("128*")]
    assert row.split()[:3] == ["128*", "5.33", "MB"]
    assert lines[-2].startswith("* beyond what demo was made for, it reads at most 64 tokens: ")
    assert lines[-1] == "from 16 to 128 tokens: 8 times the text, 64 times the weights"
    alone = attnscope("model", "demo", "--length", "128", width=140).stdout
    assert "one head of layer 3, encoder, at 128 tokens: an estimate" in alone
    assert "beyond what demo was made for" in alone


def test_a_model_without_attention_is_information_here_and_an_error_for_heads(
    attnscope, refused, tmp_path: Path
) -> None:
    config = hf.MambaConfig(vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=2, state_size=4)
    mamba = str(save(hf.MambaModel(config), tmp_path / "mamba"))
    result = attnscope("model", mamba)
    assert result.exit_code == 0
    assert " ".join(result.stdout.split()).startswith("No attention can be read in mamba (MambaModel, ")
    assert "no attention in layers 0-1 of layers: MambaBlock" in result.stdout
    told = json.loads(attnscope("model", mamba, "--json").stdout)
    assert (told["towers"], told["layers"], told["cost"]) == ([], [], None)
    refused("has no attention that can be read", "heads", "the dog", "-m", mamba)
    refused("has no attention that can be read", "model", mamba, "--kind", "encoder")


PAIR = ("a b", "--from", "a", "--to", "b")
COMMANDS = (
    ("heads", "a b"), ("find", "a b"), ("find", "--pattern", "retrieval"), ("explain", *PAIR),
    ("why", *PAIR, "-l", "0", "--head", "0"), ("report", "a b"), ("tsne", "a b"), ("predict", "a b"),
    ("ablate", "a b"), ("flow", "a b", "--from", "b"), ("cite", "A. B. C.", "--answer", "x"),
    ("align", "a b"), ("verify", "a b"), ("compose",), ("corpus", "texts.txt"),
    ("dependencies", "texts.txt"), ("compare", "a b", "a c", "--word", "a"),
    ("model",),
)  # fmt: skip
RUN = """
import json, sys
from typer.testing import CliRunner
from attnscope.cli.app import app
shown = [CliRunner().invoke(app, each) for each in json.loads(sys.argv[1])]
heavy = [name for name in ("torch", "transformers", "sklearn", "matplotlib") if name in sys.modules]
print(json.dumps([[[each.exit_code, each.stderr] for each in shown], heavy]))
"""


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [("./nowhere", 3, "no folder ./nowhere"), ("texts.txt", 2, "texts.txt is a file: name the folder")],
    ids=["nothing there", "a file"],
)
def test_a_path_without_a_model_is_told_by_every_command_before_torch_is_imported(
    tmp_path: Path, name: str, code: int, says: str
) -> None:
    (tmp_path / "texts.txt").write_text("The door opened.\n")
    asked = [[*each, "-m", name] for each in COMMANDS]
    asked.append(["compare", "a b", "--word", "a", "-m", "demo", "--model-b", name])
    asked.append(["compare", "--texts", "texts.txt", "-m", "demo", "--model-b", name])
    run = [sys.executable, "-c", RUN, json.dumps(asked)]
    made = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    shown, heavy = json.loads(made.stdout)
    for command, (exit_code, stderr) in zip(asked, shown, strict=True):
        assert exit_code == code, command
        assert says in stderr, command
    assert heavy == []


PROVING = (
    ("verify",), ("verify", "a b"), ("corpus", "texts.txt"),
    ("compare", "a b", "a c", "--word", "a"), ("compare", "--texts", "texts.txt", "--model-b", "demo"),
)  # fmt: skip


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a text, where the hub cannot be reached and no model of it was kept."""
    monkeypatch.chdir(tmp_path)
    empty_cache(tmp_path / "cache", monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    (tmp_path / "texts.txt").write_text("the door opened\nshe opened the box\n")
    return tmp_path


def test_what_is_said_of_a_model_is_said_of_no_stand_in(refused, away: Path) -> None:
    for asked in PROVING:
        refused("no model was named (-m NAME), and google-bert/bert-base-uncased", *asked, code=3)


def test_a_model_that_the_environment_names_is_named(
    attnscope, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (away / "door").mkdir()
    assert attnscope("verify", "door", "-m", "demo", "-q").exit_code == 0, (
        "a folder without a model is a text"
    )
    monkeypatch.setenv("ATTNSCOPE_MODEL", "demo")
    assert attnscope("verify", "a door", "-q").exit_code == 0


def test_other_questions_keep_the_stand_in_and_say_so(attnscope, away: Path) -> None:
    result = attnscope("heads", "the door opened", "-q", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["provenance"]["model"] == "demo"
    assert "using the bundled demo model" in attnscope("heads", "the door opened").stderr


@pytest.mark.parametrize("holds", ["config.json", "adapter_config.json"])
def test_a_model_folder_is_no_text(refused, away: Path, holds: str) -> None:
    (away / "ft").mkdir()
    (away / "ft" / holds).write_text("{}")
    for asked in (("verify", "ft"), ("find", "ft/"), ("compare", "a b", "ft", "--word", "a")):
        name = next(each for each in asked if each.startswith("ft"))
        refused(f"'{name}' is a model folder, and no text: -m {name}", *asked)
