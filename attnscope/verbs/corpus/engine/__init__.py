"""Interface of an engine: takes a `Recipe` and numbered `Split`s, yields one `Finished` for each split.

All that an engine must know:

    an engine is called with a recipe (plain data, can be pickled), an iterable of splits (lazy: take them as
    you have room) and a listener; it yields a `Finished` for every split, once, in whatever order;
    each of its workers calls `recipe.open()` once and `measurer.measure(split)` for every split that it gets:
    that reads the texts where they lie and writes the part into the run's folder, under a name that holds the
    digest of its bytes. The same split gives the same bytes in every process of one machine and its versions.

A split that was lost with its worker is measured again, by whomever. Resuming (splits that are done never
reach an engine) and merging in the order of the numbers is done by whoever calls the engine, so totals do not
depend on it. `local` runs processes of this machine, `alone` measures in this very process.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from attnscope.errors import AttnscopeError
from attnscope.process.machine import duration, gigabytes
from attnscope.session.listener import Listener

EVERY, SAMPLED = 16, 2  # splits: of so many the first ones are sampled, a text of each is certified


@dataclass(frozen=True)
class Text:
    """One text of a split: `number` counts all that are read of the split, from 0.

    It stands in the source number `source` of the corpus; `line` counts lines or rows from where the split
    begins (0: the source is one text). `words` are its words where the file says them, `tags` the part of
    speech of each.
    """

    number: int
    source: int
    line: int
    text: str
    words: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True)
class SetAside:
    """A text or line that could not be measured: its place, the reason, and its content."""

    source: int
    line: int
    why: str
    text: str


@dataclass(frozen=True)
class Span:
    """A range of a source: what begins in its bytes (or rows) from `start` up to `end`, None to its end.

    `index` is the number of the `Source` in the corpus. `held` is what stands there, where a source cannot be
    read from its middle: whoever plans has read it, and hands it on.
    """

    index: int
    source: Any
    start: int = 0
    end: int | None = None
    held: Any = None


@dataclass(frozen=True)
class Split:
    """Consecutive spans, measured together to one part of the run; `size` is in bytes.

    Texts in `deadly`, by their numbers, are not to be read: they have ended their worker twice. Where `only`
    is not None texts of these numbers alone are read, and nothing is kept.
    """

    number: int
    spans: tuple[Span, ...]
    size: int = 0
    deadly: frozenset[int] = frozenset()
    only: tuple[int, int] | None = None

    def between(self, first: int, end: int) -> "Split":
        """A trial split: only texts `first` up to `end` are measured; what is finished counts all of them."""
        return replace(self, only=(first, end))


@dataclass(frozen=True)
class Finished:
    """Report on a measured split: its number, texts, tokens and bytes, and the name of its part.

    It took so many `seconds`, `certifying` of them for what is not done in every split; its process has had
    so much `memory` at the most, and so many measure `at_once`.
    """

    number: int
    texts: int = 0
    tokens: int = 0
    size: int = 0
    name: str = ""
    seconds: float = 0.0
    certifying: float = 0.0
    memory: int | None = None
    at_once: int = 1


@dataclass(frozen=True)
class Forecast:
    """Expected `seconds` of the whole command, in so many `processes` side by side.

    `memory` is the most that one of them has had so far, in bytes, None where the system does not tell;
    `kept` are the bytes of what will be on the disk, said from .1 MB on. `advice` is for whom it is too much.
    """

    seconds: float
    processes: int = 1
    memory: int | None = None
    kept: float = 0
    advice: str = ""

    def __str__(self) -> str:
        """Such as `about 42 min in all, 0.6 GB of memory in each of 4 processes, 9.0 MB on the disk`."""
        parts = [f"about {duration(self.seconds)} in all"]
        if self.memory is not None:
            each = f" in each of {self.processes} processes" if self.processes > 1 else ""
            parts.append(f"{gigabytes(self.memory)} of memory{each}")
        if self.kept >= 1e5:
            parts.append(f"{gigabytes(round(self.kept))} on the disk")
        return "; ".join(filter(None, (", ".join(parts), self.advice)))


def seconds_of(one: float, count: float, at_once: int = 1) -> float:
    """Seconds for `count` tasks of `one` second count each, `at_once` of them side by side."""
    return one * math.ceil(count / at_once)


class Measurer(Protocol):
    """Protocol: a model in memory that measures splits."""

    def measure(self, split: Split) -> Finished:
        """Reads and measures a split, and keeps its part.

        `AttnscopeError` for what is wrong with model, question or the run's folder, never for a text.
        """
        ...


class Recipe(Protocol):
    """Protocol: plain, picklable instructions from which a worker opens its measurer."""

    @property
    def into(self) -> str:
        """The address of the run's folder, where workers write."""
        ...

    def on(self, device: str) -> "Recipe":
        """The recipe for a worker on this device."""
        ...

    def open(self) -> Measurer:
        """Opens the model, once in each worker. Limits torch to one thread, on which bits may depend."""
        ...


# Whoever has splits measured
Engine = Callable[[Recipe, Iterable[Split], Listener], Iterator[Finished]]


@dataclass(frozen=True)
class Progress:
    """Progress of a run: texts and tokens measured by this command, bytes done, and bytes in all.

    Once, after its first part, there is a `forecast` of all that it will take.
    """

    texts: int
    tokens: int
    through: int
    whole: int
    forecast: Forecast | None = None


Done = Callable[[Progress], None]


@dataclass(frozen=True)
class Refused:
    """Worker's answer: an error for the user to mend, which no other worker would avoid."""

    error: AttnscopeError


@dataclass(frozen=True)
class Broken:
    """Worker's answer: an unexpected exception with its traceback; not to be tried again."""

    traceback: str
