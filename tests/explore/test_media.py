"""Pictures and sounds: the head of a query over what was seen or heard."""

from collections.abc import Callable
from pathlib import Path

import media_models
import numpy as np
import pytest

from attnscope.explore.app import Explorer, Notices
from attnscope.explore.drawing import picture
from attnscope.explore.source import Source
from attnscope.results import Picture
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted

Explored = Callable[..., Explorer]


@pytest.mark.parametrize("name", ["vit", "whisper"])
def test_a_query_lies_over_the_picture_or_the_sound(explored: Explored, tmp_path: Path, name: str) -> None:
    folder = media_models.save(name, tmp_path)
    seen = {"image": media_models.picture_file(tmp_path)} if name == "vit" else {}
    heard = {"audio": media_models.sound_file(tmp_path)} if name == "whisper" else {}
    given = Inputs(**seen, **heard, target="is in" if heard else None)  # else it writes to its limit
    source = Source(ModelRequest(str(folder)), given, Wanted(0, 0), Notices())

    async def keys(app: Explorer, screen) -> None:
        first = screen.pane("main")
        assert "certified" in screen.pane("head")
        assert "weight" in first
        if name == "vit":
            assert "▀" in first, "the picture itself"
            assert "patch" in first
        await screen.press("full_stop", "tab", "tab", "down", "down")
        assert app.state.place == (0, 1)
        assert app.state.query == 2 + app.state.scene.first
        assert screen.pane("main") != first

    explored(keys, source=source, size=(140, 40))


@pytest.mark.parametrize("name", ["captioner", "whisper"])
def test_the_decoders_own_words_are_no_picture_and_no_sound(name: str, tmp_path: Path) -> None:
    folder = media_models.save(name, tmp_path)
    sees = name == "captioner"
    given = (
        {"image": media_models.picture_file(tmp_path)}
        if sees
        else {"audio": media_models.sound_file(tmp_path)}
    )
    source = Source(ModelRequest(str(folder)), Inputs(**given, target="what is in"), Wanted(), Notices())
    first = source.scene()
    mediums = {tower.kind: source.scene(tower=tower.pattern).medium for tower in first.towers}
    assert mediums["decoder"] == ""
    assert mediums["cross"] == first.medium != ""
    assert mediums["encoder"] == first.medium
    words = source.scene(tower=next(tower.pattern for tower in first.towers if tower.kind == "decoder"))
    assert list(words.queries.labels) == list(words.keys.labels)
    assert list(words.queries.labels[-2:]) == ["is", "in"]


def test_a_picture_is_bright_where_the_query_looks_and_has_the_colours_of_its_pixels() -> None:
    """Two patches side by side, red and green; all the weight lies on the green one."""
    pixels = np.zeros((2, 4, 3))
    pixels[:, :2, 0], pixels[:, 2:, 1] = 1.0, 1.0
    seen = Picture("two.png", "", pixels, (2, 4))
    (line,) = picture.picture(seen, np.array([[0.0, 1.0]]), 4, 1).lines
    drawn = [(text, style.color.get_truecolor()) for text, style in line.parts]
    assert [(text, tuple(colour)) for text, colour in drawn] == [("▀▀", (64, 0, 0)), ("▀▀", (0, 255, 0))]
