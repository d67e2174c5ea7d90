"""What a command that takes long will take in all, from the first of the things that it does: about."""

import math
from dataclasses import dataclass

from attnscope.process.machine import duration, gigabytes


@dataclass(frozen=True)
class Forecast:
    """`seconds` from the command's beginning to its end, side by side in so many `processes`.

    `memory` is the most that one of them has had so far, in bytes, None where the system does not tell;
    `kept` are the bytes of what will be on the disk, said from .1 MB on. `advice` is for whom it is too much.
    """

    seconds: float
    processes: int = 1
    memory: int | None = None
    kept: float = 0
    advice: str = ""

    def __str__(self) -> str:
        """`about 42 min in all, 0.6 GB of memory in each of 4 processes, 9.0 MB on the disk`."""
        parts = [f"about {duration(self.seconds)} in all"]
        if self.memory is not None:
            each = f" in each of {self.processes} processes" if self.processes > 1 else ""
            parts.append(f"{gigabytes(self.memory)} of memory{each}")
        if self.kept >= 1e5:
            parts.append(f"{gigabytes(round(self.kept))} on the disk")
        return "; ".join(filter(None, (", ".join(parts), self.advice)))


def seconds_of(one: float, count: float, at_once: int = 1) -> float:
    """For a `count` of things that take so many seconds each, so many of them `at_once`."""
    return one * math.ceil(count / at_once)
