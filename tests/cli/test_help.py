"""What the helps say, with examples that run; groups of options; names that an option had and has."""

import inspect
import os
import pty
import re
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from attnscope import demo
from attnscope.cli.app import app
from attnscope.cli.panels import brief_record, grouped
from attnscope.demo import folder
from attnscope.register import registered
from attnscope.session.option import option

EXAMPLES = {name: verb.examples for name, verb in registered().items()}
HEADINGS = dict.fromkeys(verb.under for verb in registered().values())
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
            option, does = brief_record(said, parameter)
            assert "None" not in option
            assert [line.split("  ")[-1].strip() for line in lines if line.startswith(f"  {option} ")] == [
                does
            ]
    last = " ".join(lines[lines.index("") :]).partition("All options: ")[2]
    assert re.fullmatch(r"--help-all \([\w, ]+\)", last)


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
    assert [line for line in lines if line in HEADINGS] == list(HEADINGS)
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


@dataclass(frozen=True)
class Colour:
    red: Annotated[int, option("--red", help="How red.")] = 1
    name: Annotated[str, option("--name", help="Its name.")] = "none"


def program(seen: list) -> typer.Typer:
    def paint(
        wall: Annotated[str, typer.Argument()],
        colour: Colour,
        coats: Annotated[int, typer.Option("--coats")] = 2,
    ) -> None:
        """Paint a wall."""
        seen.append((wall, colour, coats))

    made = typer.Typer()
    made.command("paint")(grouped(paint))
    made.command("other")(lambda: None)
    return made


def test_options_of_a_group_stand_where_the_group_stood() -> None:
    def paint(
        wall: Annotated[str, typer.Argument()],
        colour: Colour,
        coats: Annotated[int, typer.Option("--coats")] = 2,
    ) -> None:
        """Paint."""

    flat = grouped(paint)
    assert list(inspect.signature(flat).parameters) == ["wall", "red", "name", "coats", "help_all"]
    assert flat.__doc__ == "Paint."


def test_the_command_gets_the_group_made_of_what_was_typed() -> None:
    seen: list = []
    result = CliRunner().invoke(program(seen), ["paint", "north", "--name", "blue", "--coats", "3"])
    assert result.exit_code == 0
    assert seen == [("north", Colour(1, "blue"), 3)]


@pytest.mark.parametrize("command", sorted(get_command(app).commands))
def test_the_help_has_every_option_once_under_a_heading(attnscope, command: str) -> None:
    told = attnscope(command, "--help-all").stdout
    parameters = get_command(app).commands[command].params
    for one in (each for each in parameters if each.param_type_name == "option"):
        names = re.escape(", ".join(sorted(one.opts, key=lambda name: name.startswith("--"))))
        assert len(re.findall(rf"^  {names}(?= |$)", told, re.MULTILINE)) == 1, one.opts
    headings = re.findall(r"^(\S.*):$", told, re.MULTILINE)
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    assert headings[0] == "Examples"
    assert (headings[1] == "Arguments") == bool(arguments)
    assert headings[-1] == "Besides"
    assert len(set(headings)) == len(headings) > 1


@pytest.mark.parametrize(
    ("command", "names", "others"),
    [
        (["heads", "--layer", "3"], ["--query", "--key"], ["--from", "--to"]),
        (["find", "--controls", "3"], ["--from", "--to"], ["--query", "--key"]),
    ],
)
def test_the_token_that_looks_and_the_one_looked_at_have_two_names_in_every_command(
    attnscope, command, names, others
) -> None:
    asked = [command[0], "the door opened", "-m", "demo", "-q", *command[1:]]
    one, two = (
        attnscope(*asked, pair[0], "door", pair[1], "opened", "--json").stdout for pair in (names, others)
    )
    assert one == two != ""
