"""The shape of the project: what start-up loads, what stands at the top, which faults are planted."""

import subprocess
import sys
from pathlib import Path

import pytest
from faults import Fault, faults

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "matplotlib", "sklearn", "numpy", "scipy", "huggingface_hub", "textual")


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has imported after `code`."""
    report = f"{code}\nimport sys\nprint('loaded:', *(set(sys.modules) & set({HEAVY!r})))"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.rpartition("loaded:")[2].split())


def test_help_imports_nothing_heavy_nor_does_a_file_that_is_not_there() -> None:
    asked = [
        ["--help"],
        ["--version"],
        *([name, "--help"] for name in ("heads", "explore", "verify", "sdpa")),
    ]
    code = (
        "import sys\n"
        "from attnscope.cli.app import main\n"
        "def ended(*arguments):\n"
        "    sys.argv = ['attnscope', *arguments]\n"
        "    try: main()\n"
        "    except SystemExit as end: return end.code\n"
    )
    helped = f"{code}for each in {asked!r}: assert not ended(*each)"
    assert loaded_by(helped) == set()
    lost = f"{code}for each in ('check', 'show'): assert ended(each, 'nowhere.npz') == 2"
    assert loaded_by(lost) <= {"numpy"}


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert loaded_by("import attnscope, attnscope.demo, attnscope.errors, attnscope.tokens") == set()


def test_results_and_their_rendering_need_no_torch_and_the_terminal_no_matplotlib() -> None:
    code = "import attnscope.render.terminal.sheet, sys; assert 'matplotlib' not in sys.modules\n"
    assert loaded_by(f"{code}import attnscope.render.files, attnscope.render.figure") == {
        "numpy",
        "matplotlib",
    }


def test_arithmetic_on_numbers_that_are_given_needs_no_model_library() -> None:
    assert loaded_by("import attnscope.verbs.sdpa.examples") == {"torch", "numpy"}


HOMES = {
    "load wrap": "function attnscope.library.entrance",
    "compare difference": "function attnscope.verbs.compare.library",
    "corpus": "function attnscope.verbs.corpus.library",
    "outline": "function attnscope.verbs.model.answer",
    "Model": "type attnscope.library.models",
    "Reading": "type attnscope.library.readings",
    "open": "function attnscope.results",
    "sdpa": "function attnscope.verbs.sdpa.attention",
    "AttnscopeError": "type attnscope.errors",
    "__version__": "str",
}


def test_no_module_of_the_package_takes_the_place_of_a_public_name() -> None:
    code = """if True:
        import importlib, pkgutil, attnscope
        for each in pkgutil.walk_packages(attnscope.__path__, "attnscope."):
            "demo.train" in each.name or importlib.import_module(each.name)
        for name in attnscope.__all__:
            found = getattr(attnscope, name)
            print(name, type(found).__name__, *filter(None, [getattr(found, "__module__", None)]))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.splitlines()) == {f"{name} {HOMES[all]}" for all in HOMES for name in all.split()}


def test_the_top_level_is_as_the_user_fixed_it() -> None:
    made_here = {"build", "dist", "__pycache__"}
    top = {entry.name for entry in ROOT.iterdir() if not entry.name.startswith(".")} - made_here
    files = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    files |= {"constraints.txt", "constraints-lowest.txt", "CONTRIBUTING.md", "CITATION.cff"}
    assert top <= files | {"attnscope", "tests", "outputs", "docs", "benchmarks"}


def test_every_room_has_quick_tests_and_none_of_them_is_slow() -> None:
    """What is tried with other versions of the libraries and on other processors would else miss a room."""
    quick, reasons = ((ROOT / "tests" / f"{name}.txt").read_text().splitlines() for name in ("quick", "slow"))
    slow = [each for each in reasons if not each.startswith("#")]
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


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.file)
def test_a_fault_can_be_planted_and_has_tests(fault: Fault) -> None:
    text = (ROOT / "attnscope" / fault.file).read_text("utf-8")
    assert fault.planted(text) != text
    assert all((ROOT / test).exists() for test in fault.tests)


def test_a_text_that_has_gone_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times 'gone'"):
        Fault("arithmetic.py", "gone", "", ()).planted("here")
