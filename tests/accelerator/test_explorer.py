"""The explorer over a model on an accelerator shows what it shows over the same model on the processor."""

import asyncio
from typing import Any

import pytest

from attnscope.explore.app import Explorer, Notices
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.source import Source
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted

# another layer, its heads, a search for the link that the cursor is on, and what that finds
KEYS = ("right_square_bracket", "full_stop", "tab", "left", "f", "enter")
PANES = ("head", "main")


def shown(device: str) -> list[str]:
    """What stands in two panes after each key."""
    request, notices = ModelRequest("demo", device), Notices()
    inputs = Inputs("I was watching the door when [MASK] opened.")
    app = Explorer(Source(request, inputs, Wanted(), notices), notices, Surface("truecolor", "dark", False))
    told = []

    async def walk() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            for key in (None, *KEYS):
                if key is not None:
                    await pilot.press(key)
                for _ in range(3000):
                    if app.settled:
                        break
                    await asyncio.sleep(0.01)
                await pilot.pause()
                told.extend(" ".join(app.pane(name).text.split()) for name in PANES)  # lines break elsewhere

    asyncio.run(walk())
    return told


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_the_explorer_shows_the_same_on_an_accelerator(
    emulated: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    right = shown("cpu")
    assert len(set(right)) > len(KEYS)
    assert any("certified" in each for each in right)
    with emulated.present(kind), emulated.watched() as done:
        there = shown("emulated")
    assert any(" · emulated:0" in each for each in there)
    assert [each.replace(" · emulated:0", "") for each in there] == right
    assert done.operations["aten::addmm"]
