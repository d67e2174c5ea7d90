"""Every command and route under every bundled model and a real one, on both emulated accelerators: a table.

    python -m tests.accelerator.matrix FOLDER [--write docs/machines.md]

`FOLDER` keeps the answers (`asking`); where it has them already they are not asked again. Ends with 1 where
an answer is not the processor's. `--write` puts the table between the marks of the page.
"""

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

from . import backend
from .asking import KINDS, answered, faults
from .questions import EVERY, Question

START, END = "<!-- devices: python -m tests.accelerator.matrix -->", "<!-- devices: end -->"
Wrong = dict[tuple[str, str], list[str]]


def wrong_answers(folder: Path) -> Wrong:
    """By accelerator and question what is not as the processor has it."""
    right = answered(folder, "cpu")
    every = {
        (kind, name): answer for kind in backend.KINDS for name, answer in answered(folder, kind).items()
    }
    found = {place: faults(answer, right[place[1]]) for place, answer in every.items()}
    lost = [each.name for each in EVERY if each.name not in right]
    assert not lost, f"not asked: {', '.join(lost)}"
    return {place: told for place, told in found.items() if told}


def table(wrong: Wrong) -> str:
    """The page's part: what was asked when, a table by models, the rest in a list, and whatever failed."""
    placed = [each for each in EVERY if each.row]
    columns = list(dict.fromkeys(each.column for each in placed))
    rows = list(dict.fromkeys(each.row for each in placed))
    cells = {(each.row, each.column): _cell(each, wrong) for each in placed}
    lines = [
        f"Asked on {datetime.date.today():%Y-%m-%d} with {_versions()}: {len(EVERY)} questions, each on the",
        "processor, as `cuda` and as `mps`. "
        f"**{len(wrong)} of {2 * len(EVERY)} answers are not the processor's.**",
        "",
        f"| | {' | '.join(columns)} |",
        f"|---{'|:-:' * len(columns)}|",
        *(f"| {row} | {' | '.join(cells.get((row, column), '') for column in columns)} |" for row in rows),
        "",
        "And, with the bundled encoder where nothing else is said: "
        + ", ".join(f"{each.name} {_cell(each, wrong)}" for each in EVERY if not each.row)
        + ".",
    ]
    lines += [f"- `{kind}`, {name}: {told[0]}" for (kind, name), told in wrong.items()]
    return "\n".join(lines)


def _cell(question: Question, wrong: Wrong) -> str:
    failed = [kind for kind in backend.KINDS if (kind, question.name) in wrong]
    return f"✗ {', '.join(failed)}" if failed else "✓"


def _versions() -> str:
    import torch
    import transformers

    return f"torch {torch.__version__.partition('+')[0]} and transformers {transformers.__version__}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.accelerator.matrix", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, help="a page with the two marks")
    options = parser.parse_args()
    missing = [kind for kind in KINDS if not (options.folder / f"{kind}.jsonl").exists()]
    if missing:
        asking = [sys.executable, "-m", "tests.accelerator.asking", str(options.folder), *missing, "--every"]
        subprocess.run(asking, check=True)
    wrong = wrong_answers(options.folder)
    for (kind, name), told in wrong.items():
        print(f"{kind} · {name}", *told[:5], sep="\n  ")
    made = table(wrong)
    if options.write is not None:
        page = options.write.read_text("utf-8")
        marked = re.compile(f"{re.escape(START)}.*{re.escape(END)}", re.DOTALL)
        assert marked.search(page), f"{options.write} has no {START}"
        options.write.write_text(marked.sub(lambda _: f"{START}\n{made}\n{END}", page), "utf-8")
    print(made)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
