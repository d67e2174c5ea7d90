"""Sizes and depths of colour: what a screen of 80 by 24 holds, of 140 by 40, and one that is too small."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.text import Text

from attnscope.explore.app import Explorer
from attnscope.explore.drawing.surface import Surface, part_words, window

Explored = Callable[..., Explorer]


def test_a_screen_that_is_too_small_says_what_is_needed(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        told = " ".join(screen.pane("small").split())
        assert told == "explore needs 60 x 16 cells: here are 20 x 5"
        await screen.pilot.resize_terminal(80, 24)
        await screen.settled()
        assert not app.board.has_class("small")
        assert "certified" in screen.pane("head")

    explored(keys, size=(20, 5))


@pytest.mark.parametrize(
    ("size", "depth"), [((60, 16), "truecolor"), ((80, 24), "standard"), ((140, 40), None)]
)
def test_no_pane_is_wider_or_higher_than_its_room(
    explored: Explored, size: tuple[int, int], depth: str | None
) -> None:
    async def keys(app: Explorer, screen) -> None:
        for name in ("head", "looks", "looked", "grid", "bars"):
            pane = app.pane(name)
            wide = max((sum(each.cell_length for each in line) for line in pane.drawn), default=0)
            assert 0 < wide <= pane.content_size.width, name
        assert set("[◆") & set(screen.pane("grid")), "the chosen head"
        assert "▸" in screen.pane("main"), "the query's row"

    explored(keys, size=size, depth=depth, no_color=depth is None)


def test_without_colours_shades_are_characters_and_every_cell_has_a_style(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        assert set(screen.pane("grid")) & set("░▒▓█")
        assert "opened█" in screen.pane("looks")
        segments = [
            each for name in ("grid", "main", "looks") for line in app.pane(name).drawn for each in line
        ]
        assert all(each.style is not None for each in segments)

    explored(keys, depth=None, no_color=True)


def test_a_window_follows_the_cursor_and_says_what_it_shows() -> None:
    assert list(window(5, 9, 3)) == [0, 1, 2, 3, 4]
    assert list(window(50, 5, 0)) == [0, 1, 2, 3, 4]
    assert list(window(50, 5, 20)) == [18, 19, 20, 21, 22]
    assert list(window(50, 5, 49)) == [45, 46, 47, 48, 49]
    assert part_words(window(50, 5, 20), 50, "queries") == "queries 18-22 of 50"
    assert part_words(range(3), 3, "queries") == ""


def test_a_surface_draws_what_a_console_of_that_depth_prints() -> None:
    drawn = Text("weight", style="weight.40")
    for depth in ("truecolor", "256", "standard"):
        surface = Surface(depth, "dark")
        (line,) = surface.lines(drawn, 20)
        out = io.StringIO()
        same = Console(file=out, force_terminal=True, color_system=depth, legacy_windows=False)
        same.print(Text("weight", style=line[0].style), end="")
        first = io.StringIO()
        again = Console(file=first, force_terminal=True, color_system=depth, legacy_windows=False)
        from attnscope.render.terminal import ramps

        again.push_theme(ramps.theme("dark", depth))
        again.print(drawn, end="")
        assert out.getvalue() == first.getvalue()
