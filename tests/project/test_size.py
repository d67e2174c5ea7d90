"""How large the house may be. `python tests/project/test_size.py` prints how large it is.

Whoever takes something out lowers its number here; whoever adds makes room first.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "attnscope"
TRAINING = PACKAGE / "demo" / "train"  # made the bundled models, and is not in the wheel
BERT = ["-m", "demo", "I was watching the [MASK] when it opened."]

SIZE = {"package": (503, 99167), "render": (81, 15672), "tests": (354, 72870)}  # files and lines, at most
OPTIONS = {
    "ablate": 60,
    "align": 47,
    "check": 20,
    "cite": 54,
    "compare": 59,
    "compose": 35,
    "corpus": 48,
    "dependencies": 35,
    "explain": 50,
    "explore": 34,
    "find": 58,
    "flow": 53,
    "heads": 62,
    "measures": 6,
    "model": 14,
    "predict": 44,
    "report": 54,
    "sdpa": 44,
    "show": 21,
    "tsne": 56,
    "verify": 40,
    "why": 50,
}
WALKS = {  # files of the package that a command enters, and moves between two of them
    "heads": (94, 3961),
    "find": (101, 25200),
    "corpus": (112, 12260),
    "show": (42, 1750),
    "image": (101, 7900),
}
COMMANDS = {
    "heads": ["heads", *BERT, "--layer", "3", "--head", "11"],
    "find": ["find", *BERT, "--from", "[MASK]", "--to", "opened"],
    "corpus": ["corpus", "three.txt", "-m", "demo", "--workers", "0", "--run", "run"],
    "show": ["show", "stored.json"],
    "image": ["heads", "--image", str(PACKAGE / "demo" / "caption" / "example.png"), "-m", "demo-caption"],
}
MARGIN = 1.05  # of the moves: which kernels a processor has decides some of the way


def _lines(folder: Path, without: Path | None = None) -> tuple[int, int]:
    every = [*folder.rglob("*.py"), *folder.rglob("*.jinja")]  # code, and the tables of words
    files = [each for each in every if without is None or without not in each.parents]
    return len(files), sum(each.read_bytes().count(b"\n") for each in files)


def size() -> dict[str, tuple[int, int]]:
    """Files and lines."""
    return {
        "package": _lines(PACKAGE, without=TRAINING),
        "render": _lines(PACKAGE / "render"),
        "tests": _lines(ROOT / "tests"),
    }


def options() -> dict[str, int]:
    """How many options each command has, without `--help`."""
    import typer.main

    from attnscope.cli.app import app

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: sum(each.param_type_name == "option" and each.name != "help" for each in command.params)
        for name, command in sorted(commands.items())
    }


def walk(name: str, folder: Path) -> tuple[int, int]:
    """How many files of the package the command enters, run in `folder`, and moves between two of them."""
    (folder / "three.txt").write_text("The cat sat.\nA dog ran home.\nIt rains again today.\n")
    given = {**os.environ, "ATTNSCOPE_DIGESTS": "off", "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    if name == "show":
        stored = ["heads", *BERT, "--layer", "3", "--head", "11", "-o", "stored.json"]
        command = [sys.executable, "-m", "attnscope", *stored]
        subprocess.run(command, cwd=folder, env=given, check=True, capture_output=True)
    ran = subprocess.run(
        [sys.executable, __file__, *COMMANDS[name]],
        cwd=folder,
        env=given,
        check=True,
        capture_output=True,
        text=True,
    )
    files, moves = ran.stderr.splitlines()[-1].split()
    return int(files), int(moves)


def _walked(command: list[str]) -> None:
    """Runs it in this process; the last line on stderr says how many files were entered, and the moves."""
    import threading
    from types import FrameType

    from attnscope.cli.app import app

    root = f"{PACKAGE}{os.sep}"
    entered: set[str] = set()
    stacks = threading.local()  # of each thread its own: one that others pop is wrong from then on
    moves = 0

    def noted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal moves
        file = frame.f_code.co_filename
        stack: list[str] = stacks.__dict__.setdefault("entered", [])
        if not frame.f_code.co_flags & 1 or not file.startswith(root):  # a module being imported, or not ours
            return
        if event == "call":
            entered.add(file)
            moves += bool(stack) and stack[-1] != file
            stack.append(file)
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(noted)
    threading.setprofile(noted)
    try:
        app(command, prog_name="attnscope")
    except SystemExit as done:
        if done.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    print(f"\n{len(entered)} {moves}", file=sys.stderr)


@pytest.mark.parametrize("part", SIZE)
def test_no_part_is_larger_than_it_may_be(part: str) -> None:
    files, lines = size()[part]
    assert files <= SIZE[part][0]
    assert lines <= SIZE[part][1]


def test_no_command_has_more_options_than_it_may() -> None:
    found = options()
    assert found.keys() == OPTIONS.keys()
    assert {name: count for name, count in found.items() if count > OPTIONS[name]} == {}


@pytest.mark.parametrize("name", WALKS)
def test_no_command_enters_more_files_than_it_may(name: str, tmp_path: Path) -> None:
    files, moves = walk(name, tmp_path)
    assert files <= WALKS[name][0]
    assert moves <= WALKS[name][1] * MARGIN


if __name__ == "__main__":
    if sys.argv[1:]:
        _walked(sys.argv[1:])
    else:
        print(f"SIZE = {size()}\nOPTIONS = {options()}")
        with tempfile.TemporaryDirectory() as room:
            print(f"WALKS = { {name: walk(name, Path(room)) for name in COMMANDS} }")
