"""A signal at any moment: one line for Ctrl-C, and nothing half-written left. The moments are exact."""

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sharded import in_shards, llama

from attnscope.cli.output import Output

# the program as its command runs it, but that it sends itself a signal: when a module is about to be
# imported, or, of `module:name`, when that function is called
STRUCK = """
import os, sys
number, (where, _, called) = int(sys.argv.pop(1)), sys.argv.pop(1).partition(":")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            os.kill(os.getpid(), number)

def strike(*given, **named):
    os.kill(os.getpid(), number)
    return real(*given, **named)

if called:
    from importlib import import_module
    module = import_module(where)
    real = getattr(module, called)
    setattr(module, called, strike)
else:
    sys.meta_path.insert(0, Finder())
from attnscope.__main__ import main
main()
"""
ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "TERM": "xterm-256color"}
HEAD = ["heads", "the door opened", "-m", "demo", "-l", "0", "--head", "0"]
FRUIT = ["sdpa", "--example", "fruit", "-q"]


def command(number: int, where: str, arguments: list[str]) -> list[str]:
    return [sys.executable, "-c", STRUCK, str(int(number)), where, *arguments]


def listening() -> None:
    """No signal is switched off, as a shell does it for what runs in the background."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def struck(number: int, where: str, arguments: list[str], folder: Path) -> tuple[int, str, str]:
    given = command(number, where, arguments)
    done = subprocess.run(
        given, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder, check=False, preexec_fn=listening
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("attnscope.cli.app", FRUIT),
        ("rich.console", FRUIT),
        ("torch.nn", FRUIT),
        ("transformers.utils", HEAD),
    ],
)
def test_an_interrupt_during_an_import_is_one_line_and_130(where, arguments, tmp_path: Path) -> None:
    assert struck(signal.SIGINT, where, arguments, tmp_path) == (130, "", "attnscope: interrupted\n")


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "attnscope: interrupted\n"),
        (signal.SIGTERM, -signal.SIGTERM, ""),
        (signal.SIGHUP, -signal.SIGHUP, ""),
    ],
)
def test_a_signal_while_a_file_is_written_leaves_what_was_there_before(number, code, said, tmp_path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.json").write_text("the old content")
    asked = [*FRUIT, "-o", "here/a.json"]
    assert struck(number, "os:replace", asked, tmp_path) == (code, "", said)
    assert (tmp_path / "here" / "a.json").read_text() == "the old content"
    assert [path.name for path in tmp_path.rglob("*")] == ["here", "a.json"]


def test_folders_that_were_made_for_a_file_go_with_it(tmp_path: Path) -> None:
    asked = [*FRUIT, "-o", "sub/dir/a.json"]
    assert struck(signal.SIGINT, "os:replace", asked, tmp_path)[0] == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_folder_that_a_sharded_model_is_read_from_goes_with_it(
    number, tmp_path: Path, monkeypatch
) -> None:
    folder, temporary = in_shards(llama(), tmp_path / "m"), tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setitem(ENVIRONMENT, "TMPDIR", str(temporary))
    assert struck(number, "shutil:copy", ["heads", "the door", "-m", str(folder)], tmp_path)[0] in (
        130,
        -number,
    )
    assert list(temporary.iterdir()) == []


def test_nothing_is_cleared_away_when_nothing_strikes(tmp_path: Path) -> None:
    asked = [*FRUIT, "-o", "sub/dir/a.json"]
    assert struck(signal.SIGINT, "no.such.module", asked, tmp_path)[0] == 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.json"]


def test_a_signal_that_was_switched_off_is_not_answered(tmp_path: Path) -> None:
    given = command(signal.SIGHUP, "rich.console", FRUIT)
    done = subprocess.run(["nohup", *given], capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert done.returncode == 0
    assert "Example fruit" in done.stdout


def test_the_cursor_that_a_spinner_hides_is_given_back() -> None:
    ours, theirs = pty.openpty()
    given = command(signal.SIGINT, "attnscope.verbs.sdpa.examples:example", FRUIT[:-1])
    process = subprocess.Popen(
        given, stdout=subprocess.DEVNULL, stderr=theirs, env=ENVIRONMENT, preexec_fn=listening
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # how a terminal says that nobody writes any more
            break
    os.close(ours)
    assert process.wait() == 130
    hidden, shown = seen.rindex(b"\x1b[?25l"), seen.rindex(b"\x1b[?25h")
    assert hidden < shown
    assert seen[shown:].endswith(b"attnscope: interrupted\r\n")


def test_a_spinner_is_drawn_before_the_work_begins_that_could_hold_its_thread_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rich.live._RefreshThread.run", lambda _: None)  # it never gets a turn
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with open(theirs, "w") as screen:
        monkeypatch.setattr(sys, "stderr", screen)
        with Output().working("importing torch"):
            seen = b""
            while b"importing torch" not in seen:
                assert select.select([ours], [], [], 10)[0], f"nothing was drawn but {seen!r}"
                seen += os.read(ours, 65536)
    os.close(ours)


def test_who_imports_the_package_keeps_the_answer_that_python_gives() -> None:
    code = (
        "import signal, attnscope, attnscope.__main__, attnscope.process.ending\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", code], check=True, preexec_fn=listening)


def test_an_interrupted_corpus_says_where_what_is_measured_is_kept_and_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("The old dog barks.\n")
    asked = ["corpus", "texts.txt", "-m", "demo", "--workers", "0", "-q", "--run", "cut"]
    how = "what is measured is kept in cut, the same command goes on from there"
    told = (130, "", f"attnscope: interrupted: {how}\n")
    assert struck(signal.SIGINT, "attnscope.verbs.corpus.answer:Run", asked, tmp_path) == told
