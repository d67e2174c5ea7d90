"""Streams that are closed, full, or read by nobody: a lost notice ends nothing, a lost output is told."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "80", "TERM": "dumb"}
COMMANDS = {
    "version": (["--version"], 0),
    "help": (["--help"], 0),
    "measures": (["measures"], 0),
    "usage": (["heads", "x", "--nonsense"], 2),
    "notices": (["sdpa", "--example", "fruit"], 0),
}
FULL = "attnscope: cannot write the output: No space left on device\n"


def run(arguments: list[str], **streams: str) -> tuple[int, str, str]:
    """Exit code, standard output and error of the program; `streams` are `full`, `closed` or `broken`."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command, opened = [sys.executable, "-m", "attnscope", *arguments], []
    for name, state in streams.items():
        if state == "full":
            opened.append(os.open("/dev/full", os.O_WRONLY))
        elif state == "broken":
            read, write = os.pipe()
            os.close(read)
            opened.append(write)
        else:
            number = ("stdin", "stdout", "stderr").index(name)
            command = ["sh", "-c", f'exec "$@" {number}>&-', "sh", *command]
            continue
        given[name] = opened[-1]
    done = subprocess.run(command, text=True, env=ENVIRONMENT, check=False, **given)
    for number in opened:
        os.close(number)
    return done.returncode, done.stdout or "", done.stderr or ""


@pytest.fixture(scope="module")
def usual() -> dict[str, tuple[int, str, str]]:
    return {name: run(arguments) for name, (arguments, _) in COMMANDS.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_notice_that_nobody_can_read_changes_nothing(usual, name: str) -> None:
    arguments, code = COMMANDS[name]
    assert usual[name][0] == code
    for state in ("full", "closed", "broken"):
        assert run(arguments, stderr=state) == (code, usual[name][1], ""), state


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "notices"])
def test_an_output_that_is_lost_is_told_unless_nobody_wanted_it(usual, name: str) -> None:
    arguments, code = COMMANDS[name]
    prints = bool(usual[name][1])
    assert run(arguments, stdout="closed") == (code, "", usual[name][2])
    assert run(arguments, stdout="full") == ((2, "", FULL) if prints else usual[name])
    assert run(arguments, stdout="broken") == ((141, "", "") if prints else usual[name])


def test_both_streams_may_be_lost_at_once() -> None:
    assert run(["measures"], stdout="full", stderr="full") == (2, "", "")
    assert run(["measures"], stdout="broken", stderr="broken") == (141, "", "")
    assert run(["measures"], stdin="closed", stdout="closed", stderr="closed") == (0, "", "")


def test_no_file_gets_the_number_of_a_stream_that_is_closed() -> None:
    code = (
        "import os; from attnscope.cli.streams import guard; guard()\n"
        "print(os.open(os.devnull, os.O_RDONLY) > 2, file=__import__('sys').stdout)"
    )
    command = ["sh", "-c", 'exec "$@" <&- 2>&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


def test_an_output_beyond_the_limit_of_a_file_is_one_line(tmp_path: Path) -> None:
    for arguments in (["--help"], ["measures"]):
        with (tmp_path / "out.txt").open("w") as out:
            done = subprocess.run(
                [sys.executable, "-m", "attnscope", *arguments],
                stdout=out, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
            )  # fmt: skip
        assert (done.returncode, done.stderr) == (2, "attnscope: cannot write the output: File too large\n")


def test_a_current_folder_that_was_deleted_is_one_line(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    program = "from attnscope.__main__ import main; main()"
    for arguments in (["sdpa", "--example", "fruit"], ["measures"]):
        command = ["sh", "-c", script, "sh", sys.executable, "-c", program, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "attnscope: cannot work in the current folder: No such file or directory: go to another one\n"
        )


def test_an_input_that_cannot_be_read_is_one_line() -> None:
    for arguments in (["heads", "-", "-m", "demo"], ["sdpa", "-"]):
        with open(os.devnull, "w") as unreadable:
            done = subprocess.run(
                [sys.executable, "-m", "attnscope", *arguments],
                stdin=unreadable, capture_output=True, text=True, env=ENVIRONMENT, check=False,
            )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "attnscope: cannot read standard input: Bad file descriptor\n"
