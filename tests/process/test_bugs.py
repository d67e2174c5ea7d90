"""A bug's traceback, in processes of their own: all of it is there, and nothing of it steers a terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

STEERING = "\x1b]0;stolen\x07\x9b2J\u202e\r"
# the program as its command runs it, but that a function of it is that of a file with a bug
BUGGED = """
import sys
from attnscope import worked
sys.path.insert(0, sys.argv.pop(1))
import bugged
worked.example = getattr(bugged, sys.argv.pop(1))
from attnscope.__main__ import main
main()
"""
BUGS = """
import threading
class Freed:
    def __del__(self):
        raise RuntimeError(MESSAGE)
    def __repr__(self):
        return "freed " + MESSAGE
def raised(*given):
    raise RuntimeError(MESSAGE)  # {STEERING}
def caused(*given):
    try:
        raised()
    except RuntimeError as error:
        error.add_note("noted " + MESSAGE)
        raise KeyError("second") from error
def in_a_thread(*given):
    thread = threading.Thread(target=raised, name="thread " + MESSAGE)
    thread.start()
    thread.join()
    raise SystemExit(1)
def freeing(*given):
    Freed()
    raise SystemExit(1)
"""


def told(bug: str, folder: Path) -> str:
    source = f"MESSAGE = {STEERING!r} + 'next\\nlast'\n" + BUGS.replace("{STEERING}", STEERING.strip("\r"))
    (folder / "bugged.py").write_text(source, "utf-8")
    asked = [sys.executable, "-c", BUGGED, str(folder), bug, "sdpa", "--example", "fruit"]
    done = subprocess.run(asked, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    return done.stderr.decode("utf-8")


@pytest.mark.parametrize("bug", ["raised", "caused", "in_a_thread", "freeing"])
def test_nothing_of_a_traceback_steers_and_all_of_it_is_told(bug: str, tmp_path: Path) -> None:
    errors = told(bug, tmp_path)
    steering = [each for each in errors if each != "\n" and not each.isprintable()]
    assert not steering, errors
    lines = errors.splitlines()
    escaped = r"\x1b]0;stolen\x07\x9b2J\u202e␍"
    at = lines.index(f"RuntimeError: {escaped}next")
    assert lines[at + 1] == "last"
    assert "Traceback (most recent call last):" in lines
    assert any(line.startswith(f'  File "{tmp_path}/bugged.py", line ') for line in lines)
    assert r"    raise RuntimeError(MESSAGE)  # \x1b]0;stolen\x07\x9b2J\u202e" in lines or bug == "freeing"
    first, last = {
        "raised": ("Traceback", "last"),
        "caused": ("Traceback", "KeyError: 'second'"),
        "in_a_thread": (f"Exception in thread thread {escaped}next", "last"),
        "freeing": ("Exception ignored in: ", "last"),
    }[bug]
    assert lines[0].startswith(first)
    assert lines[-1] == last
    assert (f"noted {escaped}next" in lines) is (bug == "caused")


def test_who_imports_the_package_keeps_the_hooks_of_python() -> None:
    code = (
        "import sys, threading, attnscope, attnscope.__main__, attnscope.process.standard_error\n"
        "assert sys.excepthook is sys.__excepthook__\n"
        "assert threading.excepthook is threading.__excepthook__"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
