"""On a real terminal: left as it was however the explorer ends; what nobody wants any more is stopped."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.explore import questions as ask
from attnscope.explore.asking import Desk, Failed, Work

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


HEAD = ask.OfHead("text", "encoder x", 0, 0)
MAP = ask.OfMap("text", "encoder x", 0, 0)
GRID = ask.OfLayer("text", "encoder x", 0, (0, 1), ("entropy",))


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not what() and time.monotonic() < end:
        time.sleep(0.005)
    assert what()


class Slow:
    """Every question waits until it is let go; a map counts without end."""

    def __init__(self) -> None:
        self.begun: list[ask.Question] = []
        self.let_go = threading.Event()
        self.turns = 0

    def answer(self, question: ask.Question) -> str:
        self.begun.append(question)
        if isinstance(question, ask.OfMap):
            while True:
                self.turns += 1
        if not self.let_go.wait(20):
            raise AssertionError("nobody let it go")
        return "known"


@pytest.fixture
def slow() -> Slow:
    return Slow()


def test_a_map_that_nobody_wants_ends_in_the_middle_and_the_next_question_is_begun(
    slow: Slow,
) -> None:
    desk = Desk(slow, lambda _: None)
    desk.want([MAP])
    until(lambda: slow.turns > 0)
    other = ask.OfPair("text", "encoder x", 1, 2)
    desk.want([other])
    until(lambda: other in slow.begun)
    until(lambda: not [each for each in threading.enumerate() if each.name == "explore: stoppable"])
    turns = slow.turns
    time.sleep(0.05)
    assert slow.turns == turns, "it counts no more"
    assert desk.find(MAP) is None
    slow.let_go.set()
    until(lambda: desk.find(other) == "known")
    desk.close()


def test_what_runs_the_model_is_never_cut_off(slow: Slow) -> None:
    desk = Desk(slow, lambda _: None)
    desk.want([GRID])
    until(lambda: GRID in slow.begun)
    desk.want([])
    slow.let_go.set()
    until(lambda: desk.find(GRID) == "known")
    desk.close()
    assert not any(each.stoppable for each in (HEAD, GRID, ask.OfAbsence("text", "encoder x", ((0, 0),))))


def test_no_layer_of_the_grid_is_begun_while_a_head_is_waited_for(slow: Slow) -> None:
    desk = Desk(slow, lambda _: None)
    desk.want([GRID, HEAD, replace(GRID, layer=1)])
    until(lambda: HEAD in slow.begun)
    time.sleep(0.05)
    assert slow.begun == [HEAD]
    slow.let_go.set()
    until(lambda: not desk.open)
    assert slow.begun == [HEAD, GRID, replace(GRID, layer=1)]
    desk.close()


def test_work_that_goes_wrong_is_an_answer_and_stopping_what_is_done_changes_nothing() -> None:
    done = Work(lambda: Failed("no"))
    until(lambda: done.done)
    done.stop()
    assert done.answer == Failed("no")
