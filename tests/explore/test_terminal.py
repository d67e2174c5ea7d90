"""On a real terminal: refused where there is none, and left as it was however the explorer ends."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnscope.cli.app import app

COMMAND = [str(Path(sys.executable).with_name("attnscope")), "explore", "-m", "demo"]
ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"


NO_TERMINAL = "explore needs a terminal to read keys from: attnscope heads prints the same heads"


def test_piped_it_is_one_line_that_names_heads() -> None:
    done = CliRunner().invoke(app, ["explore", "-m", "demo"])
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"attnscope: {NO_TERMINAL}\n")


def test_a_file_of_many_texts_is_no_option_of_it() -> None:
    assert "--texts" not in CliRunner().invoke(app, ["explore", "--help-all"]).stdout
    assert CliRunner().invoke(app, ["explore", "--texts", "x.txt"]).exit_code == 2
    assert "--texts" in CliRunner().invoke(app, ["heads", "--help-all"]).stdout


def test_keys_come_from_the_terminal_behind_a_pipe_and_without_one_that_is_one_line() -> None:
    """In a process of its own session, with a terminal of ours to control it and without."""
    program = (
        "import os, sys; from attnscope.errors import InputError\n"
        "from attnscope.explore.app import keys_from_the_terminal\n"
        "try: keys_from_the_terminal(); print(os.ttyname(0))\n"
        "except InputError as error: print(error)"
    )
    alone = subprocess.run(
        [sys.executable, "-c", program], input="text", capture_output=True, text=True, start_new_session=True
    )
    assert "found none behind the piped text" in alone.stdout
    child, here = pty.fork()
    if not child:
        script = f"echo text | {sys.executable} -c '{program}'"
        os.execvp("sh", ["sh", "-c", script])
    said = b""
    with suppress(OSError):  # how a terminal ends whose last process is gone
        while read := os.read(here, 1024):
            said += read
    os.waitpid(child, 0)
    os.close(here)
    assert said.startswith((b"/dev/pts/", b"/dev/tty")), said


class Terminal:
    """The explorer on a terminal of our own."""

    def __init__(self) -> None:
        self.here, there = pty.openpty()
        self.before = termios.tcgetattr(there)
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "HF_HUB_OFFLINE": "1",
            "ATTNSCOPE_THEME": "dark",
        }
        self.there, self.seen = there, b""
        self.process = subprocess.Popen(
            COMMAND, stdin=there, stdout=there, stderr=there, env=environment, start_new_session=True
        )

    def read(self, until: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not until() and time.monotonic() < end:
            if select.select([self.here], [], [], 0.05)[0]:
                self.seen += os.read(self.here, 65536)
        assert until(), self.seen[-500:]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()
    os.close(made.here)
    os.close(made.there)


@pytest.mark.parametrize("how", ["interrupt", "terminated"])
def test_the_terminal_is_left_as_it_was_while_the_model_is_still_opened(terminal: Terminal, how: str) -> None:
    terminal.read(lambda: ENTERED in terminal.seen and b"opening" in terminal.seen)
    assert termios.tcgetattr(terminal.there) != terminal.before, "keys come one by one, unseen"
    if how == "interrupt":
        os.write(terminal.here, b"\x03")
    else:
        terminal.process.send_signal(signal.SIGTERM)
    terminal.read(lambda: terminal.process.poll() is not None)
    terminal.read(lambda: LEFT in terminal.seen)
    assert terminal.process.returncode == (130 if how == "interrupt" else -signal.SIGTERM)
    assert termios.tcgetattr(terminal.there) == terminal.before
    shown = re.findall(rb"\x1b\[\?25[hl]", terminal.seen)
    assert shown[-1] == b"\x1b[?25h", "the cursor is there again"
