"""A file that is not there, or is none, is one line at once: nothing heavy is imported for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# runs each line of standard input, a list of arguments, and tells how it ended; where one imports what takes
# time, that is told instead
EACH = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
HEAVY = ("torch", "transformers", "sklearn", "scipy", "matplotlib", "pyarrow", "pandas", "PIL", "soundfile")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in HEAVY:
            raise AssertionError(f"{name} was imported")

sys.meta_path.insert(0, Finder())
from attnscope.cli.app import app
for line in sys.stdin:
    said, printed = io.StringIO(), io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(printed):
            app(json.loads(line), prog_name="attnscope")
    except SystemExit as done:
        print(json.dumps([done.code, printed.getvalue(), said.getvalue()]))
    except AssertionError as imported:
        print(json.dumps([None, "", str(imported)]))
"""
TEXTS = ["heads", "predict", "ablate", "tsne", "report", "verify"]
NUMBERS = ["heads", "predict", "ablate", "tsne", "report", "verify"]
LINK = ["--from", "0", "--to", "1"]
ASKED = [  # and how its file is called in the line
    *[([command, "-m", "demo", "--texts"], "") for command in TEXTS],
    (["flow", "--from", "0", "-m", "demo", "--texts"], ""),
    (["find", *LINK, "-m", "demo", "--texts"], ""),
    (["compare", "--word", "door", "-m", "demo", "--texts"], ""),
    *[([command, "-m", "demo", "--ids", "1,2", "--vocab"], "the vocabulary ") for command in NUMBERS],
    (["flow", "--from", "0", "-m", "demo", "--ids", "1,2", "--vocab"], "the vocabulary "),
    (["find", *LINK, "-m", "demo", "--ids", "1,2", "--vocab"], "the vocabulary "),
    (["compare", "--word", "1", "--ids", "1", "--ids-b", "2", "-m", "demo", "--vocab"], "the vocabulary "),
    *[([command, "-m", "demo", "--image"], "picture ") for command in TEXTS],
    *[([command, "-m", "demo", "--audio"], "sound ") for command in TEXTS],
    (["flow", "--from", "0", "-m", "demo", "--image"], "picture "),
    (["find", *LINK, "-m", "demo", "--audio"], "sound "),
    (["compare", "a", "b", "--word", "a", "-m", "demo", "--image"], "picture "),
    (["check", "there.npz", "--image"], "picture "),
    (["check", "there.npz", "--audio"], "sound "),
    (["show"], ""),
    (["check"], ""),
    (["dependencies", "-m", "demo"], ""),
    (["corpus", "-m", "demo"], ""),
    (["corpus", "there.txt", "-m", "demo"], ""),
    *[(["corpus", "-m", "demo", "--format", form], "") for form in ("file", "jsonl", "conllu", "parquet")],
    (["heads", "the door", "-m", "demo", "--device-map"], "--device-map "),
]
BY_SUFFIX = [  # what is a file by the end of its name
    (["compare", "there.npz"], ".npz"),
    (["sdpa"], ".npz"),
    (["sdpa", "--q", "1,0", "--k", "1,0", "--v"], ".npy"),
]


def told(lines: list[list[str]], folder: Path) -> list[tuple[int | None, str, str]]:
    (folder / "there.txt").write_text("the door\n")
    (folder / "there.npz").write_bytes(b"PK")
    done = subprocess.run(
        [sys.executable, "-c", EACH],
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    return found


def refusals(why: str, name: str, folder: Path, but: tuple[str, ...] = ()) -> None:
    named = [([*arguments, name], f"{what}'{name}'") for arguments, what in ASKED]
    named += [([*arguments, name + suffix], f"'{name}{suffix}'") for arguments, suffix in BY_SUFFIX]
    named = [each for each in named if each[0][0] not in but]
    answers = told([arguments for arguments, _ in named], folder)
    for (arguments, file), (code, printed, said) in zip(named, answers, strict=True):
        assert (code, printed) == (2, ""), (arguments, said)
        assert said.startswith(f"attnscope: cannot read {file}: {why}"), arguments
        assert said.count("\n") == 1, arguments


def test_a_file_that_is_not_there_is_said_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    refusals("no such file", "nowhere", tmp_path)


def test_so_is_a_folder(tmp_path: Path) -> None:
    for suffix in ("", ".npz", ".npy"):
        (tmp_path / f"folder{suffix}").mkdir()
    refusals(
        "it is a folder, name a file", "folder", tmp_path, but=("corpus",)
    )  # which reads what lies in it


def test_what_is_there_goes_on_and_imports(tmp_path: Path) -> None:
    """Or else nothing above would say anything."""
    lines = [["heads", "-m", "demo", "--texts", "there.txt"], ["corpus", "there.txt", "-m", "demo"]]
    for code, _, said in told(lines, tmp_path):
        assert code is None
        assert said.endswith(" was imported")


@pytest.mark.parametrize(
    "arguments", [["check", "nowhere.npz"], ["corpus", "nowhere"], ["dependencies", "nowhere.conllu"]]
)
def test_in_a_process_of_its_own_it_takes_no_time(arguments: list[str], tmp_path: Path) -> None:
    before = os.times().children_user
    command = [sys.executable, "-X", "importtime", "-m", "attnscope", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    used = os.times().children_user - before
    *imported, said = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert said == f"attnscope: cannot read '{arguments[1]}': no such file"
    modules = {line.rpartition("|")[2].strip() for line in imported}
    assert "attnscope.cli.app" in modules
    assert not modules & {"torch", "transformers", "pyarrow"}
    assert used < 2  # seconds of processor time; torch and transformers take more than three
    assert not list(tmp_path.iterdir())
