"""Asks questions in this process, one after the other, on the processor or on the emulated accelerator.

`python -m tests.accelerator.asking FOLDER cpu cuda mps [--every]` writes FOLDER/cpu.jsonl and so on, a line
for each answer.
"""

import argparse
import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from . import backend
from .alike import differences
from .questions import EVERY, GATE, STORED, Question, materials

KINDS = ("cpu", *backend.KINDS)


@dataclass(frozen=True)
class Answer:
    """What a question came to: how it ended, its document, and what an emulated device did for it."""

    name: str
    code: int
    document: str
    said: str
    seconds: float
    operations: int | None = None
    moved: int = 0
    largest: int = 0


def invoked(arguments: list[str], folder: Path) -> tuple[int, str, str]:
    """The program in this process: exit code, what it printed and what it said beside it."""
    from typer.testing import CliRunner

    from attnscope.cli.app import app

    with contextlib.chdir(folder):
        result = CliRunner().invoke(
            app, arguments, prog_name="attnscope", env={"COLUMNS": "80", "TERM": "dumb"}
        )
    said = result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        said += f"{type(result.exception).__name__}: {result.exception}"
    return result.exit_code, result.stdout, said


def ask(question: Question, device: str, files: dict[str, str], folder: Path) -> Answer:
    """Its answer as one JSON document."""
    arguments = [*question.asked(files, device), "--json"]
    start = time.perf_counter()
    if not device.startswith(backend.NAME):
        return Answer(question.name, *invoked(arguments, folder), time.perf_counter() - start)
    with backend.watched() as done:
        ended = invoked(arguments, folder)
    told = None if question.elsewhere else sum(done.operations.values())
    return Answer(question.name, *ended, time.perf_counter() - start, told, done.moved(), done.largest())


def faults(ours: Answer, theirs: Answer) -> list[str]:
    """What is wrong with an answer of an accelerator, beside the processor's."""
    if ours.code != theirs.code or ours.code:
        last = ours.said.strip().splitlines() or ["nothing"]
        return [f"exit code {ours.code}, not {theirs.code}: {last[-1][-300:]}"]
    if ours.operations == 0:
        return ["nothing was computed on the accelerator"]
    return differences(ours.document, theirs.document)


def ask_all(questions: Iterable[Question], kind: str, folder: Path) -> Iterator[Answer]:
    """Every question to the processor (`cpu`) or to the emulated accelerator, in this process."""
    own = folder / kind
    own.mkdir(parents=True)
    files = materials(own)
    code, _, said = invoked([*STORED, "--device", "cpu", "-o", files["run"]], own)
    assert code == 0, said
    if kind == "cpu":
        yield from (ask(each, kind, files, own) for each in questions)
        return
    os.environ |= backend.environment(kind)  # for the workers of a corpus
    with backend.present(kind):
        yield from (ask(each, backend.NAME, files, own) for each in questions)
    del os.environ[backend.VARIABLE]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.accelerator.asking", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kinds", nargs="+", choices=KINDS)
    parser.add_argument("--every", action="store_true", help="not only those of the gate")
    parser.add_argument("--only", default="", help="those whose name has this in it")
    options = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "ATTNSCOPE_DIGESTS": "off"}
    if options.kinds != ["cpu"]:
        backend.register()  # before the first slope
    import torch

    torch.set_num_threads(1)
    asked = [each for each in (EVERY if options.every else GATE) if options.only in each.name]
    options.folder.mkdir(parents=True, exist_ok=True)
    for kind in options.kinds:
        answers = ask_all(asked, kind, options.folder)
        with (options.folder / f"{kind}.jsonl").open("w", encoding="utf-8") as file:
            for answer in answers:
                file.write(json.dumps(asdict(answer)) + "\n")
                file.flush()


def answered(folder: Path, kind: str) -> dict[str, Answer]:
    """What `main` wrote, by the names of the questions."""
    lines = (folder / f"{kind}.jsonl").read_text("utf-8").splitlines()
    return {answer.name: answer for answer in (Answer(**json.loads(line)) for line in lines)}


if __name__ == "__main__":
    main()
