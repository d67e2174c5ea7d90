"""Where the time of a run goes: each second belongs to one part, so that they add up to the whole.

A part that goes on inside another one interrupts it. What belongs to none is `the rest`. Threads beside the
one that was there first count to the part that this one is in.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

REST = "the rest"
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Stopwatch:
    """Runs from the moment that it is made."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now, self._thread = now, threading.get_ident()
        self._open = [REST]
        self.restart()

    def restart(self) -> None:
        """Forget what has been, but for the parts that are still going on."""
        self._started = self._since = self._now()
        self._parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Whatever goes on in here belongs to the part `name`, but for what belongs to a part inside it."""
        if threading.get_ident() != self._thread:
            yield
            return
        self._change()
        self._open.append(name)
        try:
            yield
        finally:
            self._change()
            self._open.pop()

    def _change(self) -> None:
        now, name = self._now(), self._open[-1]
        self._parts[name] = self._parts.get(name, 0.0) + now - self._since
        self._since = now

    def parts(self) -> dict[str, float]:
        """Seconds by part, in the order in which they first ended, what belongs to none at the end."""
        self._change()
        rest = self._parts.pop(REST, 0.0)
        self._parts[REST] = rest
        return dict(self._parts)

    def total(self) -> float:
        """Seconds from the start to the last look at `parts`."""
        return self._since - self._started


running = Stopwatch()


class timed:
    """A function that is a part of the run."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __call__(self, function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        @wraps(function)
        def timing(*given: Given.args, **named: Given.kwargs) -> Answer:
            with running.part(self._part):
                return function(*given, **named)

        return timing


def summary() -> list[str]:
    """A line for every part of the run and one for all of it."""
    seconds = running.parts()
    lines = [(name, seconds[name]) for name in seconds] + [("in all", running.total())]
    wide = max(len(name) for name, _ in lines)
    return [f"{name:<{wide}} {each:8.3f} s" for name, each in lines]
