"""Documentation that cannot lie: what is generated from the program is what the program says now."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def generate():
    specification = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


UNSETTLED = (
    (r"\d(\.\d+)?e-?\d+", "<error>"),
    (r"(after|over) \d+ iterations|trustworthiness 0\.\d+", "<map>"),  # t-SNE makes much of small errors
    (r"worst head: L\d+ H\d+|<error> H\d+", "<worst head>"),
)


def settled(text: str) -> str:
    """Rounding errors differ between processors, and what is made of them; everything else must not."""
    for pattern, name in UNSETTLED:
        text = re.sub(pattern, name, text)
    return re.sub(r"\s+", " ", text)


def test_the_reference_is_what_the_commands_say(generate) -> None:
    assert (ROOT / "docs" / "cli.md").read_text("utf-8") == generate.cli_reference()


def test_the_measures_are_those_of_the_registry(generate) -> None:
    from attnscope.measures import MEASURES

    page = (ROOT / "docs" / "measures.md").read_text("utf-8")
    assert page == generate.measures_table()
    assert all(f"| {name} |" in page for name in MEASURES)


def test_the_readme_shows_what_the_program_prints(generate) -> None:
    assert len(generate.CONSOLE_BLOCK.findall(README)) >= 3
    assert settled(generate.with_output(README)) == settled(README)


def test_a_drifted_readme_would_be_noticed(generate) -> None:
    block = "```console\n$ attnscope --version\nattnscope 99\n```\n"
    assert settled(generate.with_output(block)) != settled(block)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_python_examples_run_and_print_what_they_say(page: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    blocks = re.findall(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL
    )
    names: dict[str, object] = {}
    assert blocks
    for code, said in blocks:  # one after the other, as in a notebook
        exec(compile(code, page, "exec"), names)
        assert settled(capsys.readouterr().out) == settled(said)


def test_files_that_the_documentation_points_to_are_there() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
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


def test_exit_codes_are_documented() -> None:
    from attnscope import errors

    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.AttnscopeError)} - {1}
    help_text = (ROOT / "docs" / "cli.md").read_text()
    line = next(line for line in help_text.splitlines() if line.startswith("Exit codes"))
    assert codes <= {int(number) for number in re.findall(r"\b\d+\b", line)}


def test_the_readme_counts_model_types_as_the_sweep_does() -> None:
    table = dict(
        re.findall(r"^\| ([a-z ]+) \| (\d+) \|", (ROOT / "docs/models.md").read_text("utf-8"), re.MULTILINE)
    )
    told = " ".join((ROOT / "README.md").read_text("utf-8").split())
    counts = {name: int(count) for name, count in table.items()}
    assert counts["certified"] >= 320
    assert (
        f"of {sum(counts.values())} types, {counts['certified']} are certified in every attention layer, "
        f"{counts['in part']} in some of their attention modules, {counts['partial']} are partial, "
        f"{counts['inconclusive']} inconclusive, {counts['not read']} have attention that cannot be "
        f"recomputed, {counts['failed']} failed, {counts['no attention']} make no such attention, and of "
        f"{counts['not tried']} no tiny model could be built"
    ) in told
