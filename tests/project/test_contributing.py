"""The examples of CONTRIBUTING.md in a copy of the package, and that of docs/verbs.md beside ours."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import attnscope as at

ROOT = Path(__file__).parents[2]
TEXT = "I was watching the door when it opened."
ASK = """
import json, sys
from typer.testing import CliRunner
from attnscope.cli.app import app
for arguments in json.load(sys.stdin):
    done = CliRunner().invoke(app, arguments)
    assert not done.exit_code, (done.stdout, done.stderr, done.exception)
    print(json.dumps(done.stdout))
"""


def asked(*commands: list[str], at: Path, beside: Path = ROOT) -> list[str]:
    """What each command prints, run in one process with packages from `at` and `beside`."""
    path = os.pathsep.join(map(str, (at, beside)))
    environment = {**os.environ, "PYTHONPATH": path, "ATTNSCOPE_DIGESTS": "off", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=at,
        env=environment,
    )
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


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


HEADS = ["heads", TEXT, "-m", "demo", "--layer", "0", "--measure", "nearby", "--json"]


def is_nearby(overview: str, head: int) -> bool:
    weights = at.load("demo").read(TEXT).head(0, head).weights
    tokens = range(len(weights))
    near = np.mean([sum(weights[q, k] for k in tokens if abs(q - k) <= 2) for q in tokens])
    return bool(json.loads(overview)["measures"]["nearby"]["values"][0][head] == pytest.approx(near))


def test_the_examples_of_contributing_give_the_right_numbers(changed: Path) -> None:
    find = [
        "find",
        TEXT,
        "-m",
        "demo",
        "--from",
        "it",
        "--to",
        "door",
        "--controls=20",
        "--json",
        "-o",
        "a.md",
    ]
    overview, said = asked(HEADS, [*find, "-o", "a.md"], at=changed)
    assert is_nearby(overview, 4)
    found = json.loads(said)
    blocks = (changed / "a.md").read_text("utf-8").split("\n\n")
    ranking, *_, grid = [block.splitlines() for block in blocks if block.startswith("|")]
    layer, head = map(int, re.findall(r"\d+", next(line for line in ranking if line.startswith("| L")))[:2])
    cells = grid[2 + layer].split(" | ")[1:]
    assert len(cells) == len(found["weights"][layer])
    assert float(cells[head].strip("<| ")) == pytest.approx(found["weights"][layer][head], abs=0.006)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of docs/verbs.md, as pip installs it."""
    root = tmp_path_factory.mktemp("installed")
    text = (ROOT / "docs" / "verbs.md").read_text("utf-8")
    files = dict(re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    about = f"{name}-{version}.dist-info"
    files[f"{about}/entry_points.txt"] = "".join(
        f"[{group}]\n" + "".join(f"{each} = {place}\n" for each, place in points.items())
        for group, points in project["entry-points"].items()
    )
    files[f"{about}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files[f"{about}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{about}/RECORD"] = "".join(f"{each},,\n" for each in (*files, f"{about}/RECORD"))
    wheel = root / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for each, content in files.items():
            packed.writestr(each, content)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(root),
    ]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    return root


def test_a_package_of_somebody_else_brings_a_verb_and_a_measure(installed: Path) -> None:
    run = ["distances", TEXT, "-m", "demo", "--layer", "0", "--head", "4", "--json"]
    listed, told, stored, overview, shown, checked = asked(
        ["--help"],
        ["distances", "-h"],
        [*run, "-o", "d.json", "-o", "d.png", "-o", "d.html", "-o", "d.csv"],
        HEADS,
        ["show", "d.json"],
        ["check", "d.json"],
        at=installed,
    )
    assert "distances" in listed
    assert "--layer" in told
    weights = at.load("demo").read(TEXT).head(0, 4).weights
    tokens = range(len(weights))
    by_distance = [np.mean([weights[q, q - back] for q in tokens if q >= back]) for back in tokens]
    found = json.loads(stored)
    assert found["weights"] == pytest.approx(by_distance)
    assert found["verdict"] == "certified"
    assert is_nearby(overview, 4)
    assert found["answer"] in " ".join(shown.split())
    assert "11 parts" in checked
    assert all((installed / f"d.{suffix}").stat().st_size for suffix in ("png", "html", "csv"))


def test_what_is_wrong_with_a_package_of_somebody_else_is_said_and_all_else_goes_on(tmp_path: Path) -> None:
    about = tmp_path / "attnscope_worse-2.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: attnscope-worse\nVersion: 2.0\n")
    (about / "entry_points.txt").write_text(
        "[attnscope.verbs]\nworse = not_there\nfind = not_there\n[attnscope.measures]\nworst = not_there:IT\n"
    )
    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    for command, says in (
        (["worse", "x"], "worse is of attnscope-worse 2.0, and that is broken: ModuleNotFoundError"),
        (["find@attnscope-worse"], "there is a command 'find' already"),
        (
            ["heads", TEXT, "-m", "demo", "--measure", "worst"],
            "worst is of attnscope-worse 2.0, and that is broken",
        ),
        (["find", TEXT, "-m", "demo", "--from", "it", "--to", "door", "--controls=20"], ""),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "attnscope", *command],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "ATTNSCOPE_DIGESTS": "off"},
        )
        assert (done.returncode, says in done.stderr) == (2 if says else 0, True), done.stderr
        assert len(done.stderr.splitlines()) <= 1 or not says


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
