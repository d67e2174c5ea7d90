"""One demo model for all tests of the explorer, and a screen without a terminal."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from attnscope.explore.app import Explorer, Notices
from attnscope.explore.questions import Question
from attnscope.explore.source import Source
from attnscope.explore.surface import Surface
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted

TEXT = "I was watching the door when [MASK] opened."
Keys = Callable[[Explorer, "Screen"], Awaitable[None]]


class Screen:
    """A pilot that waits until all that is shown is known."""

    def __init__(self, app: Explorer, pilot: object) -> None:
        self.app, self.pilot = app, pilot

    async def settled(self) -> None:
        for _ in range(3000):
            if self.app.settled:
                break
            await asyncio.sleep(0.01)
        assert self.app.settled, f"not known after 30 s: {self.app.desk.open}"
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settled()

    async def write(self, key: str, text: str) -> None:
        """The key that opens a line, the text in it, Enter."""
        await self.pilot.press(key)
        self.app.screen.query_one("#line").value = text
        await self.press("enter")

    def pane(self, name: str) -> str:
        return self.app.pane(name).text


class Once(Source):
    """A source that is asked each question once, by whichever test comes first."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        self._told: dict[Question, object] = {}

    def answer(self, question: Question) -> object:
        if question not in self._told:
            self._told[question] = super().answer(question)
        return self._told[question]


@pytest.fixture(scope="session")
def demo() -> Source:
    """The bundled encoder, opened once, at its first head."""
    source = Once(ModelRequest("demo"), Inputs(TEXT), Wanted(0, 0), Notices())
    source.scene()
    return source


@pytest.fixture
def explored(demo: Source) -> Callable[..., Explorer]:
    """Runs `keys` on a screen of some size over the demo, or another source; the explorer as it then is."""

    def run(
        keys: Keys,
        *,
        source: object = None,
        size: tuple[int, int] = (80, 24),
        depth: str | None = "truecolor",
        no_color: bool = False,
    ) -> Explorer:
        notices = Notices()
        app = Explorer(source or demo, notices, Surface(depth, "dark", no_color))

        async def go() -> None:
            async with app.run_test(size=size) as pilot:
                screen = Screen(app, pilot)
                await screen.settled()
                await keys(app, screen)

        asyncio.run(go())
        return app

    return run
