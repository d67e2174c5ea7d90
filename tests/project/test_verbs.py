"""A verb is a folder: without any one of them, and without those that need it, the rest runs as it did."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attnscope.register import registered

ROOT = Path(__file__).parents[2]
ASK = """
import json, sys
from typer.testing import CliRunner
from attnscope.cli.app import app
from attnscope.register import registered
answers = []
for arguments in json.load(sys.stdin):
    done = CliRunner().invoke(app, arguments)
    assert not done.exit_code or "no such command" in done.stderr, (done.stderr, done.exception)
    answers.append(done.stdout)
print(json.dumps([answers, list(registered())]))
"""
TEXT = "I was watching the door when it opened."


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copy")
    skipped = shutil.ignore_patterns("__pycache__", "train")
    shutil.copytree(ROOT / "attnscope", root / "attnscope", ignore=skipped)
    return root


@contextmanager
def without(verb: str, root: Path) -> Iterator[None]:
    folder, aside = root / "attnscope" / "verbs" / verb, root / "aside"
    folder.rename(aside)
    try:
        yield
    finally:
        aside.rename(folder)


def asked(root: Path, *commands: list[str]) -> tuple[list[str], list[str]]:
    """What the commands print, and which verbs are there."""
    environment = {**os.environ, "PYTHONPATH": str(root), "ATTNSCOPE_DIGESTS": "off", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=root,
        env=environment,
    )
    assert not done.returncode, done.stderr
    answers, verbs = json.loads(done.stdout)
    return answers, verbs


def needing(verb: str) -> set[str]:
    """The verb, and those that are not there without it."""
    gone = {verb}
    while more := {name for name, each in registered().items() if {*each.needs} & gone} - gone:
        gone |= more
    return gone


@pytest.mark.parametrize("verb", registered())
def test_without_a_verb_all_others_have_their_help(verb: str, copy: Path) -> None:
    there = [name for name in registered() if name not in needing(verb)]
    with without(verb, copy):
        (whole, *helps), verbs = asked(copy, ["--help"], *([name, "-h"] for name in there))
    assert verbs == there
    lines = {line.split()[0] for line in whole.splitlines() if line.startswith("  ")}
    assert {*there} <= lines
    assert needing(verb) & lines == set()
    assert all(f"attnscope {name} " in said for name, said in zip(there, helps, strict=True))


@pytest.mark.parametrize("verb", ["find", "predict", "corpus"])
def test_without_a_verb_others_answer_as_before(verb: str, copy: Path) -> None:
    commands = [
        ["heads", TEXT, "-m", "demo", "--layer", "0", "--json"],
        ["flow", TEXT, "-m", "demo", "--from", "it", "--json"],
        ["tsne", TEXT, "-m", "demo", "--layer", "1", "--head", "0", "--json"],
        ["align", "He slept.", "-m", "demo-translate", "--json"],
    ]
    whole, _ = asked(copy, *commands)
    with without(verb, copy):
        less, _ = asked(copy, *commands)
    assert less == whole
    assert any(whole)
