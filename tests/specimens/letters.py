"""A recipe without a model: counts letters, and says who measured which chunk. Some texts are trouble."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attnscope.errors import InputError
from attnscope.session.corpus.engine.interface import Chunk, Text

DEADLY, REFUSED, BROKEN = "ends its process", "is refused", "finds a bug"


@dataclass(frozen=True)
class Letters:
    """The recipe; `log` is a folder where each process writes what it begins, `seconds` is a chunk's time."""

    log: Path
    seconds: float = 0.0

    def on(self, device: str) -> "Letters":
        """Letters are counted anywhere."""
        return self

    def open(self) -> "Counting":
        return Counting(self)


@dataclass(frozen=True)
class Counting:
    """Its measurer."""

    recipe: Letters

    def measure(self, chunk: Chunk) -> bytes:
        with (self.recipe.log / str(os.getpid())).open("a") as file:
            file.write(f"{chunk.number} {os.getppid()}\n")
        time.sleep(self.recipe.seconds)
        return counted(chunk)


def counted(chunk: Chunk) -> bytes:
    """The chunk's file, which ends in zeros, as some do."""
    found = []
    for text in chunk.texts:
        if text.number in chunk.deadly:
            found.append(f"{text.place} deadly")
            continue
        if text.text == DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        if text.text == REFUSED:
            raise InputError(f"{text.place}: refused")
        if text.text == BROKEN:
            raise ZeroDivisionError(text.place)
        found.append(f"{text.place} {len(text.text)}")
    return f"{chunk.number}: {', '.join(found)}".encode() + b"\0\0"


@dataclass(frozen=True)
class Begun:
    """What a log says: this process began this chunk for that one."""

    chunk: int
    process: int
    parent: int


def begun(log: Path) -> list[Begun]:
    """All of it, process by process, each in its order."""
    found = []
    for file in sorted(log.iterdir()):
        for line in file.read_text().splitlines():
            number, _, parent = line.partition(" ")
            found.append(Begun(int(number), int(file.name), int(parent)))
    return found


def chunks(*words: tuple[str, ...]) -> Iterator[Chunk]:
    """A chunk of each."""
    at = 0
    for number, texts in enumerate(words):
        yield Chunk(number, tuple(Text(at + i, f"f:{at + i + 1}", each) for i, each in enumerate(texts)))
        at += len(texts)
