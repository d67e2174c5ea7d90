"""Groups of options: a command that asks for a group gets the group's own options in its place."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from attnscope.cli.options import grouped


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
    assert list(inspect.signature(flat).parameters) == ["wall", "red", "name", "coats"]
    assert flat.__doc__ == "Paint."


def test_the_command_gets_the_group_made_of_what_was_typed() -> None:
    seen: list = []
    result = CliRunner().invoke(program(seen), ["paint", "north", "--name", "blue", "--coats", "3"])
    assert result.exit_code == 0
    assert seen == [("north", Colour(1, "blue"), 3)]


def test_options_that_no_group_has_are_refused() -> None:
    assert CliRunner().invoke(program([]), ["paint", "north", "--green", "1"]).exit_code == 2
