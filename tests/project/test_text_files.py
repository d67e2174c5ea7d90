"""A text file is the same on every system: who reads one names its encoding, who writes one its line ends."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def unsaid(code: str) -> Iterator[str]:
    """What each call of `code` that opens a text file leaves to the system, with its line."""
    for call in ast.walk(ast.parse(code)):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        named = {keyword.arg for keyword in call.keywords}
        mode = mode_of(call, 0 if isinstance(call.func, ast.Attribute) else 1) if name == "open" else None
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "formatter":
            continue  # which writes a help of click's
        if name == "read_text" and not call.args and "encoding" not in named:
            yield f"{call.lineno}: encoding"
        if name == "write_text" and len(call.args) < 2 and "encoding" not in named:
            yield f"{call.lineno}: encoding"
        if name == "write_text" and "newline" not in named:
            yield f"{call.lineno}: newline"
        if mode is not None and "b" not in mode and "encoding" not in named:
            yield f"{call.lineno}: encoding"


def mode_of(call: ast.Call, place: int) -> str | None:
    """The mode of `open(file, mode)` or `path.open(mode)`; None for an `open` of anything else."""
    given = next((each.value for each in call.keywords if each.arg == "mode"), None)
    given = call.args[place] if given is None and len(call.args) > place else given
    if given is None:
        return "r" if isinstance(call.func, ast.Name) else None
    told = given.value if isinstance(given, ast.Constant) else None
    return told if isinstance(told, str) and set(told) <= set("rwaxbt+") else None


@pytest.mark.parametrize("folder", ["attnscope", "benchmarks", "docs"])
def test_encoding_and_line_ends_of_every_text_file_are_said(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    left = {
        str(file.relative_to(ROOT)): found for file in files if (found := [*unsaid(file.read_text("utf-8"))])
    }
    assert left == {}


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("path.read_text()", ["1: encoding"]),
        ("path.read_text('utf-8')", []),
        ("path.read_text(encoding='utf-8')", []),
        ("path.write_text(text)", ["1: encoding", "1: newline"]),
        ("formatter.write_text(text)", []),
        ("path.write_text(text, 'utf-8')", ["1: newline"]),
        ("path.write_text(text, 'utf-8', newline='')", []),
        ("open(file)", ["1: encoding"]),
        ("open(file, 'w')", ["1: encoding"]),
        ("open(file, 'rb')", []),
        ("open(file, mode='rb')", []),
        ("open(file, encoding='ascii')", []),
        ("\npath.open('w')", ["2: encoding"]),
        ("path.open('wb')", []),
        ("Image.open(path)", []),
        ("recipe.open()", []),
        ("os.open('/dev/tty', os.O_RDWR)", []),
    ],
)
def test_what_is_left_unsaid_is_found(code: str, left: list[str]) -> None:
    assert [*unsaid(code)] == left
