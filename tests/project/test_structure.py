"""The shape of the project: what start-up loads, what stands at the top."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "matplotlib", "sklearn", "numpy", "scipy", "huggingface_hub", "textual")


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has imported after `code`."""
    report = f"{code}\nimport sys\nprint('loaded:', *(set(sys.modules) & set({HEAVY!r})))"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.rpartition("loaded:")[2].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["heads", "--help"],
        ["explore", "--help"],
        ["verify", "--help"],
        ["sdpa", "--help"],
        ["--version"],
    ],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; sys.argv = ['attnscope', *ARGUMENTS]\n"
        "from attnscope.cli.app import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code, end.code"
    )
    assert loaded_by(code.replace("ARGUMENTS", repr(arguments))) == set()


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_file_that_is_not_there_is_told_before_anything_heavy_is_imported(command: str) -> None:
    code = (
        f"import sys; sys.argv = ['attnscope', '{command}', 'nowhere.npz']\n"
        "from attnscope.cli.app import main\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 2, end.code"
    )
    assert loaded_by(code) <= {"numpy"}


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert loaded_by("import attnscope, attnscope.demo, attnscope.errors, attnscope.tokens") == set()


def test_results_and_their_rendering_need_no_torch() -> None:
    code = "import attnscope.render.terminal.sheet, attnscope.render.files, attnscope.render.figure"
    assert loaded_by(code) == {"numpy", "matplotlib"}


def test_the_terminal_needs_no_matplotlib() -> None:
    assert loaded_by("import attnscope.render.terminal.sheet") == {"numpy"}


def test_the_check_of_imports_would_notice() -> None:
    assert "torch" in loaded_by("import attnscope.sdpa")


def test_arithmetic_on_numbers_that_are_given_needs_no_model_library() -> None:
    assert loaded_by("import attnscope.worked") == {"torch", "numpy"}


def test_the_top_level_is_as_the_user_fixed_it() -> None:
    made_here = {"build", "dist", "__pycache__"}
    top = {entry.name for entry in ROOT.iterdir() if not entry.name.startswith(".")} - made_here
    files = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    files |= {"constraints.txt", "constraints-lowest.txt", "CONTRIBUTING.md", "CITATION.cff"}
    assert top <= files | {"attnscope", "tests", "outputs", "docs", "benchmarks"}


def test_every_room_has_quick_tests_and_none_of_them_is_slow() -> None:
    """What is tried with other versions of the libraries and on other processors would else miss a room."""
    quick, slow = ((ROOT / "tests" / f"{name}.txt").read_text().splitlines() for name in ("quick", "slow"))
    slow_rooms = {ROOT / each for each in slow if not each.partition("::")[0].endswith(".py")}
    rooms = {file.parent for file in (ROOT / "tests").rglob("test_*.py")} - slow_rooms
    assert {(ROOT / each.partition("::")[0]).parent for each in quick} == rooms
    tested = {Path(each.partition("::")[0]) for each in quick}
    for room in (entry for entry in (ROOT / "attnscope").iterdir() if (entry / "__init__.py").exists()):
        assert any(room.name in (file.parts[1], file.stem.removeprefix("test_")) for file in tested), (
            room.name
        )
    assert set(quick).isdisjoint(slow)
    assert all((ROOT / each.partition("::")[0]).exists() for each in (*quick, *slow))
