"""What other threads tell the screen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from textual.message import Message

from attnscope.explore.asking import Failed
from attnscope.explore.state import Scene


class Read(Message):
    """A text was read, or could not be."""

    def __init__(self, scene: Scene | Failed) -> None:
        super().__init__()
        self.scene = scene


class Answered(Message):
    """One more answer is known."""


class Told(Message):
    """A line for the bottom of the screen; `bad` where something went wrong."""

    def __init__(self, text: str, bad: bool = False) -> None:
        super().__init__()
        self.text, self.bad = text, bad


class Notices:
    """What the session tells on the way comes to the bottom line of the screen."""

    def __init__(self) -> None:
        self.post: Callable[[Message], object] | None = None
        self.doing: list[str] = []

    def notice(self, text: str) -> None:
        if self.post is not None:
            self.post(Told(text))

    def detail(self, text: str) -> None:
        pass

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        self.doing.append(what)
        try:
            yield
        finally:
            self.doing.remove(what)
