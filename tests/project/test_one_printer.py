"""What leaves the program goes through few doors; whoever else prints is refused here."""

import ast
from pathlib import Path

import pytest

import attnscope

HOUSE = Path(attnscope.__file__).parent
MAY_PRINT = {  # and what
    "cli/streams.py": "lines, and documents whose texts are escaped",
    "render/terminal/console.py": "whatever is laid out for a terminal",
    "process/ending.py": "one line of its own, and what ends the streams",
    "process/standard_error.py": "the traceback of a bug",
    "cli/output.py": "what takes the spinner away",
    "explore/app.py": "the same, and its modes as they were",
    "render/script/again/": "the programs that are written into files and run alone",
    "demo/train/": "the programs that train the package's own models",
}
PRINTS = {("typer", "echo"), ("typer", "secho"), ("click", "echo"), ("click", "secho"), ("os", "write")}
CONSOLES = {"Console", "print"}
STREAMS = ("sys.std", "sys.__std")


def printing(source: str) -> list[str]:
    """The lines of a module that print, make a console, or write to a standard stream."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        named = isinstance(function, ast.Name) and function.id in CONSOLES
        owned = isinstance(function, ast.Attribute) and (
            (ast.unparse(function.value), function.attr) in PRINTS
            or (
                function.attr in ("write", "writelines")
                and _owner(function).startswith(("sys.std", "sys.__std"))
            )
            or (function.attr == "Console")
        )
        if named or owned:
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def _owner(function: ast.Attribute) -> str:
    return ast.unparse(function.value)


def test_nobody_else_prints() -> None:
    around = {}
    for file in HOUSE.rglob("*.py"):
        module = file.relative_to(HOUSE).as_posix()
        if not module.startswith(tuple(MAY_PRINT)) and (lines := printing(file.read_text("utf-8"))):
            around[module] = lines
    assert not around


def test_everybody_who_may_print_does() -> None:
    for place in MAY_PRINT:
        files = [HOUSE / place] if place.endswith(".py") else (HOUSE / place).rglob("*.py")
        sources = [file.read_text("utf-8") for file in files]
        assert any(printing(source) or "(Console)" in source for source in sources), place


@pytest.mark.parametrize(
    "line",
    [
        "print('a')",
        "print('a', file=sys.stderr)",
        "typer.echo(name)",
        "sys.stdout.write(name)",
        "sys.stderr.buffer.write(name)",
        "sys.__stdout__.write(name)",
        "Console().print(name)",
        "rich.console.Console(stderr=True)",
        "os.write(1, name)",
    ],
)
def test_a_line_that_prints_is_seen(line: str) -> None:
    assert printing(f"import sys\ndef shown(name):\n    {line}\n")


@pytest.mark.parametrize("line", ["place.write(name)", "screen.print(name)", "say(name)", "os.open(name)"])
def test_a_line_that_does_not_is_not(line: str) -> None:
    assert not printing(line)
