"""Asks questions in this process, one after the other, on the processor or on the emulated accelerator.

`python -m tests.accelerator.asking cpu|cuda|mps FOLDER [--every]` writes an answer for each into FOLDER.
"""

import argparse
import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from . import backend
from .questions import EVERY, GATE, STORED, Question, materials


@dataclass(frozen=True)
class Answer:
    """What a question came to: how it ended, its document, and what the device did for it."""

    name: str
    code: int
    document: str
    said: str
    seconds: float
    operations: int = 0
    moved: int = 0
    largest: int = 0


def invoked(arguments: list[str], folder: Path) -> tuple[int, str, str]:
    """The program in this process: exit code, what it printed and what it said beside it."""
    from typer.testing import CliRunner

    from attnscope.cli.app import app

    with contextlib.chdir(folder):
        result = CliRunner().invoke(app, arguments, prog_name="attnscope", env={"COLUMNS": "80", "TERM": "dumb"})
    said = result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        said += f"{type(result.exception).__name__}: {result.exception}"
    return result.exit_code, result.stdout, said


def ask(question: Question, device: str, files: dict[str, str], folder: Path) -> Answer:
    """Its answer as one JSON document."""
    arguments = [*question.asked(files, device), "--json"]
    start = time.perf_counter()
    if device == "cpu":
        return Answer(question.name, *invoked(arguments, folder), time.perf_counter() - start)
    with backend.watched() as done:
        ended = invoked(arguments, folder)
    return Answer(
        question.name,
        *ended,
        time.perf_counter() - start,
        sum((done.operations or {}).values()),
        done.moved(),
        done.largest(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.accelerator.asking", description=__doc__)
    parser.add_argument("kind", choices=("cpu", *backend.KINDS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", action="store_true", help="and not only those of the gate")
    parser.add_argument("--only", help="those whose name has this in it")
    options = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "ATTNSCOPE_CACHE": "off"}
    if options.kind != "cpu":
        os.environ |= backend.environment(options.kind)  # for the workers of a corpus
        backend.load(options.kind)
    import torch

    torch.set_num_threads(1)
    options.folder.mkdir(parents=True, exist_ok=True)
    files = materials(options.folder)
    code, _, said = invoked([*STORED, "--device", "cpu", "-o", files["run"]], options.folder)
    assert code == 0, said
    device = "cpu" if options.kind == "cpu" else backend.NAME
    answers = options.folder / "answers.jsonl"
    with answers.open("w", encoding="utf-8") as file:
        for question in EVERY if options.every else GATE:
            if (options.only or "") in question.name:
                answer = ask(question, device, files, options.folder)
                file.write(json.dumps(asdict(answer)) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
