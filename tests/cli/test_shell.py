"""The program as a process: module, pipe, terminal, completion; streams that are closed or full."""

import json
import os
import pty
import re
import resource
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


@pytest.mark.parametrize("asked", ["heads door -m demo", "model demo", "sdpa --example theatre"])
def test_seconds_that_are_no_number_end_every_command_in_one_line(asked: str) -> None:
    environment = {**OFFLINE, "HF_HUB_ETAG_TIMEOUT": ""}
    command = [*ATTNSCOPE, *asked.split()]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "attnscope: HF_HUB_ETAG_TIMEOUT is not a number of seconds: '': such as 10\n"


def test_a_log_that_torch_does_not_have_is_one_line() -> None:
    logged = {**OFFLINE, "TORCH_LOGS": "nope"}
    done = subprocess.run(ONE, env=logged, capture_output=True, text=True, check=False)
    told = "attnscope: TORCH_LOGS names no log of torch: 'nope': such as +dynamo\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


STREAMED = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "80", "TERM": "dumb"}
ASKED = {
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
    done = subprocess.run(command, text=True, env=STREAMED, check=False, **given)
    for number in opened:
        os.close(number)
    return done.returncode, done.stdout or "", done.stderr or ""


@pytest.fixture(scope="module")
def usual() -> dict[str, tuple[int, str, str]]:
    return {name: run(arguments) for name, (arguments, _) in ASKED.items()}


@pytest.mark.parametrize("name", ASKED)
def test_a_notice_that_nobody_can_read_changes_nothing(usual, name: str) -> None:
    arguments, code = ASKED[name]
    assert usual[name][0] == code
    for state in ("full", "closed", "broken"):
        assert run(arguments, stderr=state) == (code, usual[name][1], ""), state


@pytest.mark.parametrize("name", [name for name in ASKED if name != "notices"])
def test_an_output_that_is_lost_is_told_unless_nobody_wanted_it(usual, name: str) -> None:
    arguments, code = ASKED[name]
    prints = bool(usual[name][1])
    assert run(arguments, stdout="closed") == (code, "", usual[name][2])
    assert run(arguments, stdout="full") == ((2, "", FULL) if prints else usual[name])
    assert run(arguments, stdout="broken") == ((141, "", "") if prints else usual[name])


def test_both_streams_may_be_lost_at_once() -> None:
    assert run(["measures"], stdout="full", stderr="full") == (2, "", "")
    assert run(["measures"], stdin="closed", stdout="closed", stderr="closed") == (0, "", "")


def test_no_file_gets_the_number_of_a_stream_that_is_closed() -> None:
    code = (
        "import os; from attnscope.cli.output import guard; guard()\n"
        "print(os.open(os.devnull, os.O_RDONLY) > 2, file=__import__('sys').stdout)"
    )
    command = ["sh", "-c", 'exec "$@" <&- 2>&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


def test_an_output_beyond_the_limit_of_a_file_is_one_line(tmp_path: Path) -> None:
    arguments = ["measures"]
    with (tmp_path / "out.txt").open("w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "attnscope", *arguments],
            stdout=out, stderr=subprocess.PIPE, text=True, env=STREAMED, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "attnscope: cannot write the output: File too large\n")


def test_a_current_folder_that_was_deleted_is_one_line(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    program = "from attnscope.__main__ import main; main()"
    arguments = ["measures"]
    command = ["sh", "-c", script, "sh", sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=STREAMED, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "attnscope: cannot work in the current folder: No such file or directory: go to another one\n"
    )


def test_an_input_that_cannot_be_read_is_one_line() -> None:
    arguments = ["sdpa", "-"]
    with open(os.devnull, "w") as unreadable:
        done = subprocess.run(
            [sys.executable, "-m", "attnscope", *arguments],
            stdin=unreadable, capture_output=True, text=True, env=STREAMED, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "attnscope: cannot read standard input: Bad file descriptor\n"
