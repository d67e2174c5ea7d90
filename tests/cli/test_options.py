"""Groups of options: a command that asks for a group gets the group's own options in its place."""

import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.cli.panels import grouped


@dataclass(frozen=True)
class Colour:
    red: Annotated[int, typer.Option("--red")] = 1
    name: Annotated[str, typer.Option("--name")] = "none"


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


def test_options_that_no_group_has_are_refused() -> None:
    assert CliRunner().invoke(program([]), ["paint", "north", "--green", "1"]).exit_code == 2


@pytest.mark.parametrize("command", sorted(get_command(app).commands))
def test_the_help_has_every_option_once_under_a_heading(attnscope, command: str) -> None:
    told = attnscope(command, "--help-all").stdout
    parameters = get_command(app).commands[command].params
    for option in (each for each in parameters if each.param_type_name == "option"):
        names = re.escape(", ".join(sorted(option.opts, key=lambda name: name.startswith("--"))))
        assert len(re.findall(rf"^  {names}(?= |$)", told, re.MULTILINE)) == 1, option.opts
    headings = re.findall(r"^(\S.*):$", told, re.MULTILINE)
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    assert headings[0] == "Examples"
    assert (headings[1] == "Arguments") == bool(arguments)
    assert headings[-1] == "Besides"
    assert len(set(headings)) == len(headings) > 1


def test_options_stand_with_those_that_are_about_the_same(attnscope) -> None:
    told = attnscope("heads", "--help-all").stdout
    places = [told.index(each) for each in (
        "What is read:", "--image FILE", "Which attention:", "--head, --heads N", "What is shown, and how:",
        "--terms",
        "--words", "Text that the model writes:", "--generate", "Which model, and how it runs:", "--attn",
        "Besides:",
    )]  # fmt: skip
    assert places == sorted(places)


def test_a_text_without_quotes_is_told_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    ended = CliRunner().invoke(app, ["heads", "the", "cat", "sat"])
    assert ended.exit_code == 2
    assert "a text of several words goes in quotes" in ended.stderr


NO_SCRIPT = {
    "why": (
        "--layer 1 --head 2 --from door --to the",
        "its sum needs every operation of the run cut into parts",
    ),
    "explain": ("--from door --to the", "it is several questions: find, ablate, flow and compose"),
}


@pytest.mark.parametrize("command", NO_SCRIPT)
def test_what_no_plain_program_can_compute_says_so_instead_of_a_script(attnscope, command: str) -> None:
    options, said = NO_SCRIPT[command]
    refused = attnscope(command, "the door", "-m", "demo", *options.split(), "-o", "again.py")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"attnscope: no script: {said}")


def test_several_heads_have_no_script_and_that_is_one_line(attnscope, tmp_path: Path) -> None:
    out = tmp_path / "again.py"
    refused = attnscope("heads", "the door", "-m", "demo", "--layer", "0", "-o", str(out))
    said = "attnscope: no script: there is one of one head of a text, and of find, flow, ablate, compose\n"
    assert (refused.exit_code, refused.stdout, refused.stderr) == (2, "", said)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["find", "the cat", "--laier", "3"], "no such option: --laier: did you mean --layer?"),
        (["heads", "the cat", "--mesure", "entropy"], "no such option: --mesure: did you mean --measure?"),
        (["predict", "the cat", "--head", "3"], "no such option: --head: heads, explore, report and "),
        (["heads", "the cat", "--pattern", "self"], "no such option: --pattern: find has it"),
        (["heads", "the cat", "--zzzz"], "no such option: --zzzz (see"),
        (["hed"], "no such command 'hed'. Did you mean 'heads'?"),
        (["the cat sat"], "no such command 'the cat sat': a text stands behind one, as in attnscope heads"),
        (
            ["find", "the cat", "-m", "demo", "--pattern", "inducton"],
            "'inducton': did you mean induction? There",
        ),
        (["find", "the cat", "-m", "demo", "--pattern", "zzz"], "no pattern 'zzz': previous, next"),
        (["heads", "the cat", "-m", "demo", "--measure", "entropi"], "nearest are entropy, "),
        (
            ["heads", "the cat", "-m", "demo", "--query", "Caat"],
            "the nearest is 2 cat; tokens are 0 [CLS], 1",
        ),
        (["heads", "the cat", "-m", "demo", "--query", "zebra"], "'zebra' in the input: tokens are 0 [CLS]"),
    ],
)
def test_what_is_misspelled_is_told_the_nearest_that_there_is_on_one_line(attnscope, arguments, said) -> None:
    refused = attnscope(*arguments)
    assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert said in refused.stderr


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


def test_a_former_name_of_an_option_is_taken_and_not_told(attnscope) -> None:
    asked = ["ablate", "the [MASK] opened", "-m", "demo", "-l", "3", "--head", "11", "-q", "--json"]
    one, two = (attnscope(*asked, name, "[MASK]->opened").stdout for name in ("--link", "--edge"))
    assert one == two != ""
    assert "--edge" not in attnscope("ablate", "--help-all").stdout
