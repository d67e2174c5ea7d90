"""A recipe without a model: counts letters, and says who measured which split. Some texts are trouble."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attnscope.errors import InputError
from attnscope.verbs.corpus.engine import Finished, Span, Split
from attnscope.verbs.corpus.source import Form, Source
from attnscope.verbs.corpus.store import Place
from attnscope.verbs.corpus.texts import Reading

DEADLY, REFUSED, BROKEN = "ends its process", "is refused", "finds a bug"


@dataclass(frozen=True)
class Letters:
    """The recipe; `log` is a folder where each process writes what it begins, `seconds` is a split's time."""

    log: Path
    seconds: float = 0.0
    into: str = ""

    def on(self, device: str) -> "Letters":
        """Letters are counted anywhere."""
        return self

    def open(self) -> "Counting":
        return Counting(self)


@dataclass(frozen=True)
class Counting:
    """Its measurer."""

    recipe: Letters

    def measure(self, split: Split) -> Finished:
        with (self.recipe.log / str(os.getpid())).open("a") as file:
            file.write(f"{split.number} {os.getppid()} {os.environ.get('CUDA_VISIBLE_DEVICES')}\n")
        time.sleep(self.recipe.seconds)
        return counted(split)


def counted(split: Split) -> Finished:
    """What is said of a split."""
    found = []
    first, end = split.only or (0, 1000)
    there = list(Reading(split))
    for text in there:
        place = f"f:{split.number}.{text.line}"
        if not first <= text.number < end:
            continue
        if text.number in split.deadly:
            found.append(f"{place} deadly")
            continue
        if text.text == DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        if text.text == REFUSED:
            raise InputError(f"{place}: refused")
        if text.text == BROKEN:
            raise ZeroDivisionError(place)
        found.append(f"{place} {len(text.text)}")
    return Finished(split.number, len(there), name=f"{split.number}: {', '.join(found)}")


@dataclass(frozen=True)
class Begun:
    """What a log says: this process began this split for that one, and sees these GPUs."""

    split: int
    process: int
    parent: int
    gpus: str


def begun(log: Path) -> list[Begun]:
    """All of it, process by process, each in its order."""
    found = []
    for file in sorted(log.iterdir()):
        for line in file.read_text().splitlines():
            number, parent, gpus = line.split(" ", 2)
            found.append(Begun(int(number), int(file.name), int(parent), gpus))
    return found


def splits(*words: tuple[str, ...]) -> Iterator[Split]:
    """A split of each, a line a text."""
    source = Source(Place("f"), "f", Form.LINES)
    for number, texts in enumerate(words):
        yield Split(number, (Span(0, source, held="\n".join(texts).encode()),))
