"""What the helps say: on one screen what matters, in full everything, with examples that run."""

import os
import pty
import re
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from attnscope import demo
from attnscope.cli.app import app
from attnscope.cli.examples import COMMANDS, EXAMPLES
from attnscope.cli.panels import WHICH, Brief
from attnscope.demo import folder

GROUP = get_command(app)
ROWS, COLUMNS, OPTIONS = 30, 80, 14
TREEBANK = """\
1\tI\t_\tPRON\t_\t_\t2\tnsubj\t_\t_
2\topened\t_\tVERB\t_\t_\t0\troot\t_\t_
3\tthe\t_\tDET\t_\t_\t4\tdet\t_\t_
4\tdoor\t_\tNOUN\t_\t_\t2\tobj\t_\t_
5\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_

1\tThe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\triver\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\topened\t_\tVERB\t_\t_\t0\troot\t_\t_
4\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_

"""


def told(*arguments: str, columns: int = COLUMNS) -> str:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": str(columns)}, prog_name="attnscope").output


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_matters_stands_on_one_screen(name: str) -> None:
    lines = told(name, "-h").splitlines()
    brief = GROUP.commands[name].callback.brief
    assert len(lines) <= ROWS
    assert max(map(len, lines)) <= COLUMNS
    assert 1 <= len(brief) <= OPTIONS
    for parameter in GROUP.commands[name].params:
        if (said := brief.get(parameter.name)) is not None:
            option, does = said.record(parameter)
            assert "None" not in option
            assert [line.split("  ")[-1].strip() for line in lines if line.startswith(f"  {option} ")] == [
                does
            ]
    last = " ".join(lines[lines.index("") :]).partition("All options: ")[2]
    assert re.fullmatch(r"--help-all \([\w, ]+\)", last)


def test_a_screen_that_is_not_marked_out_would_be_too_long() -> None:
    assert len(told("heads", "--help-all").splitlines()) > 5 * ROWS


@pytest.mark.parametrize("name", EXAMPLES)
def test_both_helps_show_the_same_examples_each_on_one_line(name: str) -> None:
    for option in ("-h", "--help", "--help-all"):
        lines = [line.strip() for line in told(name, option, columns=40).splitlines()]
        assert [line for line in lines if line in EXAMPLES[name]] == list(EXAMPLES[name])


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_one_that_the_parser_takes(name: str) -> None:
    assert len(set(EXAMPLES[name])) == 3
    for example in EXAMPLES[name]:
        program, called, *given = shlex.split(example)
        assert program == "attnscope"
        assert len(example) <= COLUMNS - 2
        GROUP.commands[called].make_context(called, given)
    assert name == called  # the last one, at least, is of the command itself
    with pytest.raises(Exception, match="No such option"):
        GROUP.commands[name].make_context(name, [*given, "--no-such-option"])


def on_a_terminal(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit code and all that a process says on a terminal of its own, on which q is typed."""
    child, here = pty.fork()
    if not child:
        os.chdir(folder)
        os.execv(sys.executable, [sys.executable, "-m", "attnscope", *arguments])
    os.write(here, b"q")
    said = b""
    with suppress(OSError):  # how a terminal ends whose last process is gone
        while read := os.read(here, 4096):
            said += read
    _, status = os.waitpid(child, 0)
    os.close(here)
    return os.waitstatus_to_exitcode(status), said.decode("utf-8", "replace")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs_on_the_bundled_models(
    attnscope, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "dev.conllu").write_text(TREEBANK * 4, "utf-8")
    (tmp_path / "texts.txt").write_text("The door opened.\nI was watching the door.\n", "utf-8")
    shutil.copy(folder("demo-speech") / "example.wav", tmp_path / "speech.wav")
    for example in EXAMPLES[name]:
        arguments = shlex.split(example)[1:]
        if name == "explore":
            code, said = on_a_terminal(arguments, tmp_path)
        else:
            done = attnscope(*arguments)
            code, said = done.exit_code, done.stderr
        assert code == 0, said
        for file in (tmp_path / arguments[i + 1] for i, word in enumerate(arguments) if word == "-o"):
            assert file.stat().st_size


def test_the_program_s_help_has_every_command_once_in_a_whole_sentence_under_a_question() -> None:
    lines = told("--help").splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert lines[2].strip() == EXAMPLES["heads"][0]
    assert [line for line in lines if line in COMMANDS] == list(COMMANDS)
    for name, command in GROUP.commands.items():
        first = command.help.split("\n\n")[0]
        assert [line.split()[0] for line in lines if line.endswith(f" {first}")] == [name]
    assert list(GROUP.commands) == list(EXAMPLES)


def test_the_program_s_help_ends_with_how_heads_count_the_bundled_models_and_exit_codes() -> None:
    end = " ".join(told("-h").split()).partition("Trust and files")[2].replace("- ", "-")
    assert "L3 H11 is layer 3, head 11; everything counts from 0." in end
    assert re.findall(r"(demo[\w-]*) \(", end) == list(demo.FOLDERS)
    assert "Exit codes: 0 fine, 2 bad input" in end
    assert told("-h") == told("--help")


def test_the_model_stands_first_of_what_is_looked_at() -> None:
    lines = told("heads", "-h").splitlines()
    assert lines[lines.index(f"{WHICH}:") + 1].startswith("  -m, --model NAME")


def test_an_option_is_marked_beside_itself() -> None:
    marks = {name: GROUP.commands[name].callback.brief for name in EXAMPLES}
    assert marks["heads"]["layer"] is marks["find"]["layer"]
    assert all(isinstance(mark, Brief) for named in marks.values() for mark in named.values())
    assert "dtype" not in marks["heads"]
