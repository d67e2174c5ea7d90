"""What passes between whoever asks for a corpus and whoever measures it: plain data that can be pickled."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from attnscope.errors import AttnscopeError
from attnscope.session.listener import Listener


@dataclass(frozen=True)
class Text:
    """One text of a corpus: `number` counts all that are read, `place` is where it stands (`file:line`).

    `words` are its words where the file says them, `tags` the part of speech of each.
    """

    number: int
    place: str
    text: str
    words: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True)
class SetAside:
    """What could not be measured, why, and what stood there: never dropped in silence."""

    place: str
    why: str
    text: str


@dataclass(frozen=True)
class Chunk:
    """So many texts that follow one another, measured together; `set_aside` is what stood between them.

    Texts in `deadly`, by their numbers, are not to be read: they have ended their worker twice.
    """

    number: int
    texts: tuple[Text, ...]
    set_aside: tuple[SetAside, ...] = ()
    deadly: frozenset[int] = frozenset()

    def only(self, number: int) -> "Chunk":
        """One of its texts alone, without a number: nothing is proved of it, and it is never kept."""
        return replace(self, number=-1, texts=tuple(text for text in self.texts if text.number == number))


@dataclass(frozen=True)
class Finished:
    """A chunk that is measured: its number, how many texts it had, and the bytes of its file."""

    number: int
    texts: int
    content: bytes


class Measurer(Protocol):
    """A model in memory that measures chunks."""

    def measure(self, chunk: Chunk) -> bytes:
        """The chunk's file; `AttnscopeError` for what is wrong with model or question, never for a text."""
        ...


class Recipe(Protocol):
    """All that a worker must know; it can be pickled."""

    def on(self, device: str) -> "Recipe":
        """The same for a worker that has this device."""
        ...

    def open(self) -> Measurer:
        """The model in memory, once in each worker. Limits torch to one thread, on which bits may depend."""
        ...


class Engine(Protocol):
    """Whoever has chunks measured."""

    def __call__(self, recipe: Recipe, chunks: Iterable[Chunk], listener: Listener) -> Iterator[Finished]: ...


@dataclass(frozen=True)
class Refused:
    """An error that the user can mend: nothing that another worker would do better."""

    error: AttnscopeError


@dataclass(frozen=True)
class Broken:
    """A bug, with its traceback: it would come again, and no text is to blame."""

    traceback: str
