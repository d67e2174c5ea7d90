"""A path where no model is: every command says so before anything heavy is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
