"""Documentation that cannot lie: what is generated from the program is what the program says now."""

import importlib.util
import json
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
SPECIFICATION = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
GENERATE = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(GENERATE)
LONG = ("claims", "jobs", "kinds")


def pages(named: tuple[Path, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", named, ids=[page.stem for page in named])


@pytest.fixture
def generate():
    return GENERATE


def test_the_reference_is_what_the_commands_say(generate) -> None:
    assert (ROOT / "docs" / "cli.md").read_text("utf-8") == generate.cli_reference()


def test_the_measures_are_those_of_the_registry(generate) -> None:
    from attnscope.measures import MEASURES

    page = (ROOT / "docs" / "measures.md").read_text("utf-8")
    assert page == generate.measures_table()
    assert all(f"| {name} |" in page for name in MEASURES)


def test_the_schema_files_are_those_of_the_classes_of_results(generate) -> None:
    written = {file.name: file.read_text("utf-8") for file in (ROOT / "docs" / "schema").iterdir()}
    made = generate.schemas()
    assert written.keys() == made.keys()
    assert [name for name in made if written[name] != made[name]] == []  # python docs/generate.py schema


def test_a_schema_file_is_named_by_its_kind_and_small(generate) -> None:
    for name, content in generate.schemas().items():
        called = f"attnscope.{name.removesuffix('.json')}/"
        schema = json.loads(content)
        assert schema["$id"] == schema["title"] == schema["properties"]["schema"]["const"]
        assert schema["$id"].startswith(called)
        assert int(schema["$id"].removeprefix(called)) >= 2
        assert len(content) < (83_000 if name == "explanation.json" else 52_000), "it holds five others"


@pages(tuple(page for page in GENERATE.PAGES if page.stem not in LONG))
def test_a_page_shows_what_the_program_prints_to_the_letter(generate, page: Path) -> None:
    told = page.read_text("utf-8")
    assert generate.with_output(told) == told


@pages(tuple(page for page in GENERATE.PAGES if page.stem in LONG))
def test_a_page_that_takes_long_shows_what_the_program_prints_to_the_letter(generate, page: Path) -> None:
    told = page.read_text("utf-8")
    assert generate.with_output(told) == told


@pages(GENERATE.LESSONS)
def test_a_lesson_shows_what_the_program_prints_and_the_pictures_that_it_writes(generate, page: Path) -> None:
    told = page.read_text("utf-8")
    pictures = set(generate.PICTURE.findall(told))
    for name in pictures:
        (ROOT / "outputs" / name).unlink(missing_ok=True)
    assert generate.with_output(told) == told
    assert pictures == {name for name in pictures if (ROOT / "outputs" / name).stat().st_size > 5_000}
    assert pictures == {name for name in pictures if (page.parent / name).stat().st_size > 5_000}


@pages(GENERATE.NOTEBOOKS)
def test_the_cells_of_a_notebook_run_one_after_the_other_and_print_what_stands_there(
    generate, page: Path, monkeypatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def told(notebook: str) -> list[list[object]]:
        cells = [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
        return [
            [
                (each.get("text") or each["data"]["text/plain"], sorted(each.get("data", ())))
                for each in cell["outputs"]
            ]
            for cell in cells
        ]

    stored = page.read_text("utf-8")
    assert told(generate.notebooks.with_outputs(stored)) == told(stored)
    assert sum(map(len, told(stored))) >= 6
    with pytest.raises(AssertionError):
        generate.notebooks.with_outputs(stored.replace("import attnscope as at", "assert False"))


def test_every_page_of_the_guide_is_asked_and_most_show_output(generate) -> None:
    rooms = ("guide", "lessons", "gallery", "examples")
    asked = {ROOT / "README.md", *(page for room in rooms for page in (ROOT / "docs" / room).glob("*.md"))}
    assert {*generate.PAGES, *generate.LESSONS} == asked
    shown = [page for page in generate.PAGES if generate.CONSOLE_BLOCK.search(page.read_text("utf-8"))]
    assert len(shown) >= 6
    assert all(generate.CONSOLE_BLOCK.search(page.read_text("utf-8")) for page in generate.LESSONS)


def test_a_drifted_page_would_be_noticed(generate) -> None:
    block = "```console\n$ attnscope --version\nattnscope 99\n```\n"
    assert generate.with_output(block) != block


def test_what_a_filter_leaves_and_an_exit_code_are_shown_as_a_shell_does(generate) -> None:
    asked = "attnscope sdpa --example fruit"
    assert (
        generate.shell(f"{asked} | head -2").splitlines() == generate.run(asked.split()[1:]).splitlines()[:2]
    )
    told = generate.shell('attnscope predict "It opened." -m no/such-model; echo $?').splitlines()
    assert told[-1] == "3"
    assert "no/such-model" in told[0]
    with pytest.raises(RuntimeError, match="ended with 3"):
        generate.shell('attnscope predict "It opened." -m no/such-model')


def test_digits_that_differ_between_machines_are_left_out_and_no_others(generate) -> None:
    told = "trustworthiness .89 over 5 neighbours · settled after 1,100 iterations · off 4.3e-8 · .83"
    assert generate.settled(told) == (
        "trustworthiness … over 5 neighbours · settled after … iterations · off … · .83"
    )


def test_the_readme_is_read_in_three_minutes(generate) -> None:
    words = len(re.sub(r"```.*?```", "", README, flags=re.DOTALL).split())
    assert words < 3 * 240
    assert len(README.split()) <= 1500


@pytest.mark.parametrize("page", ["README.md", "docs/guide/python.md"])
def test_the_python_examples_run_and_print_what_they_say(generate, page: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    blocks = re.findall(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL
    )
    names: dict[str, object] = {}
    assert blocks
    for code, said in blocks:  # one after the other, as in a notebook
        exec(compile(code, page, "exec"), names)
        assert generate.settled(capsys.readouterr().out) == said


def test_words_of_the_projects_own_are_in_use_or_gone_as_their_page_says(generate) -> None:
    read = (*generate.PAGES, *generate.LESSONS, ROOT / "docs" / "certificates.md")
    told = " ".join(" ".join(page.read_text("utf-8").split()) for page in read).lower()
    rows = re.findall(
        r"^\| ([a-z ]+) \| (\d*) \|.*\| (kept|gone)",
        (ROOT / "docs/words.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert rows
    for word, times, became in rows:
        assert bool(times) is bool(re.search(rf"\b{word}\b", told)) is (became == "kept"), word


def test_files_that_the_documentation_points_to_are_there() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_both_commands_of_the_readme_set_themselves_up() -> None:
    for name in ("try", "test"):
        command = re.search(rf"<!-- command: {name} -->\n```bash\n(.*?)\n```", README, re.DOTALL)[1]
        assert command.startswith("python3 -m venv .venv && ")
        assert "-c constraints.txt" in command


def test_the_tested_torch_is_pinned_and_the_package_leaves_it_open() -> None:
    assert "\ntorch==2.13.0\n" in (ROOT / "constraints.txt").read_text()
    assert (
        "=="
        not in re.search(r"\ndependencies = \[(.*?)\n\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)[1]
    )


def test_the_oldest_versions_that_are_tried_are_the_oldest_that_are_promised() -> None:
    tools = {"ruff", "mypy", "build"}  # of the gate, which pins them
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    bounds = {each.name: each.specifier for each in map(Requirement, promised) if each.name not in tools}
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()[1:]
    tried = {each.name: each.specifier for each in map(Requirement, lines)}
    assert tried.keys() == bounds.keys()
    for name, pinned in tried.items():
        (lowest,) = [each for each in bounds[name] if each.operator in (">=", "==")]
        (version,) = pinned
        assert Version(version.version) == Version(lowest.version), name


def test_a_release_has_one_number_and_lives_in_one_place() -> None:
    """`docs/release.md` fills the placeholder of the address by one edit of two files."""
    from attnscope import __version__

    cited = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", cited, re.MULTILINE)[1] == __version__
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == __version__
    (place,) = set(re.findall(r"^(?:repository-code|url): \"(.+)\"$", cited, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["urls"]["Homepage"] == place
    rewritten = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    for address in (*project["project"]["urls"].values(), *(each["replacement"] for each in rewritten)):
        assert place in address


def test_exit_codes_are_documented() -> None:
    from attnscope import errors

    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.AttnscopeError)} - {1}
    help_text = (ROOT / "docs" / "cli.md").read_text()
    line = next(line for line in help_text.splitlines() if line.startswith("Exit codes"))
    assert codes <= {int(number) for number in re.findall(r"\b\d+\b", line)}
    programs = (ROOT / "docs" / "programs.md").read_text("utf-8").partition("**Exit code first.**")[2]
    assert codes <= {int(number) for number in re.findall(r"\b(\d+) ", programs.partition("After 2")[0])}


def test_what_programs_are_told_to_ask_and_to_read_is_there(generate) -> None:
    page = (ROOT / "docs" / "programs.md").read_text("utf-8")
    assert len(page.split()) < 800, "it is to be read whole"
    shown = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1])
    found = generate.ask(
        "find", "I was watching the [MASK] when it opened.", "--from", "[MASK]", "--to", "opened"
    )
    assert {key: found[key][:50] for key in shown if key != "next"} == {
        key: shown[key][:50] for key in shown if key != "next"
    }
    assert found["next"].startswith("attnscope ablate ")
    reference = (ROOT / "docs" / "cli.md").read_text("utf-8")
    asked = re.findall(r"^\|.*\| `(\w+) (.*)` \|$", page, re.MULTILINE)
    assert len(asked) == 9
    for command, options in asked:
        described = reference.partition(f"## `attnscope {command}`")[2].partition("\n## ")[0]
        for option in re.findall(r"--[a-z-]+", options):
            assert f"{option} " in described or f"{option}," in described, (command, option)


def test_the_guide_counts_model_types_as_the_sweep_does() -> None:
    table = dict(
        re.findall(r"^\| ([a-z ]+) \| (\d+) \|", (ROOT / "docs/models.md").read_text("utf-8"), re.MULTILINE)
    )
    told = " ".join((ROOT / "docs/guide/any-model.md").read_text("utf-8").split())
    counts = {name: int(count) for name, count in table.items()}
    assert counts["certified"] >= 320
    assert (
        f"of {sum(counts.values())} types, {counts['certified']} are certified in every attention layer, "
        f"{counts['in part']} in some of their attention modules, {counts['partial']} are partial, "
        f"{counts['inconclusive']} inconclusive, {counts['not read']} have attention that cannot be "
        f"recomputed, {counts['failed']} failed, {counts['no attention']} make no such attention, and of "
        f"{counts['not tried']} no tiny model could be built"
    ) in told
