"""The examples of CONTRIBUTING.md, done to a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attnscope as at

ROOT = Path(__file__).parents[2]
TEXT = "I was watching the door when it opened."
ASK = f"""
from typer.testing import CliRunner
from attnscope.cli.app import app
for arguments in (
    ["distances", {TEXT!r}, "-m", "demo", "--layer", "0", "--head", "4", "--json"],
    ["heads", {TEXT!r}, "-m", "demo", "--layer", "0", "--measure", "nearby", "--json"],
    ["find", {TEXT!r}, "-m", "demo", "--from", "it", "--to", "door", "--controls=20", "--json", "-o", "a.md"],
):
    done = CliRunner().invoke(app, arguments)
    assert not done.exit_code, (done.stdout, done.stderr, done.exception)
    print(done.stdout.replace("\\n", " "))
"""


def apply(diff: str, root: Path) -> None:
    """A diff whose hunks are found by their text, which has to stand in the file once, wherever that is."""
    for part in re.split(r"^(?=--- )", diff, flags=re.MULTILINE)[1:]:
        heading, *hunks = re.split(r"^@@\n", part, flags=re.MULTILINE)
        old, new = (line.split(maxsplit=1)[1] for line in heading.splitlines())
        file = root / new.removeprefix("b/")
        before = "" if old == "/dev/null" else file.read_text("utf-8")
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            was = "".join(line[1:] for line in lines if line[0] in " -")
            becomes = "".join(line[1:] for line in lines if line[0] in " +")
            assert not was or before.count(was) == 1, f"{new}: {was}"
            before = before.replace(was, becomes) if was else becomes
        file.write_text(before, "utf-8")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("changed")
    skipped = shutil.ignore_patterns("__pycache__", "train")
    shutil.copytree(ROOT / "attnscope", root / "attnscope", ignore=skipped)
    shutil.copytree(ROOT / "tests", root / "tests", ignore=skipped)
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for diff in re.findall(r"^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        apply(diff, root)
    return root


def test_the_examples_of_contributing_give_the_right_numbers(changed: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(changed), "ATTNSCOPE_DIGESTS": "off"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, cwd=changed, env=environment
    )
    assert not done.returncode, done.stderr
    distances, overview, found = map(json.loads, done.stdout.splitlines())
    weights = at.load("demo").read(TEXT).head(0, 4).weights
    tokens = range(len(weights))
    by_distance = [np.mean([weights[q, q - back] for q in tokens if q >= back]) for back in tokens]
    assert distances["weights"] == pytest.approx(by_distance)
    assert distances["verdict"] == "certified"
    near = np.mean([sum(weights[q, k] for k in tokens if abs(q - k) <= 2) for q in tokens])
    assert overview["measures"]["nearby"]["values"][0][4] == pytest.approx(near)
    blocks = (changed / "a.md").read_text("utf-8").split("\n\n")
    ranking, *_, grid = [block.splitlines() for block in blocks if block.startswith("|")]
    layer, head = map(int, re.findall(r"\d+", next(line for line in ranking if line.startswith("| L")))[:2])
    cells = grid[2 + layer].split(" | ")[1:]
    assert len(cells) == len(found["weights"][layer])
    assert float(cells[head].strip("<| ")) == pytest.approx(found["weights"][layer][head], abs=0.006)


def test_a_hunk_that_no_longer_fits_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    diff = "--- a/a.py\n+++ b/a.py\n@@\n three\n+four\n"
    with pytest.raises(AssertionError, match=r"b/a\.py: three"):
        apply(diff, tmp_path)


def test_the_tests_that_contributing_shows_are_tests_of_ours() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    every = [each.read_text("utf-8") for each in (ROOT / "tests").rglob("*.py")]
    shown = [
        part.strip("\n")
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for part in (re.split(r"\n{3}", block) if "def " in block else block.splitlines())
    ]
    assert len(shown) == 5
    assert [part for part in shown if not any(part in file for file in every)] == []
