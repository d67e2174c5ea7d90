"""Which model is meant: a path without one, none that is named, a folder in the place of a text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hub_stand_in import empty_cache
from huggingface_hub import constants

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


@pytest.mark.parametrize("asked", PROVING, ids=" ".join)
def test_what_is_said_of_a_model_is_said_of_no_stand_in(
    attnscope, away: Path, asked: tuple[str, ...]
) -> None:
    result = attnscope(*asked)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(
        "attnscope: no model was named (-m NAME), and google-bert/bert-base-uncased"
    )
    assert "-m demo" in result.stderr


def test_a_model_that_the_environment_names_is_named(
    attnscope, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert attnscope("verify", "a door", "-m", "demo", "-q").exit_code == 0
    monkeypatch.setenv("ATTNSCOPE_MODEL", "demo")
    assert attnscope("verify", "a door", "-q").exit_code == 0


def test_other_questions_keep_the_stand_in_and_say_so(attnscope, away: Path) -> None:
    result = attnscope("heads", "the door opened", "-q", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["provenance"]["model"] == "demo"
    assert "using the bundled demo model" in attnscope("heads", "the door opened").stderr


@pytest.mark.parametrize("holds", ["config.json", "adapter_config.json"])
@pytest.mark.parametrize(
    "asked",
    [
        ("verify", "ft"),
        ("heads", "ft"),
        ("predict", "ft"),
        ("find", "ft/"),
        ("compare", "a b", "ft", "--word", "a"),
    ],
    ids=" ".join,
)
def test_a_model_folder_is_no_text(attnscope, away: Path, asked: tuple[str, ...], holds: str) -> None:
    (away / "ft").mkdir()
    (away / "ft" / holds).write_text("{}")
    name = next(each for each in asked if each.startswith("ft"))
    result = attnscope(*asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.strip() == f"attnscope: '{name}' is a model folder, and no text: -m {name}"


def test_a_folder_without_a_model_is_a_text_like_any_word(attnscope, away: Path) -> None:
    (away / "door").mkdir()
    assert attnscope("predict", "door [MASK]", "-m", "demo", "-q").exit_code == 0
    assert attnscope("verify", "door", "-m", "demo", "-q").exit_code == 0
