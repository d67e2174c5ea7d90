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
PAGES = ["README.md", *(page.name for page in sorted((ROOT / "docs" / "guide").glob("*.md")))]


@pytest.fixture(scope="module")
def generate():
    specification = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


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
        assert len(content) < (80_000 if name == "explanation.json" else 50_000), "it holds five others"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_the_program_prints_to_the_letter(generate, name: str) -> None:
    page = next(page for page in generate.PAGES if page.name == name)
    told = page.read_text("utf-8")
    assert generate.with_output(told) == told


def test_every_page_of_the_guide_is_asked_and_most_show_output(generate) -> None:
    assert sorted(page.name for page in generate.PAGES) == sorted(PAGES)
    shown = [page for page in generate.PAGES if generate.CONSOLE_BLOCK.search(page.read_text("utf-8"))]
    assert len(shown) >= 6


def test_a_drifted_page_would_be_noticed(generate) -> None:
    block = "```console\n$ attnscope --version\nattnscope 99\n```\n"
    assert generate.with_output(block) != block


def test_digits_that_differ_between_machines_are_left_out_and_no_others(generate) -> None:
    told = "trustworthiness .89 over 5 neighbours · settled after 1,100 iterations · off 4.3e-8 · .83"
    assert generate.settled(told) == (
        "trustworthiness … over 5 neighbours · settled after … iterations · off … · .83"
    )


def test_the_readme_is_read_in_three_minutes(generate) -> None:
    words = len(re.sub(r"```.*?```", "", README, flags=re.DOTALL).split())
    assert words < 3 * 240


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
