"""What other threads tell the screen, and whom the screen asks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from textual.message import Message

from attnscope.explore.asking import Answering, Failed
from attnscope.explore.state import Scene
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted


class Model(Answering, Protocol):
    """Who opens the model and answers: `Source`, or in a test somebody else."""

    request: ModelRequest
    inputs: Inputs
    wanted: Wanted

    def scene(self, text: str | None = None, tower: str | None = None, layer: int | None = None) -> Scene:
        """What there is to look at, in the text that was given first where none is named."""
        ...


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
