"""The program as a process: module, pipe, terminal. Its streams and signals have files of their own."""

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = "I was watching the [MASK] when it opened."
ATTNSCOPE = [sys.executable, "-m", "attnscope"]
ONE = [*ATTNSCOPE, "heads", TEXT, "-m", "demo", "--layer", "3", "--head", "11"]
COLOUR = re.compile(r"\x1b\[(\d+;)*(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
OFFLINE = {
    **os.environ,
    "HF_HUB_OFFLINE": "1",
    "COLUMNS": "80",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
}


def on_a_terminal(command: list[str], **environment: str) -> str:
    """What `command` writes when its output is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env={**OFFLINE, **environment})
    os.close(theirs)
    seen = b""
    while True:
        readable, _, _ = select.select([ours], [], [], 60)
        try:
            chunk = os.read(ours, 65536) if readable else b""
        except OSError:
            chunk = b""
        if not chunk:
            break
        seen += chunk
    os.close(ours)
    assert process.wait() == 0
    return seen.decode()


def test_python_m_attnscope_is_the_same_program() -> None:
    done = subprocess.run([*ATTNSCOPE, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("attnscope ")


def test_a_terminal_gets_colour_a_pipe_and_no_color_do_not() -> None:
    assert COLOUR.search(on_a_terminal(ONE))
    assert not COLOUR.search(on_a_terminal(ONE, NO_COLOR="1"))
    piped = subprocess.run(ONE, capture_output=True, text=True, env=OFFLINE, check=True)
    assert "\x1b" not in piped.stdout + piped.stderr


def test_the_certificate_is_one_line_of_a_wide_terminal() -> None:
    wide = {**OFFLINE, "COLUMNS": "200"}
    done = subprocess.run([*ONE, "-v"], capture_output=True, text=True, env=wide, check=True)
    line = next(line for line in done.stdout.splitlines() if "certified" in line)
    assert "tolerated" in line
    assert "faults" in line


def test_a_reader_that_leaves_early_is_no_accident() -> None:
    process = subprocess.Popen(ONE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=OFFLINE)
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    assert process.wait() == 141  # as a program that the signal ends


def test_shell_completion_is_there() -> None:
    environment = {**OFFLINE, "_ATTNSCOPE_COMPLETE": "source_bash"}
    command = ["-c", "from attnscope.cli.app import app; app(prog_name='attnscope')"]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, check=False
    )
    assert "attnscope" in done.stdout
    assert "complete" in done.stdout


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_completion_for_no_shell_is_one_line(option: str, tmp_path: Path) -> None:
    unknown = (
        "import shellingham, sys\n"
        "def none(*given):\n"
        "    raise shellingham.ShellDetectionFailure\n"
        "shellingham.detect_shell = none\n"
        "from attnscope.__main__ import main\n"
        "main()"
    )
    command = [sys.executable, "-c", unknown, option]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**OFFLINE, "HOME": str(tmp_path)}, check=False
    )
    said = "attnscope: cannot tell for which shell: ask in bash, zsh, fish or PowerShell\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert not list(tmp_path.iterdir())


def test_a_python_that_leaves_out_docstrings_is_refused_in_one_line() -> None:
    left_out = {**OFFLINE, "PYTHONOPTIMIZE": "2"}
    done = subprocess.run(ONE, capture_output=True, text=True, env=left_out, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "attnscope: transformers reads docstrings, which python -OO (PYTHONOPTIMIZE=2) leaves out\n"
    )


@pytest.mark.parametrize(
    "variables",
    [
        {"_ATTNSCOPE_COMPLETE": "nosuch"},
        {"_ATTNSCOPE_COMPLETE": "source_nosuch"},
        {"_ATTNSCOPE_COMPLETE": "complete_bash"},
        {"_ATTNSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": "attnscope he", "COMP_CWORD": "one"},
    ],
)
def test_a_completion_that_no_shell_asks_for_is_refused_in_one_line(variables: dict[str, str]) -> None:
    done = subprocess.run(ATTNSCOPE, capture_output=True, text=True, env=OFFLINE | variables, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "attnscope: _ATTNSCOPE_COMPLETE is set and no shell asks for a completion: unset it\n"
    )


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("attnscope he", ["heads"]),
        ("attnscope c", ["compose", "cite", "compare", "corpus", "check"]),
        ("attnscope heads --lay", ["--layer"]),
        ("attnscope nosuch --lay", []),
    ],
)
def test_a_shell_that_asks_is_told_what_can_stand_there(words: str, offered: list[str]) -> None:
    place = str(len(words.split()) - 1)
    asked = {"_ATTNSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
    done = subprocess.run(ATTNSCOPE, capture_output=True, text=True, env=OFFLINE | asked, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == offered


def test_json_is_utf_8_whatever_the_terminal_speaks() -> None:
    command = [*ATTNSCOPE, "heads", "hello café", "-m", "demo", "-l", "0", "--head", "0", "--json"]
    done = subprocess.run(
        command, capture_output=True, env={**OFFLINE, "PYTHONIOENCODING": "ascii"}, check=True
    )
    assert json.loads(done.stdout.decode("utf-8"))["query_texts"] == ["hello café"]


@pytest.mark.parametrize(
    "command", ["heads", "tsne", "predict", "compare", "report", "verify", "model", "sdpa"]
)
def test_seconds_that_are_no_number_end_every_command_in_one_line(command: str) -> None:
    asked = {
        "model": ["demo"],
        "sdpa": ["--example", "theatre"],
        "compare": ["a", "b", "--word", "1", "-m", "demo"],
    }
    arguments = [*ATTNSCOPE, command, *asked.get(command, ["a door", "-m", "demo"])]
    environment = {**OFFLINE, "HF_HUB_ETAG_TIMEOUT": ""}
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "attnscope: HF_HUB_ETAG_TIMEOUT is not a number of seconds: '': such as 10\n"
