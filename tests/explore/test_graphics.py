"""Pictures in pixels: what a terminal is sent is taken apart again, as it would do itself."""

import base64
import re
import zlib

import numpy as np
import pytest
from rich.cells import cell_len

from attnscope.explore.drawing import graphics, picture
from attnscope.explore.drawing.surface import Surface
from attnscope.results import Picture


def taken_apart(escapes: str) -> tuple[dict[str, str], bytes]:
    """The keys of the first piece, and the payload of all."""
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", escapes)
    assert "".join(f"\x1b_G{keys};{payload}\x1b\\" for keys, payload in pieces) == escapes
    told = [dict(each.split("=") for each in keys.split(",")) for keys, _ in pieces]
    assert [each["m"] for each in told] == ["1"] * (len(told) - 1) + ["0"]
    assert all(len(payload) <= 4096 for _, payload in pieces)
    assert all(each["q"] == "2" for each in told), "an answer would be read as keys"
    return told[0], zlib.decompress(base64.b64decode("".join(payload for _, payload in pieces)))


def test_the_terminal_gets_every_pixel_and_how_many_cells_they_fill() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (70, 90, 3), dtype=np.uint8)
    keys, payload = taken_apart(graphics.sent(pixels, 20, 8))
    assert (keys["s"], keys["v"], keys["c"], keys["r"]) == ("90", "70", "20", "8")
    assert (keys["a"], keys["U"], keys["f"], keys["o"]) == ("T", "1", "24", "z")
    np.testing.assert_array_equal(np.frombuffer(payload, np.uint8).reshape(70, 90, 3), pixels)


def test_every_cell_says_its_row_and_column_by_the_marks_of_the_protocol() -> None:
    """The first marks of the protocol's own list, by hand: U+305, 30D, 30E, 310, 312."""
    marks = "\u0305\u030d\u030e\u0310\u0312"
    lines = Surface("truecolor", "dark").lines(graphics.held(5, 3), 40)
    for row, line in enumerate(lines):
        (segment,) = line
        assert segment.text == "".join(f"\U0010eeee{marks[row]}{marks[column]}" for column in range(5))
        assert cell_len(segment.text) == 5
        assert segment.style.color.number == int(re.search(r"i=(\d+)", graphics.forgotten())[1])
    assert graphics.most() == len(set(graphics._marks())) == 129


def test_a_small_picture_is_enlarged_and_bright_where_the_query_looks() -> None:
    pixels = np.zeros((2, 4, 3))
    pixels[:, :2, 0], pixels[:, 2:, 1] = 1.0, 1.0
    seen = Picture("two.png", "", pixels, (2, 4))
    keys, payload = taken_apart(picture.sent(seen, np.array([[0.0, 1.0]]), 8, 2))
    shown = np.frombuffer(payload, np.uint8).reshape(int(keys["v"]), int(keys["s"]), 3)
    assert shown.shape == (4, 8, 3)
    assert {tuple(each) for each in shown[:, :4].reshape(-1, 3).tolist()} == {(64, 0, 0)}
    assert {tuple(each) for each in shown[:, 4:].reshape(-1, 3).tolist()} == {(0, 255, 0)}


@pytest.mark.parametrize(
    ("environment", "may"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, True),
        ({"TERM": "xterm-ghostty"}, True),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x"}, False),
        ({"TERM": "xterm-256color"}, False),
    ],
)
def test_only_terminals_that_may_know_it_are_asked(environment: dict[str, str], may: bool) -> None:
    assert graphics.likely(environment) is may


def test_without_colours_there_are_no_pixels() -> None:
    assert Surface("truecolor", "dark", pixels=True).pixels
    assert not Surface("truecolor", "dark", no_color=True, pixels=True).pixels
    assert not Surface("standard", "dark", pixels=True).pixels
